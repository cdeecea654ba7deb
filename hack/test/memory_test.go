package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func TestRemoveStaleKeepsRunningRuns(t *testing.T) {
	t.Parallel()
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	killed := filepath.Join(root, memoryPrefix+strconv.Itoa(ended.Process.Pid)+"-1")
	running := filepath.Join(root, memoryPrefix+strconv.Itoa(os.Getpid())+"-1")
	other := filepath.Join(root, "mnemo-test-")
	for _, dir := range []string{killed, running, other} {
		if err := os.MkdirAll(filepath.Join(dir, "postgres"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeStale(root); err != nil {
		t.Fatal(err)
	}
	if devenv.IsDir(killed) {
		t.Error("the directory of a killed run was kept")
	}
	for _, dir := range []string{running, other} {
		if !devenv.IsDir(dir) {
			t.Errorf("%s was removed", dir)
		}
	}
}

func TestLogsOfMemoryAreKept(t *testing.T) {
	t.Parallel()
	logs := filepath.Join(t.TempDir(), "logs")
	dir, err := memoryDir(t.TempDir(), logs)
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" {
		if enoughMemory() && devenv.CheckSpace(filepath.Dir(logs), leastSpace) == nil {
			t.Error("no directory although there is enough memory")
		}
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "logs", "postgres.log"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(logs, "postgres.log")); err != nil {
		t.Errorf("log: %v, want it in the run directory", err)
	}
}
