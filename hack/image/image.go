package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the default user of the images: the user "nonroot" of distroless.
const nonroot = "65532:65532"

// File is a file, directory or link in an image, depending on its mode.
type File struct {
	// Path is absolute in the image.
	Path string
	Mode os.FileMode
	// From is a file on this machine with the content. If it is empty, Content is
	// used. The content of a link is its target.
	From    string
	Content []byte
}

// Layer is a layer of an image.
type Layer []File

// Target says for which machine an image is built and how.
type Target struct {
	// Arch is the architecture, as in GOARCH.
	Arch string
	// Compression is the level of package gzip.
	Compression int
}

// Local is the target for a container runtime on this machine. Its layers are not
// compressed, because they are unpacked right away.
func Local() Target { return Target{Arch: runtime.GOARCH, Compression: gzip.NoCompression} }

// New builds an image for Linux. It runs as an unprivileged user unless config sets
// another one.
func (t Target) New(layers []Layer, config v1.Config) (v1.Image, error) {
	config.User = cmp.Or(config.User, nonroot)
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		Architecture: t.Arch,
		OS:           "linux",
		Config:       config,
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	return t.Append(mutate.ConfigMediaType(image, types.OCIConfigJSON), layers...)
}

// Append adds layers to an image.
func (t Target) Append(image v1.Image, layers ...Layer) (v1.Image, error) {
	for _, l := range layers {
		layer, err := l.pack(t.Compression)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer}); err != nil {
			return nil, fmt.Errorf("add layer: %w", err)
		}
	}
	return image, nil
}

func (l Layer) pack(compression int) (v1.Layer, error) {
	var b bytes.Buffer
	b.Grow(l.size())
	packed, err := gzip.NewWriterLevel(&b, compression)
	if err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	if err := l.write(packed); err != nil {
		return nil, err
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	return layer, nil
}

// size estimates the size of the layer.
func (l Layer) size() int {
	n := 1 << 20
	for _, f := range l {
		n += len(f.Content) + 1024
		if info, err := os.Stat(f.From); err == nil {
			n += int(info.Size()) * 1001 / 1000
		}
	}
	return n
}

// write writes the layer as a tar archive without modification times and owners,
// so that builds are reproducible.
func (l Layer) write(w io.Writer) error {
	archive := tar.NewWriter(w)
	for _, f := range l {
		content := f.Content
		if f.From != "" {
			var err error
			if content, err = os.ReadFile(f.From); err != nil {
				return fmt.Errorf("read file of an image: %w", err)
			}
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     path.Clean(f.Path)[1:],
			Mode:     int64(f.Mode.Perm()),
			Size:     int64(len(content)),
			ModTime:  time.Unix(0, 0),
			Format:   tar.FormatUSTAR,
		}
		switch f.Mode.Type() {
		case os.ModeDir:
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
		case os.ModeSymlink:
			header.Typeflag, header.Linkname, header.Size, content = tar.TypeSymlink, string(content), 0, nil
		}
		if f.Mode&os.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write layer: %w", err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("write layer: %w", err)
		}
	}
	return archive.Close()
}
