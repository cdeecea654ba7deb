package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/hack/changelog"
)

// TestJoin checks that a fragment is in the changelog afterwards, and not in its directory.
func TestJoin(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fragment := filepath.Join(root, changelog.Dir, "dot.md")
	if err := os.MkdirAll(filepath.Dir(fragment), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "CHANGELOG.md")
	for path, text := range map[string]string{
		fragment: "Fixed: A name may contain a dot.\n",
		file:     "# Changelog\n\n## [1.0.0] - 2026-11-01\n\n- One.\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := join(root, "1.1.0", "2026-12-01"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Changelog\n\n## [1.1.0] - 2026-12-01\n\n### Fixed\n- A name may contain a dot.\n\n## [1.0.0] - 2026-11-01\n\n- One.\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("CHANGELOG.md (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(fragment); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the fragment remains: %v", err)
	}
}
