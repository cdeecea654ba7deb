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

// Node is a Kubernetes cluster of one real node: the control plane, containerd,
// the kubelet, kube-proxy and a DNS server, on which pods run. It needs root.
//
// The node has its own network namespace, mount namespace and control group. On the
// machine itself only a link to that network and the routes over it are added.
type Node struct {
	// Kube is its control plane; its API server listens on HostAddress.
	Kube *kube.ControlPlane
	// HostAddress is this machine as pods see it.
	HostAddress string

	options devenv.Options
	files   nodeFiles
	dir     string
	place   place
	thread  *devenv.Thread
	relays  []*devenv.Relay
	running []*devenv.Process
}

// Start brings a new cluster up in Options.Dir, whose path holds nothing of
// an earlier one, and returns when pods run on it and names resolve. Without
// root it fails at once, with a sentence that says so.
func Start(ctx context.Context, o devenv.Options) (*Node, error) {
	if err := NeedRoot(os.Geteuid()); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, errors.New("a node's network is made with ip, which this machine does not have: install iproute2")
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

// NeedRoot fails for a user who cannot run a node.
func NeedRoot(user int) error {
	if user == 0 {
		return nil
	}
	return errors.New("a cluster with a real node needs root, for namespaces, mounts and control groups: run this as root, or install the chart on a cluster you have (docs/install.md)")
}

// newNode makes the directories, control groups, namespaces and network.
func newNode(o devenv.Options, files nodeFiles) (_ *Node, err error) {
	n := &Node{options: o, files: files, dir: filepath.Join(o.Dir, "node")}
	for _, hidden := range hiddenDirs {
		if strings.HasPrefix(o.Dir+"/", hidden+"/") || strings.HasPrefix(o.Cache.Root+"/", hidden+"/") {
			return nil, fmt.Errorf("a node has its own %s, so neither %s nor %s may be in it: use another directory, or set MNEMO_CACHE", hidden, o.Dir, o.Cache.Root)
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
	if n.place, err = claimPlace(); err != nil {
		return n, err
	}
	n.HostAddress = n.place.host
	if err := n.place.record(o.Dir); err != nil {
		return n, err
	}
	if n.thread, err = devenv.NewThread(n.enter); err != nil {
		return n, err
	}
	return n, n.place.connect(n.thread)
}

// start runs the programs, each when what it needs is there.
func (n *Node) start(ctx context.Context) (err error) {
	if n.Kube, err = kube.StartAt(ctx, n.options, n.files.binaries, n.place.site()); err != nil {
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
		"--hostname-override=" + kube.NodeName, "--node-ip=" + n.place.node,
	}, func(ctx context.Context) error { return n.registered(ctx, client) }); err != nil {
		return err
	}
	healthz := "http://" + n.place.node + ":10256/healthz"
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
	if err := n.place.group().add(p.PID()); err != nil {
		return err
	}
	return p.Await(ctx, 2*time.Minute, ready)
}

// registered returns nil when the node is there and Ready.
func (n *Node) registered(ctx context.Context, client *http.Client) error {
	if err := kube.Answers(ctx, client, n.Kube.URL()+"/api/v1/nodes/"+kube.NodeName); err != nil {
		return err
	}
	out, err := n.Kubectl(ctx, nil, "get", "node", kube.NodeName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]['status','message']}`)
	if err == nil && !strings.HasPrefix(string(out), "True") {
		return fmt.Errorf("the node is not Ready: %s", out)
	}
	return err
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// ctr runs containerd's command line beside containerd.
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

// Expose lets pods reach the server at target, host:port of this machine, at a
// port of HostAddress.
func (n *Node) Expose(port int, target string) error {
	r, err := devenv.StartRelay(net.JoinHostPort(n.HostAddress, strconv.Itoa(port)), func() (net.Conn, error) {
		return new(net.Dialer).DialContext(context.Background(), "tcp", target)
	})
	if err != nil {
		return fmt.Errorf("let pods reach %s: %w", target, err)
	}
	n.relays = append(n.relays, r)
	return nil
}

// Kubectl runs kubectl as the administrator, with input if there is any, and
// returns what it printed.
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

// Stop ends the node and its control plane and removes all that was made of
// them but the directory.
func (n *Node) Stop() error {
	var errs []error
	for _, p := range slices.Backward(n.running) {
		if p.Name() == "containerd" {
			// Pods are not asked: their data goes with them.
			errs = append(errs, n.place.group().kill(p.PID()))
		}
		errs = append(errs, p.StopWithin(10*time.Second))
	}
	n.running = nil
	errs = append(errs, n.place.group().remove())
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
	return errors.Join(append(errs, n.place.disconnect())...)
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
