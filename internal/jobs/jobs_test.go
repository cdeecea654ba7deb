package jobs_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// patience is how long a test waits for a job before it fails.
const patience = 30 * time.Second

// pollInterval is how often a test looks for a result. Without it, the test would use the processor that
// the jobs need.
const pollInterval = 10 * time.Millisecond

// indexer records its calls. The store is unavailable for the first calls of Sync.
type indexer struct {
	mu       sync.Mutex
	failures int // remaining ones
	synced   chan indexing.SyncArgs
	migrated chan indexing.MigrateArgs
	dropped  chan placement.Location
}

func newIndexer(failures int) *indexer {
	return &indexer{failures: failures, synced: make(chan indexing.SyncArgs, 10), migrated: make(chan indexing.MigrateArgs, 10), dropped: make(chan placement.Location, 10)}
}

func (x *indexer) Sync(_ context.Context, t tenant.ID, units []retrieve.UnitID) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failures > 0 {
		x.failures--
		return fault.New(fault.Unavailable, "the vector store is unavailable")
	}
	x.synced <- indexing.SyncArgs{Tenant: t, Units: units}
	return nil
}

func (x *indexer) Migrate(_ context.Context, t tenant.ID, run int64) error {
	x.migrated <- indexing.MigrateArgs{Tenant: t, Run: run}
	return nil
}

func (x *indexer) Drop(_ context.Context, p placement.Location) error {
	x.dropped <- p
	return nil
}

func (x *indexer) SweepPage(context.Context, tenant.ID, retrieve.UnitID) (indexing.Drift, retrieve.UnitID, error) {
	return indexing.Drift{}, indexing.SweepEnd, nil
}

type bundle struct {
	db    *postgres.DB
	owner *pgxpool.Pool
	spec  tenant.Spec
	scope tenant.Scope
}

// setup creates a tenant and starts the workers.
func setup(t *testing.T, x *indexer) *bundle {
	t.Helper()
	d := postgrestest.Create(t)
	b := &bundle{db: postgrestest.Open(t, d), spec: tenanttest.NewSpec()}
	var err error
	if b.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.owner.Close)
	got, err := b.db.Apply(t.Context(), b.spec)
	if err != nil {
		t.Fatal(err)
	}
	b.scope = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}
	config, err := jobs.Config(x, b.db, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := b.db.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop workers: %v", err)
		}
	})
	return b
}

func (b *bundle) remember(t *testing.T, text string) {
	t.Helper()
	_, err := b.db.Memories().Create(t.Context(), b.scope, memory.NewMemory{
		CreateInput: memory.CreateInput{Text: text}, Tokens: 1, Units: retrieve.MemoryUnits(text),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no job ran within %s", patience)
	}
	panic("unreachable")
}

func TestWritesAreIndexed(t *testing.T) {
	t.Parallel()
	x := newIndexer(0)
	b := setup(t, x)
	b.remember(t, "The boiler was serviced on Tuesday.")
	got := receive(t, x.synced)
	var units []retrieve.UnitID
	if err := b.owner.QueryRow(t.Context(), "select array_agg(id) from units").Scan(&units); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got.Units)
	if diff := cmp.Diff(indexing.SyncArgs{Tenant: b.scope.Tenant, Units: units}, got); diff != "" {
		t.Errorf("the job's arguments (-want +got):\n%s", diff)
	}
}

func TestJobWaitsForUnavailableStore(t *testing.T) {
	t.Parallel()
	x := newIndexer(2)
	b := setup(t, x)
	b.remember(t, "Anna is allergic to nuts.")
	receive(t, x.synced)
	for started := time.Now(); ; <-time.After(pollInterval) {
		var state rivertype.JobState
		var errors int
		err := b.owner.QueryRow(t.Context(), "select state, coalesce(cardinality(errors), 0) from river_job where kind = 'index.sync'").Scan(&state, &errors)
		if err != nil {
			t.Fatal(err)
		}
		if errors > 0 {
			t.Fatalf("the job recorded %d errors of snoozed attempts", errors)
		}
		if state == rivertype.JobStateCompleted {
			return
		}
		if time.Since(started) > patience {
			t.Fatalf("the job is %s", state)
		}
	}
}

func TestLostPartitionIsRebuilt(t *testing.T) {
	t.Parallel()
	x := newIndexer(0)
	b := setup(t, x)
	location, err := b.db.EnsurePlacement(t.Context(), b.scope.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	b.remember(t, "The spare key hangs behind the clock.")
	if err := b.db.SetPartitionID(t.Context(), b.scope.Tenant, location, 7); err != nil {
		t.Fatal(err)
	}
	state, err := b.db.GetPlacement(t.Context(), b.scope.Tenant)
	if err != nil || !state.Rebuilding() {
		t.Fatalf("GetPlacement = %+v, %v, want a rebuild", state, err)
	}
	if got, want := receive(t, x.migrated), (indexing.MigrateArgs{Tenant: b.scope.Tenant, Run: state.Migration.Run}); got != want {
		t.Errorf("migrated %+v, want %+v", got, want)
	}
}

func TestAbandonedLocationIsDropped(t *testing.T) {
	t.Parallel()
	x := newIndexer(0)
	b := setup(t, x)
	location, err := b.db.EnsurePlacement(t.Context(), b.scope.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Isolation = tenant.Shared
	if _, err := b.db.Apply(t.Context(), b.spec); err != nil {
		t.Fatal(err)
	}
	state, err := b.db.ReconcilePlacement(t.Context(), b.scope.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.db.SetPartitionID(t.Context(), b.scope.Tenant, state.Migration.Target.Location, 8); err != nil {
		t.Fatal(err)
	}
	if err := b.db.CompleteMigration(t.Context(), b.scope.Tenant, receive(t, x.migrated).Run); err != nil {
		t.Fatal(err)
	}
	// Dropping is delayed until no replica reads the location. Do not wait for it.
	if _, err := b.owner.Exec(t.Context(), "update river_job set scheduled_at = now(), state = 'available' where kind = 'placement.drop'"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := receive(t, x.dropped); got != location {
			t.Errorf("dropped %+v, want %+v", got, location)
		}
	}
}

func TestDeletedTenantIsPurged(t *testing.T) {
	t.Parallel()
	b := setup(t, newIndexer(0))
	other := tenanttest.NewSpec()
	if _, err := b.db.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	b.remember(t, "This goes with its tenant.")
	for started := time.Now(); ; <-time.After(pollInterval) {
		left, err := b.db.Retire(t.Context(), b.spec.ID, tenant.Delete)
		if err != nil {
			t.Fatal(err)
		}
		if left.Done() {
			break
		}
		if time.Since(started) > patience {
			t.Fatalf("after %s, not everything is purged: %+v", patience, left)
		}
	}
	var tenants []tenant.ID
	if err := b.owner.QueryRow(t.Context(), "select array_agg(id::text) from tenants").Scan(&tenants); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tenant.ID{other.ID}, tenants); diff != "" {
		t.Errorf("tenants that remain (-want +got):\n%s", diff)
	}
}
