package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// kill claims an import as a worker that is killed before it stores anything.
func (b *bundle) kill(t *testing.T, scope tenant.Scope, id string) {
	t.Helper()
	if _, claim, err := b.imports.Claim(t.Context(), args(scope, id), fmt.Sprintf("0196b2f4-6d1e-7c3a-9f5e-%012d", time.Now().UnixNano()%1e12), time.Second); err != nil || claim != importer.ClaimGranted {
		t.Fatalf("Claim = %v, %v, want it granted", claim, err)
	}
	if _, err := b.owner.Exec(t.Context(), "update imports set leased_until = now() - interval '1 second' where id = $1", id); err != nil {
		t.Fatal(err)
	}
}

// An import whose workers are killed before it makes progress fails after the second one, with the reason, so that its
// file does not end one replica after the other.
func TestKilledWorkersCount(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, conversations(2)), "")
	b.kill(t, b.alice, id)
	b.kill(t, b.alice, id)
	got := b.run(t, b.alice, id)
	if got.Status != importer.Failed || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error, "stopped 2 times") || got.Imported != 0 {
		t.Errorf("after 2 killed workers: %+v", got)
	}
}

// An import continues after one killed worker, and after more if it makes progress between them. A worker that is
// stopped releases its import, which does not count.
func TestImportContinuesAfterAKilledWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, conversations(60)), "")
	b.kill(t, b.alice, id)
	stop := make(chan struct{})
	close(stop)
	for range 3 {
		if _, err := b.runner(func(c *importer.Config) { c.Stop, c.Files = stop, unreadableStore{b.imports, fmt.Errorf("stopped")} }).Run(t.Context(), args(b.alice, id)); err == nil {
			t.Error("Run = nil, want an error")
		}
	}
	run, _, err := b.imports.Claim(t.Context(), args(b.alice, id), "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", time.Minute)
	if err != nil || run.Killed != 1 {
		t.Fatalf("%d workers were killed, %v, want 1", run.Killed, err)
	}
	entry := importer.Batch{Entries: []importer.Entry{{Ordinal: 0, Outcome: importer.EntrySkipped, Reason: "empty"}}}
	if _, err := b.imports.StoreBatch(t.Context(), run, entry); err != nil {
		t.Fatal(err)
	}
	if _, err := b.owner.Exec(t.Context(), "update imports set leased_until = now() - interval '1 second' where id = $1", id); err != nil {
		t.Fatal(err)
	}
	if got := b.run(t, b.alice, id); got.Status != importer.Done || got.Imported != 59 {
		t.Errorf("after a killed worker, progress, and another one: %+v", got)
	}
}
