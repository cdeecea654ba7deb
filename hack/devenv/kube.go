package devenv

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
)

// Kube is a running Kubernetes control plane: etcd, kube-apiserver and
// kube-controller-manager, so that owner references and the deletion of
// namespaces work; with nodes, kube-scheduler too.
type Kube struct {
	// Kubeconfig is the path of a kubeconfig for an administrator.
	Kubeconfig string
	// Kubectl is the path of the kubectl program.
	Kubectl string

	options   Options
	binaries  map[string]string
	site      kubeSite
	dir       string
	pki       kubePKI
	ports     map[string]int
	apiserver *process
	// running holds the processes in the order in which they were started.
	running []*process
}

// kubeSite is where a control plane listens and what addresses its cluster has.
type kubeSite struct {
	// address is where the API server listens.
	address string
	// services and pods are networks, as "10.96.0.0/16"; without nodes there are
	// no pods.
	services, pods string
	// apiService is the first address of services, node that of the only node.
	apiService, node string
}

// noNodes is a cluster whose pods never run.
var noNodes = kubeSite{address: "127.0.0.1", services: "10.96.0.0/16", apiService: "10.96.0.1"}

func (s kubeSite) hasNode() bool { return s.node != "" }

// StartKube starts the control plane on 127.0.0.1 and returns when the API
// server is ready and a namespace has its service account.
func StartKube(ctx context.Context, o Options) (*Kube, error) {
	binaries, err := kubeBinaries(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	return startKube(ctx, o, binaries, noNodes)
}

func startKube(ctx context.Context, o Options, binaries map[string]string, site kubeSite) (*Kube, error) {
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
func newKube(ctx context.Context, o Options, binaries map[string]string, site kubeSite) (*Kube, error) {
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		if err := stopRecorded(ctx, recordPath(o.Dir, name), orphanGrace); err != nil {
			return nil, err
		}
	}
	k := &Kube{
		Kubectl:  binaries["kubectl"],
		options:  o,
		binaries: binaries,
		site:     site,
		dir:      filepath.Join(o.Dir, "kube"),
	}
	k.Kubeconfig = filepath.Join(k.dir, "admin.kubeconfig")
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	s, err := LoadSettings(k.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"apiserver", "etcd", "etcd_peer", "controller", "scheduler"} {
		asked := 0
		if name == "apiserver" {
			asked = o.Port
		}
		if err := s.ChoosePort(name, "Kubernetes", asked); err != nil {
			return nil, err
		}
	}
	k.ports = s.Ports
	if err := s.Save(k.dir); err != nil {
		return nil, err
	}
	if k.pki, err = ensureKubePKI(filepath.Join(k.dir, "pki"), site); err != nil {
		return nil, err
	}
	for client := range site.clients() {
		if client == "etcd-client" {
			continue // it is no client of the API server
		}
		if err := k.pki.writeKubeconfig(filepath.Join(k.dir, client+".kubeconfig"), client, k.url(), ""); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *Kube) url() string {
	return fmt.Sprintf("https://%s:%d", k.site.address, k.ports["apiserver"])
}

func (k *Kube) etcdURL() string { return fmt.Sprintf("https://127.0.0.1:%d", k.ports["etcd"]) }

func (k *Kube) start(ctx context.Context) error {
	client, err := k.client()
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
		{"kube-apiserver", k.apiserverArgs(), k.url() + "/readyz"},
		// It has made a service account when its controllers run.
		{"kube-controller-manager", k.controllerArgs(), k.url() + "/api/v1/namespaces/default/serviceaccounts/default"},
	}
	if k.site.hasNode() {
		steps = append(steps, step{"kube-scheduler", k.schedulerArgs(), fmt.Sprintf("https://127.0.0.1:%d/readyz", k.ports["scheduler"])})
	}
	for _, step := range steps {
		p, err := startProcess(ctx, processSpec{
			name: step.name, dir: k.options.Dir, path: k.binaries[step.name], args: step.args, cwd: k.dir, stop: syscall.SIGTERM,
		})
		if err != nil {
			return errors.Join(err, k.Stop())
		}
		k.running = append(k.running, p)
		if step.name == "kube-apiserver" {
			k.apiserver = p
		}
		err = p.await(ctx, 2*time.Minute, func(ctx context.Context) error { return answers(ctx, client, step.ready) })
		if err != nil {
			return errors.Join(err, k.Stop())
		}
	}
	return nil
}

// KubeconfigAs writes a kubeconfig at path that acts as another user, such as
// system:serviceaccount:<namespace>:<name>, with that user's rights alone.
func (k *Kube) KubeconfigAs(path, user string) error {
	return k.pki.writeKubeconfig(path, "admin", k.url(), user)
}

// Stop ends the control plane in order, etcd last.
func (k *Kube) Stop() error {
	var errs []error
	for _, p := range slices.Backward(k.running) {
		errs = append(errs, p.stopNow(15*time.Second))
	}
	k.running = nil
	return errors.Join(errs...)
}

// client returns an HTTP client with the administrator's certificate.
func (k *Kube) client() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(k.pki.path("admin.crt"), k.pki.path("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read administrator's key: %w", err)
	}
	ca, err := os.ReadFile(k.pki.path("ca.crt"))
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

// answers returns nil when a GET of url is answered with 200.
func answers(ctx context.Context, client *http.Client, url string) error {
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
