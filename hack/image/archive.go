package image

import (
	"archive/tar"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteArchive writes an image with a name of the form repository:tag to a file
// for `ctr images import`: a tar archive with an OCI layout.
func WriteArchive(path, name string, image v1.Image) (err error) {
	dir, err := os.MkdirTemp("", "mnemo-image-")
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	images, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	err = images.AppendImage(image, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": tag,
	}))
	if err != nil {
		return fmt.Errorf("write image %s: %w", name, err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	if err := archive.AddFS(os.DirFS(dir)); err != nil {
		return fmt.Errorf("write image %s: %w", name, err)
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write image %s: %w", name, err)
	}
	return file.Close()
}
