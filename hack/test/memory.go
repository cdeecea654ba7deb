package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

const (
	// shared is a file system in the memory of most Linux machines.
	shared = "/dev/shm"
	// memoryPrefix is followed by the process id of the run.
	memoryPrefix = "mnemo-test-"
	// leastMemory must be available and leastSpace be free for data in memory. In a run of all tests, up to 444 MB of
	// data were seen.
	leastMemory, leastSpace = 12 << 30, 4 << 30
)

// memoryDir creates a run directory in memory for PostgreSQL, with its logs in the directory logs. Every test creates a
// database, which consists of hundreds of files: creating and deleting them costs four times as much processor time on a
// disk. The result is empty if the machine has too little memory.
func memoryDir(root, logs string) (string, error) {
	if space := devenv.CheckSpace(root, leastSpace) == nil; !space || !enoughMemory() {
		return "", nil
	}
	if err := removeStale(root); err != nil {
		return "", fmt.Errorf("remove data of former runs: %w", err)
	}
	dir, err := os.MkdirTemp(root, fmt.Sprintf("%s%d-", memoryPrefix, os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("create directory in memory: %w", err)
	}
	// For root PostgreSQL runs as another user, who must be able to traverse it.
	err = errors.Join(os.Chmod(dir, 0o711), os.MkdirAll(logs, 0o755), os.Symlink(logs, filepath.Join(dir, "logs")))
	if err != nil {
		return "", errors.Join(fmt.Errorf("prepare directory in memory: %w", err), os.RemoveAll(dir))
	}
	return dir, nil
}

// removeStale removes the directories of runs that were killed.
func removeStale(root string) error {
	dirs, err := filepath.Glob(filepath.Join(root, memoryPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), memoryPrefix), "-")
		id, err := strconv.Atoi(pid)
		if err != nil || !errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, os.ErrPermission) { // another user's
			return err
		}
	}
	return nil
}

// enoughMemory reports whether the kernel can provide leastMemory without swapping.
func enoughMemory() bool {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(info)) {
		if value, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kilobytes, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return err == nil && kilobytes<<10 >= leastMemory
		}
	}
	return false
}
