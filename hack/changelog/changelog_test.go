package changelog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/hack/changelog"
)

func TestFragmentsAreJoinedByKind(t *testing.T) {
	t.Parallel()
	root := writeFragments(t, map[string]string{
		"README.md":  "# Fragments\n",
		"b-limit.md": "Fixed: An import keeps its limit.\n",
		"copy.md":    "Added: `mnemo tenants copy`\nand [cells](../cells.md), as in [Go](https://go.dev).\n",
		"a-name.md":  "Fixed: A name may contain a dot.\n",
	})
	want := "### Added\n- `mnemo tenants copy`\n  and [cells](docs/cells.md), as in [Go](https://go.dev).\n\n" +
		"### Fixed\n- A name may contain a dot.\n- An import keeps its limit.\n"
	got, files, err := changelog.Fragments(root)
	if err != nil || len(files) != 3 {
		t.Fatalf("Fragments() = %d files, %v", len(files), err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFragmentWithoutKindIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"NoKind": "A name may contain a dot.", "Unknown": "Improved: Speed.", "NoText": "Fixed:"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := writeFragments(t, map[string]string{"dot.md": text})
			want := filepath.Join(root, changelog.Dir, "dot.md") +
				": expected a text that begins with one of Added, Changed, Deprecated, Removed, Fixed, Security and a colon"
			if _, _, err := changelog.Fragments(root); fmt.Sprint(err) != want {
				t.Errorf("error %q, want %q", err, want)
			}
		})
	}
}

// TestRepository checks the fragments and the changelog of the checkout.
func TestRepository(t *testing.T) {
	t.Parallel()
	if _, _, err := changelog.Fragments("../.."); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changelog.Sections(string(text)); err != nil {
		t.Error(err)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	const (
		head     = "# Changelog\n\nAll changes.\n"
		one      = "\n## [1.0.0] - 2026-11-01\n\n- One.\n"
		pending  = "\n## [1.1.0] - unreleased\n\n### Tenants\n- Two.\n"
		fragment = "### Added\n- Three.\n"
	)
	cases := map[string]struct {
		reason                   string
		changelog, version, text string
		want, err                string
	}{
		"New": {
			reason:    "A version gets a section before those of earlier versions.",
			changelog: head + one, version: "1.1.0", text: fragment,
			want: head + "\n## [1.1.0] - 2026-12-01\n\n### Added\n- Three.\n" + one,
		},
		"Unreleased": {
			reason:    "The unreleased section gets the date and the fragments.",
			changelog: head + pending + one, version: "1.1.0", text: fragment,
			want: head + "\n## [1.1.0] - 2026-12-01\n\n### Tenants\n- Two.\n\n### Added\n- Three.\n" + one,
		},
		"OtherUnreleased": {
			reason:    "Unreleased changes do not end up behind a later version.",
			changelog: head + pending, version: "1.2.0", text: fragment,
			err: "CHANGELOG.md: section [1.1.0] is unreleased: release it before 1.2.0",
		},
		"Released": {
			reason:    "A released section does not change.",
			changelog: head + one, version: "1.0.0", text: fragment, err: "CHANGELOG.md: section [1.0.0] exists",
		},
		"Nothing": {
			reason:    "A release has changes.",
			changelog: head + one, version: "1.1.0", err: "docs/changelog has no fragments",
		},
		"Title": {
			reason:    "A section without version and date would be lost.",
			changelog: head + "\n## Later\n- Two.\n", version: "1.1.0", text: fragment,
			err: `CHANGELOG.md: section "Later": expected a title such as ## [1.2.3] - 2026-12-01`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := changelog.Release(tc.changelog, tc.version, "2026-12-01", tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if message := fmt.Sprint(err); tc.err != "" && message != tc.err {
				t.Errorf("%s Error %q, want %q", tc.reason, message, tc.err)
			}
		})
	}
}

// writeFragments returns the top of a checkout with these fragments.
func writeFragments(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, changelog.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, changelog.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
