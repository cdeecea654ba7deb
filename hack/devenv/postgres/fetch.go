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

// Binaries returns the directory that contains bin/postgres. It is downloaded if
// it is not cached.
func Binaries(ctx context.Context, cache *devenv.Cache) (string, error) {
	accessible := *cache
	if postgresUser() != nil && !reachable(cache.Root) {
		accessible.Root = "/var/cache/mnemo"
	}
	return accessible.Ensure(ctx, devenv.Entry{
		Key:   "postgres-" + string(Version),
		Title: "PostgreSQL " + string(Version),
		Doing: "downloading 10 MB, once",
		Space: 200 << 20,
		Fill:  fillPostgres,
	})
}

// fillPostgres uses the embedded-postgres library to download and unpack the
// server. The library can only do that as part of starting a server, which fails
// as root, so it receives an invalid data directory: it unpacks and then fails.
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
		return fmt.Errorf("download (check the network and HTTPS_PROXY): %w", startErr)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "bin", "postgres"), "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the downloaded server does not run on this machine: %w\n%s", err, out)
	}
	return os.RemoveAll(scratch)
}
