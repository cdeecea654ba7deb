package kube

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

const (
	// assetsVariable names a directory with kube-apiserver, etcd and kubectl, as
	// setup-envtest downloads them, to use instead of building these.
	assetsVariable = "KUBEBUILDER_ASSETS"
	// clusterVariable names the kubeconfig of a cluster to use instead of a
	// control plane. It is not KUBECONFIG, so that nobody uses a cluster by
	// accident: the Tenant resource and access rules are installed into it.
	clusterVariable = "MNEMO_KUBECONFIG"
)

// findBinaries returns the path of each program of a control plane by name and builds
// those that do not exist, except kubectl.
func findBinaries(ctx context.Context, cache *devenv.Cache) (map[string]string, error) {
	found := map[string]string{}
	var missing []devenv.Built
	for _, p := range Programs {
		if assets := os.Getenv(assetsVariable); assets != "" {
			path := filepath.Join(assets, p.Name)
			if _, err := os.Stat(path); err == nil {
				found[p.Name] = path
				continue
			}
		}
		if p.Name == kubectl.Name { // not needed to start; EnsureKubectl builds it
			path, err := p.Path(cache)
			if err != nil {
				return nil, err
			}
			found[p.Name] = path
			continue
		}
		missing = append(missing, p)
	}
	built, err := devenv.EnsureBuilt(ctx, cache, missing)
	maps.Copy(found, built)
	return found, err
}

// useCluster returns an existing cluster in place of a control plane. Stop does
// nothing to it.
func useCluster(o devenv.Options, kubeconfig string) (*ControlPlane, error) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return nil, fmt.Errorf("%s is set, but kubectl is not in PATH", clusterVariable)
	}
	if kubeconfig, err = filepath.Abs(kubeconfig); err != nil {
		return nil, fmt.Errorf("path of the kubeconfig: %w", err)
	}
	if _, err := clientcmd.LoadFromFile(kubeconfig); err != nil {
		return nil, fmt.Errorf("read %s: %w", clusterVariable, err)
	}
	o.Cache.Progress.Printf("==> Kubernetes: using the cluster of %s", kubeconfig)
	return &ControlPlane{Kubeconfig: kubeconfig, Kubectl: kubectl, options: o, external: true}, nil
}

// impersonate writes a copy of a kubeconfig that acts as another user.
func impersonate(kubeconfig, path, user string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return fmt.Errorf("resolve paths of kubeconfig: %w", err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
