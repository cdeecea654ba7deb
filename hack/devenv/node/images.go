package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/image"
)

// Images of the node's own programs. No registry has them; they are imported.
const (
	pauseImage = "mnemo.local/pause:1"
	dnsImage   = "mnemo.local/coredns:1"
)

// Import imports an image into the node under a name of the form repository:tag.
func (n *Node) Import(ctx context.Context, name string, image v1.Image) error {
	file, err := os.CreateTemp(n.dir, "image-*.tar")
	if err != nil {
		return fmt.Errorf("import image: %w", err)
	}
	_ = file.Close()
	defer func() { _ = os.Remove(file.Name()) }()
	return n.importAs(ctx, file.Name(), name, image)
}

// ImportImage imports an image into the node that another program runs in
// Options.Dir.
func ImportImage(ctx context.Context, o devenv.Options, name string, image v1.Image) error {
	r, err := containerd(o.Dir)
	if err != nil {
		return err
	}
	ctr, err := devenv.EnsureBuilt(ctx, o.Cache, containerdPrograms)
	if err != nil {
		return err
	}
	n := &Node{options: o, dir: filepath.Join(o.Dir, "node"), files: nodeFiles{binaries: ctr}}
	if n.thread, err = devenv.NewThread(func() error { return join(r.PID) }); err != nil {
		return err
	}
	defer n.thread.Close()
	return n.Import(ctx, name, image)
}

// CheckRunning returns an error if no node runs with its data in dir.
func CheckRunning(dir string) error {
	_, err := containerd(dir)
	return err
}

// containerd returns the process record of a running node's containerd.
func containerd(dir string) (devenv.Record, error) {
	r, err := devenv.LoadRecord(devenv.RecordPath(dir, "containerd"))
	if errors.Is(err, os.ErrNotExist) || err == nil && !r.Running() {
		return devenv.Record{}, fmt.Errorf("no cluster is running in %s: start it with `make cluster`", dir)
	}
	return r, err
}

func (n *Node) importAs(ctx context.Context, path, name string, img v1.Image) error {
	if err := image.WriteArchive(path, name, img); err != nil {
		return err
	}
	if err := n.ctr(ctx, "images", "import", "--local", path); err != nil {
		return fmt.Errorf("import image %s: %w", name, err)
	}
	return nil
}

func (n *Node) importOwnImages(ctx context.Context) error {
	for name, program := range map[string]string{pauseImage: "pause", dnsImage: "coredns"} {
		img, err := image.Local().Program(n.files.binaries[program])
		if err != nil {
			return err
		}
		if err := n.Import(ctx, name, img); err != nil {
			return err
		}
	}
	return nil
}
