package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// ControlPlane is a running Kubernetes control plane: etcd, kube-apiserver and
// the controllers of hack/kube/controllers; with a node, kube-controller-manager
// and kube-scheduler instead of the latter.
type ControlPlane struct {
	// Kubeconfig is the path of a kubeconfig for an administrator.
	Kubeconfig string
	// Kubectl is the path of the kubectl program, which exists after EnsureKubectl.
	Kubectl string

	options   devenv.Options
	binaries  map[string]string
	site      Site
	Dir       string
	PKI       PKI
	ports     map[string]int
	apiserver *devenv.Process
	// external is true for an existing cluster, which has no processes here.
	external bool
	// Running holds the processes in start order.
	Running []*devenv.Process
}

// Site holds the addresses of a cluster.
type Site struct {
	// Address is the address on which the API server listens.
	Address string
	// Services and Pods are networks such as "10.96.0.0/16". Pods is empty without
	// nodes.
	Services, Pods string
	// APIService is the first address of Services. Node is the address of the only
	// node; it is empty without nodes.
	APIService, Node string
}

// noNodes is the site of a cluster without nodes, where pods never run.
var noNodes = Site{Address: "127.0.0.1", Services: "10.96.0.0/16", APIService: "10.96.0.1"}

func (s Site) hasNode() bool { return s.Node != "" }

// Start starts the control plane on 127.0.0.1 and returns when the API server and
// the controllers are ready. MNEMO_KUBECONFIG selects an existing cluster
// instead, KUBEBUILDER_ASSETS existing programs.
func Start(ctx context.Context, o devenv.Options) (*ControlPlane, error) {
	if kubeconfig := os.Getenv(clusterVariable); kubeconfig != "" {
		return useCluster(o, kubeconfig)
	}
	binaries, err := findBinaries(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	return StartAt(ctx, o, binaries, noNodes)
}

// EnsureKubectl builds kubectl if it does not exist. Starting does not need it.
func (k *ControlPlane) EnsureKubectl(ctx context.Context) error {
	if _, err := os.Stat(k.Kubectl); err == nil {
		return nil
	}
	_, err := Kubectl(ctx, k.options.Cache)
	return err
}

// StartAt starts a control plane with the addresses of site. binaries maps a
// program name to its path.
func StartAt(ctx context.Context, o devenv.Options, binaries map[string]string, site Site) (*ControlPlane, error) {
	done := o.Cache.Progress.Step("Kubernetes control plane", "starting")
	k, err := newKube(ctx, o, binaries, site)
	if err == nil {
		err = k.start(ctx)
	}
	done(err)
	if err != nil {
		return nil, fmt.Errorf("start Kubernetes control plane: %w", err)
	}
	return k, nil
}

// newKube prepares the data directory, keys and ports.
func newKube(ctx context.Context, o devenv.Options, binaries map[string]string, site Site) (*ControlPlane, error) {
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "controllers", "kube-apiserver", "etcd"} {
		if err := devenv.StopRecorded(ctx, o.Dir, name, devenv.OrphanGrace); err != nil {
			return nil, err
		}
	}
	k := &ControlPlane{
		Kubectl:  binaries["kubectl"],
		options:  o,
		binaries: binaries,
		site:     site,
		Dir:      filepath.Join(o.Dir, "kube"),
	}
	k.Kubeconfig = filepath.Join(k.Dir, "admin.kubeconfig")
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	s, err := devenv.LoadSettings(k.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"apiserver", "etcd", "etcd_peer", "controller", "scheduler"} {
		requested := 0
		if name == "apiserver" {
			requested = o.Port
		}
		if err := s.ChoosePort(name, "Kubernetes", requested); err != nil {
			return nil, err
		}
	}
	k.ports = s.Ports
	if err := s.Save(k.Dir); err != nil {
		return nil, err
	}
	if k.PKI, err = ensureKubePKI(filepath.Join(k.Dir, "pki"), site); err != nil {
		return nil, err
	}
	for client := range site.clients() {
		if client == "etcd-client" {
			continue // not a client of the API server
		}
		if err := k.PKI.writeKubeconfig(filepath.Join(k.Dir, client+".kubeconfig"), client, k.URL(), ""); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// URL returns the address of kube-apiserver.
func (k *ControlPlane) URL() string {
	return fmt.Sprintf("https://%s:%d", k.site.Address, k.ports["apiserver"])
}

func (k *ControlPlane) etcdURL() string { return fmt.Sprintf("https://127.0.0.1:%d", k.ports["etcd"]) }

func (k *ControlPlane) start(ctx context.Context) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	type step struct {
		name  string
		args  []string
		ready string
	}
	steps := []step{
		{"etcd", k.etcdArgs(), k.etcdURL() + "/health"},
		{"kube-apiserver", k.apiserverArgs(), k.URL() + "/readyz"},
	}
	// The default service account shows that the controllers run.
	account := k.URL() + "/api/v1/namespaces/default/serviceaccounts/default"
	if k.site.hasNode() {
		steps = append(steps,
			step{"kube-controller-manager", k.controllerArgs(), account},
			step{"kube-scheduler", k.schedulerArgs(), fmt.Sprintf("https://127.0.0.1:%d/readyz", k.ports["scheduler"])})
	} else {
		steps = append(steps, step{"controllers", []string{"-kubeconfig=" + k.Kubeconfig}, account})
	}
	for _, step := range steps {
		p, err := devenv.StartProcess(ctx, devenv.ProcessSpec{
			Name: step.name, Dir: k.options.Dir, Path: k.binaries[step.name], Args: step.args, WorkDir: k.Dir, Stop: syscall.SIGTERM,
		})
		if err != nil {
			return errors.Join(err, k.Stop())
		}
		k.Running = append(k.Running, p)
		if step.name == "kube-apiserver" {
			k.apiserver = p
		}
		err = p.Await(ctx, 2*time.Minute, func(ctx context.Context) error { return Answers(ctx, client, step.ready) })
		if err != nil {
			return errors.Join(err, k.Stop())
		}
	}
	return nil
}

// KubeconfigAs writes a kubeconfig to path that impersonates another user, such as
// system:serviceaccount:<namespace>:<name>, and so has only that user's rights.
func (k *ControlPlane) KubeconfigAs(path, user string) error {
	if k.external {
		return impersonate(k.Kubeconfig, path, user)
	}
	return k.PKI.writeKubeconfig(path, "admin", k.URL(), user)
}

// Stop shuts the control plane down, etcd last.
func (k *ControlPlane) Stop() error {
	var errs []error
	for _, p := range slices.Backward(k.Running) {
		errs = append(errs, p.StopWithin(15*time.Second))
	}
	k.Running = nil
	return errors.Join(errs...)
}

// Client returns an HTTP client with the administrator's certificate.
func (k *ControlPlane) Client() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(k.PKI.Path("admin.crt"), k.PKI.Path("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read administrator's key: %w", err)
	}
	ca, err := os.ReadFile(k.PKI.Path("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}},
	}, nil
}

// Answers returns nil if a GET of url returns status 200.
func Answers(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return nil
}

// Done is closed when the API server has ended; Err returns the reason. It is nil
// for an existing cluster, which is not watched.
func (k *ControlPlane) Done() <-chan struct{} {
	if k.external {
		return nil
	}
	return k.apiserver.Done()
}

// Err returns the reason why the API server ended.
func (k *ControlPlane) Err() error { return k.apiserver.Err() }
