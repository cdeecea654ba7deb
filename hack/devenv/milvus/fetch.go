package milvus

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ulikunitz/xz"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// Wheel is the Python package that contains the Milvus server.
var Wheel = devenv.Wheel{
	Name:    "milvus",
	Version: "2.3.5",
	SHA256:  "69515a0630ce29fd10e101fa442afea8ca1387b93a456cd9bd41fdf3deb93d04",
}

// Files returns the directory that contains bin/milvus with its libraries,
// config.yaml.template and glog.conf. It is downloaded if it is not cached.
func Files(ctx context.Context, cache *devenv.Cache) (string, error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("there is no Milvus package for %s: use an amd64 machine", runtime.GOARCH)
	}
	return cache.Ensure(ctx, devenv.Entry{
		Key:   "milvus-" + Wheel.Version,
		Title: "Milvus " + Wheel.Version,
		Doing: "downloading 58 MB with pip and unpacking, once",
		Space: 600 << 20,
		Fill:  fillMilvus,
	})
}

func fillMilvus(ctx context.Context, dir string) error {
	download := filepath.Join(dir, "download")
	if err := os.Mkdir(download, 0o755); err != nil {
		return fmt.Errorf("create download directory: %w", err)
	}
	file, err := Wheel.Fetch(ctx, download)
	if err != nil {
		return err
	}
	err = devenv.Extract(file, func(name string) string {
		base := path.Base(name)
		switch {
		case strings.HasPrefix(name, "milvus/data/bin/"):
			return filepath.Join(dir, "bin", strings.TrimSuffix(base, ".lzma"))
		case strings.HasPrefix(name, "milvus/data/"):
			return filepath.Join(dir, base)
		}
		return ""
	}, unpackXZ)
	if err != nil {
		return err
	}
	return os.RemoveAll(download)
}

// unpackXZ decompresses the program files, which are xz streams despite their
// extension.
func unpackXZ(name string, r io.Reader) (io.Reader, error) {
	if !strings.HasSuffix(name, ".lzma") {
		return r, nil
	}
	return xz.NewReader(r)
}
