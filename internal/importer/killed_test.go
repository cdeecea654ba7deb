package importer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
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

// unreleasedLeases are leases of a database that is unavailable for the first releases.
type unreleasedLeases struct {
	importer.Leases
	outage int
}

func (l *unreleasedLeases) Release(ctx context.Context, run importer.Run, failed bool) error {
	if l.outage--; l.outage >= 0 {
		return fault.New(fault.Unavailable, "the database is unavailable")
	}
	return l.Leases.Release(ctx, run, failed)
}

// A worker that waits for the database is alive.
func TestOutageIsNoKilledWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, conversations(2)), "")
	outage := func(c *importer.Config) {
		c.Leases = &unreleasedLeases{b.imports, 1}
		c.Files = unreadableStore{b.imports, fault.New(fault.Unavailable, "the database is unavailable")}
	}
	for range 3 {
		if _, err := b.runner(outage).Run(t.Context(), args(b.alice, id)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Run = %v, want Unavailable", err)
		}
	}
	if got := b.run(t, b.alice, id); got.Status != importer.Done || got.Imported != 2 {
		t.Errorf("after 3 outages: %+v", got)
	}
}

// A worker whose lease expired, and which another worker counted as killed, shows that it is alive by releasing its import. The
// other worker keeps it.
func TestReleaseAfterALostLeaseCountsNoKilledWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, conversations(2)), "")
	claim := func(worker string) importer.Run {
		t.Helper()
		run, claimed, err := b.imports.Claim(t.Context(), args(b.alice, id), worker, time.Minute)
		if err != nil || claimed != importer.ClaimGranted {
			t.Fatalf("Claim = %v, %v, want it granted", claimed, err)
		}
		return run
	}
	expire := func() {
		t.Helper()
		if _, err := b.owner.Exec(t.Context(), "update imports set leased_until = now() - interval '1 second' where id = $1", id); err != nil {
			t.Fatal(err)
		}
	}
	first := claim("0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e01")
	expire()
	second := claim("0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e02")
	if second.Killed != 1 {
		t.Fatalf("%d workers were killed, want 1", second.Killed)
	}
	if err := b.imports.Release(t.Context(), first, false); err != nil {
		t.Fatal(err)
	}
	if err := b.imports.Renew(t.Context(), second, time.Minute); err != nil {
		t.Errorf("the second worker lost the import: %v", err)
	}
	if err := b.imports.Release(t.Context(), second, false); err != nil {
		t.Fatal(err)
	}
	if third := claim("0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e03"); third.Killed != 0 || third.Attempts != 1 {
		t.Errorf("%d workers were killed in %d attempts, want none in 1", third.Killed, third.Attempts)
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
		stopped := b.runner(func(c *importer.Config) { c.Stop, c.Files = stop, unreadableStore{b.imports, fmt.Errorf("stopped")} })
		if again, err := stopped.Run(t.Context(), args(b.alice, id)); again == 0 && err == nil {
			t.Error("Run finished the import, want it interrupted")
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
