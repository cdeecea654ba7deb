package devenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnsureFillsOnce(t *testing.T) {
	t.Parallel()
	c := &Cache{Root: t.TempDir()}
	var fills atomic.Int32
	entry := Entry{Key: "thing-1.0", Title: "thing", Fill: func(_ context.Context, dir string) error {
		fills.Add(1)
		return os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o644)
	}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			dir, err := c.Ensure(t.Context(), entry)
			if err != nil {
				t.Errorf("ensure: %v", err)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, "file")); string(data) != "content" {
				t.Errorf("file content %q, want %q", data, "content")
			}
		})
	}
	wg.Wait()
	if n := fills.Load(); n != 1 {
		t.Errorf("filled %d times, want once", n)
	}
}

func TestEnsureDiscardsIncompleteEntries(t *testing.T) {
	t.Parallel()
	c := &Cache{Root: t.TempDir()}
	broken := errors.New("no network")
	entry := Entry{Key: "thing-1.0", Title: "thing", Fill: func(_ context.Context, dir string) error {
		_ = os.WriteFile(filepath.Join(dir, "half"), nil, 0o644)
		return broken
	}}
	if _, err := c.Ensure(t.Context(), entry); !errors.Is(err, broken) {
		t.Fatalf("ensure: %v, want the error of Fill", err)
	}
	if IsDir(filepath.Join(c.Root, entry.Key)) {
		t.Error("the entry exists after Fill failed")
	}
	// A crash leaves files under the temporary name.
	partial := filepath.Join(c.Root, entry.Key+".partial")
	if err := os.MkdirAll(filepath.Join(partial, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	entry.Fill = func(_ context.Context, dir string) error {
		files, err := os.ReadDir(dir)
		if len(files) != 0 {
			t.Errorf("Fill received a directory with %v, want an empty one", files)
		}
		return err
	}
	if _, err := c.Ensure(t.Context(), entry); err != nil {
		t.Errorf("ensure after a crash: %v", err)
	}
}

func TestEnsureStopsWaitingWhenCanceled(t *testing.T) {
	t.Parallel()
	c := &Cache{Root: t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by the user")
	entry := Entry{Key: "thing", Title: "thing", Fill: func(context.Context, string) error {
		cancel(stop)
		_, err := c.Ensure(ctx, Entry{Key: "thing", Title: "thing"})
		return err
	}}
	if _, err := c.Ensure(t.Context(), entry); !errors.Is(err, stop) {
		t.Errorf("ensure of a locked entry: %v, want the cause of the context", err)
	}
}

func TestEnsureChecksSpace(t *testing.T) {
	t.Parallel()
	c := &Cache{Root: t.TempDir()}
	_, err := c.Ensure(t.Context(), Entry{Key: "huge", Title: "huge thing", Space: 1 << 62})
	if err == nil || !strings.Contains(err.Error(), "free some space, or set MNEMO_CACHE") {
		t.Errorf("ensure: error %v, want one that says what to do", err)
	}
}

func TestOpenCache(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct{ mnemo, home, want string }{
		"MNEMO_CACHE":          {mnemo: dir, home: "/elsewhere", want: dir},
		"home directory":       {home: dir, want: filepath.Join(dir, ".cache", "mnemo")},
		"relative MNEMO_CACHE": {mnemo: "x", want: filepath.Join(mustGetwd(t), "x")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MNEMO_CACHE", tt.mnemo)
			t.Setenv("HOME", tt.home)
			t.Setenv("XDG_CACHE_HOME", "")
			c, err := OpenCache(nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Root); diff != "" {
				t.Errorf("root (-want +got):\n%s", diff)
			}
		})
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
