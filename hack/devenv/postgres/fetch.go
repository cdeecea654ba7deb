package postgres

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// Version is the PostgreSQL version.
const Version = embeddedpostgres.V17

// Binaries returns the directory that holds bin/postgres, downloaded
// the first time.
func Binaries(ctx context.Context, cache *devenv.Cache) (string, error) {
	place := *cache
	if postgresUser() != nil && !reachable(cache.Root) {
		place.Root = "/var/cache/mnemo"
	}
	return place.Ensure(ctx, devenv.Entry{
		Key:   "postgres-" + string(Version),
		Title: "PostgreSQL " + string(Version),
		Doing: "downloading 10 MB, once",
		Space: 200 << 20,
		Fill:  fillPostgres,
	})
}

// fillPostgres lets the embedded-postgres library download and unpack. Its only
// way in is to start a server, which it cannot do as root, so it is given a data
// directory that no server starts on: it ends there, after unpacking.
func fillPostgres(ctx context.Context, dir string) error {
	scratch := filepath.Join(dir, "scratch")
	data := filepath.Join(scratch, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return fmt.Errorf("create scratch directory: %w", err)
	}
	major, _, _ := strings.Cut(string(Version), ".")
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(major), 0o644); err != nil {
		return fmt.Errorf("prepare scratch directory: %w", err)
	}
	port, err := devenv.FreePort()
	if err != nil {
		return err
	}
	startErr := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(Version).
		CachePath(filepath.Join(scratch, "archive")).
		RuntimePath(filepath.Join(scratch, "run")).
		DataPath(data).
		BinariesPath(dir).
		Port(uint32(port)).
		Logger(io.Discard)).Start()
	if startErr == nil || !strings.HasPrefix(startErr.Error(), "could not start postgres") {
		return fmt.Errorf("download (is the network, or HTTPS_PROXY, right?): %w", startErr)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "bin", "postgres"), "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the downloaded server does not run on this machine: %w\n%s", err, out)
	}
	return os.RemoveAll(scratch)
}
