package node

import (
	"context"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
)

// nodePrograms are the programs of a node besides those of the control plane.
var nodePrograms = append([]devenv.Built{
	kube.Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "about 1 min on 2 cores"),
	kube.Program("kubelet", "k8s.io/kubernetes/cmd/kubelet", "about 40 s on 2 cores"),
	kube.Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "about 15 s on 2 cores"),
	kube.Program("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", "about 25 s on 2 cores"),
	nodeProgram("coredns", "coredns", ".", "about 1 min on 2 cores"),
	nodeProgram("pause", "pause", ".", "a second"),
},
	append(containerdPrograms, cniPlugins...)...)

var containerdPrograms = []devenv.Built{
	containerdProgram("containerd", "about 2 min on 2 cores"),
	containerdProgram("containerd-shim-runc-v2", "about 10 s on 2 cores"),
	containerdProgram("ctr", "about 10 s on 2 cores"),
}

// cniPlugins set up the network of each pod.
var cniPlugins = []devenv.Built{
	cniPlugin("bridge", "main/bridge"), cniPlugin("loopback", "main/loopback"),
	cniPlugin("host-local", "ipam/host-local"), cniPlugin("portmap", "meta/portmap"),
}

func nodeProgram(name, module, pkg, estimate string) devenv.Built {
	return devenv.Built{
		Name: name, Package: pkg, Module: "node/" + module, Flags: []string{devenv.Unoptimized, "-ldflags", "-s -w"},
		Key: "node", Title: name, Estimate: estimate,
	}
}

func containerdProgram(name, estimate string) devenv.Built {
	p := nodeProgram(name, "containerd", "github.com/containerd/containerd/v2/cmd/"+name, estimate)
	p.Flags = append(p.Flags, "-tags", "no_btrfs,no_devmapper,no_zfs")
	return p
}

func cniPlugin(name, path string) devenv.Built {
	return nodeProgram(name, "cni", "github.com/containernetworking/plugins/plugins/"+path, "a few seconds")
}

// nodeFiles holds the programs of a node: those built from source by name,
// including the control plane's, and those of the distribution.
type nodeFiles struct {
	binaries map[string]string
	system   systemPrograms
}

// ensureNodeFiles builds and downloads the programs that are not cached.
func ensureNodeFiles(ctx context.Context, cache *devenv.Cache) (nodeFiles, error) {
	var f nodeFiles
	var err error
	if f.system, err = findSystemPrograms(ctx, cache); err != nil {
		return f, err
	}
	all := append(append([]devenv.Built{}, kube.Programs...), nodePrograms...)
	f.binaries, err = devenv.EnsureBuilt(ctx, cache, all)
	return f, err
}

// Prepare builds and downloads everything that Start needs, so that this can be
// done in advance.
func Prepare(ctx context.Context, cache *devenv.Cache) error {
	_, err := ensureNodeFiles(ctx, cache)
	return err
}
