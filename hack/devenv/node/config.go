package node

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
)

//go:embed config.tmpl
var nodeConfig string

// writeConfig writes the configuration of the node's programs.
func (n *Node) writeConfig() error {
	if err := n.linkPlugins(); err != nil {
		return err
	}
	configs, err := template.New("").Option("missingkey=error").Parse(nodeConfig)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	values := map[string]string{
		"Dir": n.dir, "PKI": n.Kube.PKI.Dir, "Kube": n.Kube.Dir, "Node": kube.NodeName, "Group": n.slot.name, "Pause": pauseImage,
		"NodeAddress": n.slot.node, "Pods": n.slot.pods, "DNS": n.slot.dns,
	}
	for _, name := range []string{"containerd.toml", "cni/10-mnemo.conflist", "kubelet.yaml", "kube-proxy.yaml", "resolv.conf"} {
		var b bytes.Buffer
		if err := configs.ExecuteTemplate(&b, name, values); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := os.WriteFile(n.path(name), b.Bytes(), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// linkPlugins creates a directory with links to the network plugins, because
// containerd accepts only one directory.
func (n *Node) linkPlugins() error {
	dir := n.path("plugins")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	for _, p := range cniPlugins {
		if err := os.Symlink(n.files.binaries[p.Name], filepath.Join(dir, p.Name)); err != nil {
			return fmt.Errorf("link network plugins: %w", err)
		}
	}
	// containerd looks for the shim in its own directory, but the cache keeps each
	// program in a separate one.
	shim := "containerd-shim-runc-v2"
	if err := os.Symlink(n.files.binaries[shim], n.path(shim)); err != nil {
		return fmt.Errorf("link containerd shim: %w", err)
	}
	return nil
}
