package devenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	release, err := Occupy(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Occupy(dir); err == nil || !strings.Contains(err.Error(), "make down") {
		t.Errorf("second run: error %v, want one that says how to stop the first", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, EnvFile)
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if release, err = Occupy(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("up.env of a crashed run: %v, want that it does not exist", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}
