package devenv

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Cache stores completed downloads and builds, one directory per entry.
type Cache struct {
	// Root is the directory that holds the entries.
	Root string
	// Progress reports every step; nil reports nothing.
	Progress *Progress
}

// Entry describes one directory of the cache and how to fill it.
type Entry struct {
	// Key is the name of the directory. It contains the version and everything
	// else that changes the content.
	Key string
	// Title and Doing describe the filling in Progress.
	Title, Doing string
	// Space is the number of bytes that must be free before filling starts.
	Space uint64
	// Fill writes the content into dir, an empty directory.
	Fill func(ctx context.Context, dir string) error
}

// OpenCache returns the cache at $MNEMO_CACHE, by default ~/.cache/mnemo.
func OpenCache(progress *Progress) (*Cache, error) {
	root := os.Getenv("MNEMO_CACHE")
	if root == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no directory for the cache: set HOME or MNEMO_CACHE: %w", err)
		}
		root = filepath.Join(base, "mnemo")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("cache root: %w", err)
	}
	return &Cache{Root: root, Progress: progress}, nil
}

// Ensure returns the directory of an entry and fills it if it does not exist.
// Content is written under a temporary name and renamed when complete, so a
// crash never leaves an incomplete entry. A second run that needs the same entry
// waits for the first.
func (c *Cache) Ensure(ctx context.Context, e Entry) (string, error) {
	dir := filepath.Join(c.Root, e.Key)
	if IsDir(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Join(c.Root, "locks"), 0o755); err != nil {
		return "", fmt.Errorf("create the cache (set MNEMO_CACHE to a directory you can write): %w", err)
	}
	unlock, err := c.Lock(ctx, e)
	if err != nil {
		return "", err
	}
	defer unlock()
	if IsDir(dir) {
		return dir, nil
	}
	if err := CheckSpace(c.Root, e.Space); err != nil {
		return "", fmt.Errorf("%s: %w, or set MNEMO_CACHE to a directory on another disk", e.Title, err)
	}
	done := c.Progress.Step(e.Title, e.Doing)
	err = c.fill(ctx, e, dir)
	done(err)
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.Title, err)
	}
	return dir, nil
}

// fill runs under the entry's lock, so existing content under the temporary name
// is from a crash.
func (c *Cache) fill(ctx context.Context, e Entry, dir string) error {
	tmp := dir + ".partial"
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("remove incomplete entry: %w", err)
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return fmt.Errorf("create entry: %w", err)
	}
	if err := e.Fill(ctx, tmp); err != nil {
		_ = os.RemoveAll(tmp)
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("finish entry: %w", err)
	}
	return nil
}

// Lock acquires the entry's lock, which the kernel releases when its holder dies.
func (c *Cache) Lock(ctx context.Context, e Entry) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(c.Root, "locks", e.Key+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	announced := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !announced {
			c.Progress.Printf("==> %s: another run is preparing it, waiting", e.Title)
			announced = true
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("wait for another run to prepare %s: %w", e.Title, err)
		}
	}
}

// CheckSpace returns an error if fewer than need bytes are free at path.
func CheckSpace(path string, need uint64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return fmt.Errorf("get free disk space: %w", err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < need {
		return fmt.Errorf("needs %s free in %s, but only %s is available: free some space",
			bytesText(need), path, bytesText(free))
	}
	return nil
}

func bytesText(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MB", n>>20)
}

// IsDir reports whether path is a directory.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lastLines returns the last n lines of a file for an error message, or "" if the
// file cannot be read.
func lastLines(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// pause waits for d. If ctx ends first, it returns the cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// WriteFile replaces a file atomically: after a crash it has either the old or
// the new content.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	tmp := path + ".partial"
	_ = os.Remove(tmp)
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
