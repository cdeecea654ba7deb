package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
)

// Node is a Kubernetes cluster with one real node, which runs pods: the control
// plane, containerd, the kubelet, kube-proxy and a DNS server. It needs root.
//
// The node has its own network namespace, mount namespace and control group. On the
// machine itself only a link to that network and the routes over it are added.
type Node struct {
	// Kube is the control plane. Its API server listens on HostAddress.
	Kube *kube.ControlPlane
	// HostAddress is the address at which pods reach this machine.
	HostAddress string

	options devenv.Options
	files   nodeFiles
	dir     string
	slot    slot
	thread  *devenv.Thread
	relays  []*devenv.Relay
	running []*devenv.Process
}

// Start starts a new cluster in Options.Dir, which must not contain files of an
// earlier one, and returns when pods run and names resolve. It returns an error
// for users other than root.
func Start(ctx context.Context, o devenv.Options) (*Node, error) {
	if err := NeedRoot(os.Geteuid()); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, errors.New("ip is missing, which sets up the node's network: install iproute2")
	}
	files, err := ensureNodeFiles(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	n, err := newNode(o, files)
	if err != nil {
		return nil, fmt.Errorf("prepare the node: %w", err)
	}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the node: %w", err), n.Stop())
	}
	return n, nil
}

// NeedRoot returns an error for users other than root, who cannot run a node.
func NeedRoot(user int) error {
	if user == 0 {
		return nil
	}
	return errors.New("a cluster with a real node needs root, for namespaces, mounts and control groups: run this as root, or install the chart on an existing cluster (docs/install.md)")
}

// newNode creates the directories, control groups, namespaces and network.
func newNode(o devenv.Options, files nodeFiles) (_ *Node, err error) {
	n := &Node{options: o, files: files, dir: filepath.Join(o.Dir, "node")}
	for _, hidden := range hiddenDirs {
		if strings.HasPrefix(o.Dir+"/", hidden+"/") || strings.HasPrefix(o.Cache.Root+"/", hidden+"/") {
			return nil, fmt.Errorf("a node has a private %s, so neither %s nor %s may be in it: use another directory, or set MNEMO_CACHE", hidden, o.Dir, o.Cache.Root)
		}
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Stop())
		}
	}()
	if n.slot, err = claimSlot(); err != nil {
		return n, err
	}
	n.HostAddress = n.slot.host
	if err := n.slot.record(o.Dir); err != nil {
		return n, err
	}
	if n.thread, err = devenv.NewThread(n.enter); err != nil {
		return n, err
	}
	return n, n.slot.connect(n.thread)
}

// start starts the programs in the order of their dependencies.
func (n *Node) start(ctx context.Context) (err error) {
	if n.Kube, err = kube.StartAt(ctx, n.options, n.files.binaries, n.slot.site()); err != nil {
		return err
	}
	done := n.options.Cache.Progress.Step("Kubernetes node", "starting")
	defer func() { done(err) }()
	if err := n.writeConfig(); err != nil {
		return err
	}
	if err := n.run(ctx, "containerd", []string{"--config", n.path("containerd.toml")}, func(ctx context.Context) error {
		return n.ctr(ctx, "version")
	}); err != nil {
		return err
	}
	if err := n.importOwnImages(ctx); err != nil {
		return err
	}
	client, err := n.Kube.Client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	kubeconfig := func(name string) string { return filepath.Join(n.Kube.Dir, name+".kubeconfig") }
	if err := n.run(ctx, "kubelet", []string{
		"--config=" + n.path("kubelet.yaml"), "--kubeconfig=" + kubeconfig("node"), "--root-dir=" + n.path("kubelet"),
		"--hostname-override=" + kube.NodeName, "--node-ip=" + n.slot.node,
	}, func(ctx context.Context) error { return n.registered(ctx, client) }); err != nil {
		return err
	}
	healthz := "http://" + n.slot.node + ":10256/healthz"
	if err := n.run(ctx, "kube-proxy", []string{"--config=" + n.path("kube-proxy.yaml")}, func(ctx context.Context) error {
		return kube.Answers(ctx, http.DefaultClient, healthz)
	}); err != nil {
		return err
	}
	return n.startDNS(ctx)
}

// run starts a program of the node inside its namespaces and control group.
func (n *Node) run(ctx context.Context, name string, args []string, ready func(context.Context) error) error {
	p, err := devenv.StartProcess(ctx, devenv.ProcessSpec{
		Name: name, Dir: n.options.Dir, Path: n.files.binaries[name], Args: args, Env: n.files.system.env, WorkDir: n.dir,
		Stop: syscall.SIGTERM, Thread: n.thread,
	})
	if err != nil {
		return err
	}
	n.running = append(n.running, p)
	if err := n.slot.group().add(p.PID()); err != nil {
		return err
	}
	return p.Await(ctx, 2*time.Minute, ready)
}

// registered returns nil if the node exists and is Ready.
func (n *Node) registered(ctx context.Context, client *http.Client) error {
	if err := kube.Answers(ctx, client, n.Kube.URL()+"/api/v1/nodes/"+kube.NodeName); err != nil {
		return err
	}
	out, err := n.Kubectl(ctx, nil, "get", "node", kube.NodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]['status','message']}`)
	if err == nil && !strings.HasPrefix(string(out), "True") {
		return fmt.Errorf("node is not Ready: %s", out)
	}
	return err
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// ctr runs containerd's command line in the namespaces of the node.
func (n *Node) ctr(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, n.files.binaries["ctr"], append([]string{"--namespace=k8s.io"}, args...)...)
	var out []byte
	var err error
	n.thread.Do(func() { out, err = cmd.CombinedOutput() })
	if err != nil {
		return fmt.Errorf("ctr %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Expose makes the server at target, host:port of this machine, available to pods
// at a port of HostAddress.
func (n *Node) Expose(port int, target string) error {
	r, err := devenv.StartRelay(net.JoinHostPort(n.HostAddress, strconv.Itoa(port)), func() (net.Conn, error) {
		return new(net.Dialer).DialContext(context.Background(), "tcp", target)
	})
	if err != nil {
		return fmt.Errorf("expose %s to pods: %w", target, err)
	}
	n.relays = append(n.relays, r)
	return nil
}

// Kubectl runs kubectl as the administrator, with input as its standard input,
// and returns its output.
func (n *Node) Kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, n.Kube.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Kube.Kubeconfig)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// Stop stops the node and its control plane and removes everything they created
// outside Options.Dir.
func (n *Node) Stop() error {
	var errs []error
	for _, p := range slices.Backward(n.running) {
		if p.Name() == "containerd" {
			// No graceful termination of pods: their data is discarded.
			errs = append(errs, n.slot.group().kill(p.PID()))
		}
		errs = append(errs, p.StopWithin(10*time.Second))
	}
	n.running = nil
	errs = append(errs, n.slot.group().remove())
	if n.Kube != nil {
		errs = append(errs, n.Kube.Stop())
	}
	for _, r := range n.relays {
		r.Close()
	}
	if n.thread != nil {
		n.thread.Close()
		n.thread = nil
	}
	return errors.Join(append(errs, n.slot.disconnect())...)
}

// Failed returns a channel that receives the error when one of the node's programs
// exits unexpectedly.
func (n *Node) Failed() <-chan error {
	all := slices.Concat(n.running, n.Kube.Running)
	failed := make(chan error, len(all))
	for _, p := range all {
		go func() {
			<-p.Done()
			failed <- p.Err()
		}()
	}
	return failed
}
