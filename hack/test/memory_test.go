package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func TestRemoveStaleKeepsRunningRuns(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	create := func() memory {
		m, err := createMemory(root, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	killed, running := create(), create()
	if err := killed.lock.Close(); err != nil { // as the system does
		t.Fatal(err)
	}
	others := []string{filepath.Join(root, "mnemo-test-4000000000"), filepath.Join(root, memoryPrefix+"new"), running.dir}
	for _, dir := range append(others, killed.dir) {
		if err := os.MkdirAll(filepath.Join(dir, "postgres"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeStale(root); err != nil {
		t.Fatal(err)
	}
	if devenv.IsDir(killed.dir) {
		t.Error("the directory of a killed run was kept")
	}
	for _, dir := range others {
		if !devenv.IsDir(filepath.Join(dir, "postgres")) {
			t.Errorf("%s was removed", dir)
		}
	}
	if err := running.remove(); err != nil || devenv.IsDir(running.dir) {
		t.Errorf("the directory was not removed after the run: %v", err)
	}
}

func TestLogsOfMemoryAreKept(t *testing.T) {
	t.Parallel()
	logs := filepath.Join(t.TempDir(), "logs")
	m, err := createMemory(t.TempDir(), logs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "logs", "postgres.log"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(logs, "postgres.log")); err != nil {
		t.Errorf("log: %v, want it in the run directory", err)
	}
}
