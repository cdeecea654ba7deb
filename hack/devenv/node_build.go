package devenv

import "context"

// nodePrograms are what a node runs besides the control plane's.
var nodePrograms = append([]built{
	kubeProgram("kubelet", "k8s.io/kubernetes/cmd/kubelet", "about 40 s on 2 cores"),
	kubeProgram("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "about 15 s on 2 cores"),
	kubeProgram("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", "about 25 s on 2 cores"),
	nodeProgram("coredns", "coredns", ".", "about 1 min on 2 cores"),
	nodeProgram("pause", "pause", ".", "a second"),
},
	append(containerdPrograms, cniPlugins...)...)

var containerdPrograms = []built{
	containerdProgram("containerd", "about 2 min on 2 cores"),
	containerdProgram("containerd-shim-runc-v2", "about 10 s on 2 cores"),
	containerdProgram("ctr", "about 10 s on 2 cores"),
}

// cniPlugins give each pod its network.
var cniPlugins = []built{
	cniPlugin("bridge", "main/bridge"), cniPlugin("loopback", "main/loopback"),
	cniPlugin("host-local", "ipam/host-local"), cniPlugin("portmap", "meta/portmap"),
}

func nodeProgram(name, module, pkg, estimate string) built {
	return built{
		name: name, pkg: pkg, module: "node/" + module, flags: []string{"-ldflags", "-s -w"},
		key: "node", title: name, estimate: estimate,
	}
}

func containerdProgram(name, estimate string) built {
	p := nodeProgram(name, "containerd", "github.com/containerd/containerd/v2/cmd/"+name, estimate)
	p.flags = append(p.flags, "-tags", "no_btrfs,no_devmapper,no_zfs")
	return p
}

func cniPlugin(name, path string) built {
	return nodeProgram(name, "cni", "github.com/containernetworking/plugins/plugins/"+path, "a few seconds")
}

// nodeFiles is what a node runs on: programs by name, the control plane's among
// them, and those of the distribution.
type nodeFiles struct {
	binaries map[string]string
	system   systemPrograms
}

// ensureNodeFiles builds and downloads them the first time.
func ensureNodeFiles(ctx context.Context, cache *Cache) (nodeFiles, error) {
	var f nodeFiles
	var err error
	if f.system, err = findSystemPrograms(ctx, cache); err != nil {
		return f, err
	}
	all := append(append([]built{}, kubePrograms...), nodePrograms...)
	f.binaries, err = ensureBuilt(ctx, cache, all)
	return f, err
}

// PrepareNode builds and downloads what StartNode needs, so that this can be
// done beside something else.
func PrepareNode(ctx context.Context, cache *Cache) error {
	_, err := ensureNodeFiles(ctx, cache)
	return err
}
