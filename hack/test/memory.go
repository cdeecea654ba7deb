package main

import (
	"errors"
	"fmt"
	"io/fs"
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
	// memoryPrefix begins the names of the directories there.
	memoryPrefix = "mnemo-postgres-"
	// lockFile is locked while a run uses the directory.
	lockFile = "lock"
	// leastMemory must be available and leastSpace be free for data in memory. In a run of all tests, up to 444 MB of
	// data were seen.
	leastMemory, leastSpace = 12 << 30, 4 << 30
)

// memory is a directory in memory. The zero value is none.
type memory struct {
	dir  string
	lock *os.File
}

// createMemory creates a directory for PostgreSQL in root, with its logs in the directory logs. Every test creates a
// database, which consists of hundreds of files: creating and deleting them costs four times as much processor time on a
// disk.
func createMemory(root, logs string) (memory, error) {
	dir, err := os.MkdirTemp(root, memoryPrefix)
	if err != nil {
		return memory{}, fmt.Errorf("create directory in memory: %w", err)
	}
	m := memory{dir: dir}
	if m.lock, err = os.Create(filepath.Join(dir, lockFile)); err == nil {
		err = syscall.Flock(int(m.lock.Fd()), syscall.LOCK_EX)
	}
	// For root PostgreSQL runs as another user, who must be able to traverse it.
	err = errors.Join(err, os.Chmod(dir, 0o711), os.MkdirAll(logs, 0o755), os.Symlink(logs, filepath.Join(dir, "logs")))
	if err != nil {
		return memory{}, errors.Join(fmt.Errorf("prepare directory in memory: %w", err), m.remove())
	}
	return m, nil
}

// remove removes the directory, if there is one.
func (m memory) remove() error {
	if m.dir == "" {
		return nil
	}
	err := os.RemoveAll(m.dir)
	if m.lock != nil {
		err = errors.Join(err, m.lock.Close())
	}
	return err
}

// removeStale removes the directories of runs that were killed: nobody locks them.
func removeStale(root string) error {
	locks, err := filepath.Glob(filepath.Join(root, memoryPrefix+"*", lockFile))
	if err != nil {
		return err
	}
	for _, path := range locks {
		if err := removeUnlocked(path); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) { // another user's, or removed meanwhile
			return err
		}
	}
	return nil
}

// removeUnlocked removes the directory of a lock, unless a run holds it.
func removeUnlocked(path string) error {
	lock, err := os.Open(path)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Dir(path))
}

// enoughMemory reports whether root has leastSpace, and the machine and the container leastMemory.
func enoughMemory(root string) bool {
	if limit, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if bytes, err := strconv.ParseUint(strings.TrimSpace(string(limit)), 10, 64); err == nil && bytes < leastMemory { // otherwise "max"
			return false
		}
	}
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil || devenv.CheckSpace(root, leastSpace) != nil {
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
