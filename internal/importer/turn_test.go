package importer_test

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// An import that has run for a turn yields to the imports of other users that wait, and
// continues later. Nothing is stored twice.
func TestImportYields(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		waits  func(*bundle) tenant.Scope
		yields bool
	}{
		"ToAnotherTenant": {"a long import must not delay another tenant", func(b *bundle) tenant.Scope { return b.carol }, true},
		"ToAnotherUser":   {"nor another user of the tenant", func(b *bundle) tenant.Scope { return b.bob }, true},
		"NotToItsUser":    {"imports of a user run one after another", func(b *bundle) tenant.Scope { return b.alice }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			long := b.upload(t, b.alice, export(t, conversations(300)), "")
			short := b.upload(t, tc.waits(b), export(t, conversations(1)), "")
			runner := b.runner(func(c *importer.Config) { c.Turn = time.Nanosecond })
			again, err := runner.Run(t.Context(), args(b.alice, long))
			if err != nil {
				t.Fatal(err)
			}
			if yields := again > 0; yields != tc.yields {
				t.Fatalf("yields = %t, want %t: %s", yields, tc.yields, tc.reason)
			}
			got := b.get(t, b.alice, long)
			if tc.yields && (got.Status != importer.Running || got.Imported == 0 || got.Imported == 300) {
				t.Errorf("after a turn: %s with %d of 300 conversations, want a part of them", got.Status, got.Imported)
			}
			b.run(t, tc.waits(b), short)
			if again, err = runner.Run(t.Context(), args(b.alice, long)); err != nil || again > 0 {
				t.Fatalf("Run = %s, %v; want it to finish when nobody waits", again, err)
			}
			if got = b.get(t, b.alice, long); got.Status != importer.Done || got.Imported+got.Skipped != 300 {
				t.Errorf("at the end: %s, %d imported, %d skipped; want 300 in total", got.Status, got.Imported, got.Skipped)
			}
		})
	}
}

// A restore of a Mnemo export yields as well. Its first turn lasts as long as it took to find the first batch, so most of its
// work must come after that.
func TestRestoreYields(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.importFile(t, b.alice, export(t, conversations(600)))
	long := b.upload(t, b.bob, b.exported(t, b.alice), "")
	short := b.upload(t, b.carol, export(t, conversations(1)), "")
	runner := b.restoring()
	runner.Turn = time.Nanosecond
	if again, err := runner.Run(t.Context(), args(b.bob, long)); err != nil || again == 0 {
		t.Fatalf("Run = %s, %v; want it to yield", again, err)
	}
	b.run(t, b.carol, short)
	if again, err := runner.Run(t.Context(), args(b.bob, long)); err != nil || again > 0 {
		t.Fatalf("Run = %s, %v; want it to finish", again, err)
	}
	if got := b.get(t, b.bob, long); got.Status != importer.Done || got.Imported != 600 {
		t.Errorf("at the end: %s with %d of 600 conversations", got.Status, got.Imported)
	}
}
