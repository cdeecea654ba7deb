package faults_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// newClock returns a clock and the environment of the program that uses it.
func newClock(t testing.TB, cache *devenv.Cache, dir string) (*clock, []string) {
	t.Helper()
	packages, err := devenv.EnsureDebian(t.Context(), cache, devenv.Entry{
		Key: "faketime", Title: "libfaketime", Doing: "downloading", Fill: func(context.Context, string) error { return nil },
	}, "libfaketime")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob(filepath.Join(packages, "usr/lib/*/faketime/libfaketime.so.1"))
	if err != nil || len(libraries) != 1 {
		t.Fatalf("libfaketime in %s: %v, %v", packages, libraries, err)
	}
	// PostgreSQL may run as a user who cannot read the cache.
	c, library := &clock{file: filepath.Join(dir, "clock")}, filepath.Join(dir, "libfaketime.so.1")
	run(t, "cp", libraries[0], library)
	c.step(t, "+0s")
	if err := os.Chmod(library, 0o755); err != nil {
		t.Fatal(err)
	}
	return c, []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
