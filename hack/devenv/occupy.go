package devenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// EnvFile is the file for scripts in a run directory. It exists while the platform runs.
	EnvFile = "up.env"
	// Self is the name under which the program that runs a platform is recorded.
	Self = "up"
	// dataSpace is the free space required for the data of a small platform.
	dataSpace = 1 << 30
)

// Occupy creates a run directory, locks it against a second run and records this program for
// `make down`.
func Occupy(dir string) (release func() error, err error) {
	// For root PostgreSQL runs as another user, who must be able to traverse it.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := CheckSpace(dir, dataSpace); err != nil {
		return nil, fmt.Errorf("the platform's data %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("the platform is already running in %s: stop it with Ctrl-C in its terminal, or with `make down`", dir)
	}
	// An existing file is from a crashed run.
	if err := os.Remove(filepath.Join(dir, EnvFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old %s: %w", EnvFile, err)
	}
	forget, err := RecordSelf(dir, Self)
	if err != nil {
		return nil, err
	}
	return func() error {
		// A child process that is being started may have the file open, so closing it is not enough.
		return errors.Join(forget(), syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
	}, nil
}
