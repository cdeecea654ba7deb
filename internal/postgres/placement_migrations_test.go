package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// assignPlacement assigns a placement with partition id 1 to the first tenant, with two
// indexed units.
func assignPlacement(t *testing.T, b *testBundle) (tenant.ID, placement.Location) {
	t.Helper()
	id := b.users[0].Tenant
	p, err := b.EnsurePlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b.setPartitionID(t, p, 1)
	b.remember(t, b.users[0], "The boiler was serviced.", nil)
	b.remember(t, b.users[1], "The tax return was sent.", nil)
	b.remember(t, b.users[2], "A memory of another tenant.", nil)
	for _, id := range []tenant.ID{b.users[0].Tenant, b.users[2].Tenant} {
		if err := b.Confirm(t.Context(), id, b.usersOf(id), b.liveUnits(t, id, 100)); err != nil {
			t.Fatal(err)
		}
	}
	return id, p
}

// setPartitionID records the partition id of a location of the first tenant.
func (b *testBundle) setPartitionID(t *testing.T, p placement.Location, partitionID int64) {
	t.Helper()
	if err := b.SetPartitionID(t.Context(), b.users[0].Tenant, p, partitionID); err != nil {
		t.Fatal(err)
	}
}

func (b *testBundle) placement(t *testing.T) placement.State {
	t.Helper()
	state, err := b.GetPlacement(t.Context(), b.users[0].Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if state.Generation != 1 {
		t.Errorf("generation = %d, want the first", state.Generation)
	}
	state.Model, state.Generation, state.Current.Dimensions, state.Migration.Target.Dimensions, state.Outgrown = "", 0, 0, 0, false
	return state
}

// setIsolation changes the isolation of the first tenant and reconciles its placement.
func (b *testBundle) setIsolation(t *testing.T, isolation tenant.Isolation) placement.State {
	t.Helper()
	b.specs[0].Isolation = isolation
	if _, err := b.Apply(t.Context(), b.specs[0]); err != nil {
		t.Fatal(err)
	}
	state, err := b.ReconcilePlacement(t.Context(), b.users[0].Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (b *testBundle) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := b.owner.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *testBundle) jobs(t *testing.T, kind string) int {
	t.Helper()
	return b.number(t, "select count(*) from river_job where kind = $1", kind)
}

func TestGetPlacementBeforeEnsurePlacement(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, err := b.GetPlacement(t.Context(), b.users[0].Tenant)
	wantKind(t, "GetPlacement before EnsurePlacement", err, fault.NotFound)
}

func TestNewPartitionNeedsNoMigration(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, p := assignPlacement(t, b)
	b.wantPlacement(t, settled(p, 1))
	b.wantJobCount(t, "placement.migrate", 0)
}

func TestLostPartitionIsRebuiltOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := assignPlacement(t, b)
	for range 2 {
		b.setPartitionID(t, p, 2)
	}
	state := b.placement(t)
	if !state.Rebuilding() {
		t.Fatalf("placement is %+v, want a rebuild", state)
	}
	b.wantJobCount(t, "placement.migrate", 1)
	b.wantUnindexed(t, id)
	if n := b.number(t, "select count(*) from units where indexed_at is not null"); n != 1 {
		t.Errorf("%d units of the other tenant count as indexed, want 1", n)
	}
	if got := b.setIsolation(t, tenant.Shared); !got.Rebuilding() {
		t.Errorf("placement is %+v, want the rebuild to come before the migration", got)
	}
	if err := b.CompleteMigration(t.Context(), id, state.Migration.Run+1); err != nil {
		t.Errorf("CompleteMigration of another run: %v", err)
	}
	b.wantPlacement(t, state)
	if err := b.CompleteMigration(t.Context(), id, state.Migration.Run); err != nil {
		t.Errorf("CompleteMigration: %v", err)
	}
	b.wantPlacement(t, settled(p, 2))
	b.wantJobCount(t, "placement.drop", 0)
}

// A transaction that rewrites all units of a large tenant would make its writers wait.
func TestLossIsRecordedInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := assignPlacement(t, b)
	b.insertUnits(t, b.users[0], b.remember(t, b.users[0], "Many units.", nil), 1200, "now()")
	b.setPartitionID(t, p, 2)
	b.wantUnindexed(t, id)
	if n := b.number(t, "select count(*) from units where indexed_at is not null"); n != 1 {
		t.Errorf("%d units of the other tenant count as indexed, want 1", n)
	}
	if n := b.number(t, "select max(n) from (select count(*) as n from units where tenant_id = $1 group by xmin::text) x", id); n > 500 {
		t.Errorf("a transaction wrote %d units, want at most 500", n)
	}
	if s := b.placement(t); !s.Rebuilding() || !s.Writable() {
		t.Errorf("placement is %+v, want a rebuild", s)
	}
	b.wantJobCount(t, "placement.migrate", 1)
}

// A process ends while it records a loss. Whether or not the partition exists again, its content is written anew, and
// no migration begins before.
func TestInterruptedLossIsCompleted(t *testing.T) {
	t.Parallel()
	for name, resume := range map[string]func(*testBundle, placement.Location) error{
		"TheLossIsNoticedAgain": func(b *testBundle, p placement.Location) error {
			return b.MarkLost(t.Context(), placement.Placement{Location: p, PartitionID: 1})
		},
		"TheOperatorReconciles": func(b *testBundle, _ placement.Location) error {
			_, err := b.ReconcilePlacement(t.Context(), b.users[0].Tenant)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			id, p := assignPlacement(t, b)
			b.insertUnits(t, b.users[0], b.remember(t, b.users[0], "Many units.", nil), 1200, "now()")
			b.setPartitionID(t, b.setIsolation(t, tenant.Shared).Migration.Target.Location, 5)
			exec(t, b.owner, "create function interrupt() returns trigger language plpgsql as $$ begin raise exception 'interrupted'; end $$")
			exec(t, b.owner, fmt.Sprintf("create trigger interrupt before update on units for each row when (new.id = %d) execute function interrupt()",
				b.number(t, "select max(id) from units where tenant_id = $1", id)))
			lost := placement.Placement{Location: p, PartitionID: 1}
			if err := b.MarkLost(t.Context(), lost); err == nil {
				t.Fatal("MarkLost was not interrupted")
			}
			state := b.placement(t)
			if diff := cmp.Diff(lost, state.Current); diff != "" {
				t.Errorf("current placement after the interruption (-want +got):\n%s", diff)
			}
			if n := b.number(t, "select count(*) from units where tenant_id = $1 and indexed_at is not null", id); n != 202 {
				t.Errorf("%d units count as indexed after the interruption, want 1202 without two batches of 500", n)
			}
			b.wantJobCount(t, "placement.migrate", 1) // of the migration, which is canceled

			exec(t, b.owner, "drop trigger interrupt on units")
			if err := resume(b, p); err != nil {
				t.Fatal(err)
			}
			b.wantUnindexed(t, id)
			if s := b.placement(t); !s.Rebuilding() || s.Current.PartitionID != 0 {
				t.Errorf("placement is %+v, want a lost partition that is rebuilt", s)
			}
			b.setPartitionID(t, p, 1)
			if s := b.placement(t); !s.Rebuilding() || !s.Writable() {
				t.Errorf("placement is %+v, want a rebuild", s)
			}
			b.wantJobCount(t, "placement.migrate", 3)
		})
	}
}

// wantUnindexed checks that no unit of the tenant counts as indexed.
func (b *testBundle) wantUnindexed(t *testing.T, id tenant.ID) {
	t.Helper()
	if n := b.number(t, "select count(*) from units where indexed_at is not null and tenant_id = $1", id); n != 0 {
		t.Errorf("%d units count as indexed in the lost partition, want none", n)
	}
}

// The content of a lost partition may be deleted before the partition exists again.
func TestRebuildOfEmptiedTenantEnds(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, p := assignPlacement(t, b)
	b.setPartitionID(t, p, 0)
	if s := b.placement(t); !s.Rebuilding() {
		t.Fatalf("placement is %+v, want a rebuild", s)
	}
	for _, user := range b.users[:2] {
		ids, err := b.Memories().Matching(t.Context(), user, filter.Filter{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Memories().Delete(t.Context(), user, ids); err != nil {
			t.Fatal(err)
		}
	}
	b.setPartitionID(t, p, 2)
	b.wantPlacement(t, settled(p, 2))
}

func TestStalledRunIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, _ := assignPlacement(t, b)
	target := b.setIsolation(t, tenant.Shared).Migration.Target.Location
	if s := b.placement(t); s.Writable() {
		t.Fatalf("the target %+v is writable before it exists", s.Migration.Target)
	}
	b.setPartitionID(t, target, 5)
	first := b.placement(t).Migration
	b.wantAdvanced(t, id, first.Run, 77, true)
	b.setIsolation(t, tenant.Shared)
	if now := b.placement(t).Migration; now.Run != first.Run {
		t.Fatal("a run with a recent heartbeat was replaced")
	}
	exec(t, b.owner, "update placement_migrations set heartbeat_at = now() - interval '2 minutes'")
	b.setIsolation(t, tenant.Shared)
	second := b.placement(t).Migration
	if second.Run == first.Run {
		t.Error("the stalled run was not replaced")
	}
	if second.Cursor != 77 {
		t.Errorf("the second run continues at %d, want 77", second.Cursor)
	}
	b.wantJobCount(t, "placement.migrate", 2)
	b.wantAdvanced(t, id, first.Run, 99, false)
	// The target was lost during the migration: copying starts over.
	b.setPartitionID(t, target, 6)
	third := b.placement(t).Migration
	if third.Run == second.Run {
		t.Error("the run into the lost target was not replaced")
	}
	if third.Cursor != 0 {
		t.Errorf("the third run continues at %d, want 0", third.Cursor)
	}
}

func TestRebuildCancelsMigration(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, p := assignPlacement(t, b)
	target := b.setIsolation(t, tenant.Shared).Migration.Target.Location
	b.setPartitionID(t, target, 5)
	b.setPartitionID(t, p, 2)
	if s := b.placement(t); !s.Rebuilding() {
		t.Errorf("placement is %+v, want a rebuild", s)
	}
	b.wantJobCount(t, "placement.drop", 2)
}

// settled returns the state of a tenant without a migration.
func settled(at placement.Location, partitionID int64) placement.State {
	return placement.State{Current: placement.Placement{Location: at, PartitionID: partitionID}}
}

func (b *testBundle) wantPlacement(t *testing.T, want placement.State) {
	t.Helper()
	if diff := cmp.Diff(want, b.placement(t)); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
}

func (b *testBundle) wantJobCount(t *testing.T, kind string, want int) {
	t.Helper()
	if got := b.jobs(t, kind); got != want {
		t.Errorf("%d jobs of kind %s, want %d", got, kind, want)
	}
}

func (b *testBundle) wantAdvanced(t *testing.T, id tenant.ID, run int64, cursor retrieve.UnitID, want bool) {
	t.Helper()
	got, err := b.AdvanceMigration(t.Context(), id, run, cursor)
	if err != nil {
		t.Fatalf("AdvanceMigration of run %d: %v", run, err)
	}
	if got != want {
		t.Errorf("AdvanceMigration of run %d = %t, want %t", run, got, want)
	}
}

func TestPurgeDropsBothLocations(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := assignPlacement(t, b)
	next := b.setIsolation(t, tenant.Shared).Migration.Target.Location
	b.setPartitionID(t, next, 5)
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Purge(t.Context(), b.DB, droppedAtOnce{}, id); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[placement.Location]int{p: 2, next: 2}, b.drops(t)); diff != "" {
		t.Errorf("locations to drop (-want +got):\n%s", diff)
	}
}

// drops counts the jobs that drop a location later.
func (b *testBundle) drops(t *testing.T) map[placement.Location]int {
	t.Helper()
	got := map[placement.Location]int{}
	rows, err := b.owner.Query(t.Context(), `select coalesce(args->>'cell', ''), args->>'collection', args->>'partition', (args->>'shared')::boolean
		from river_job where kind = 'placement.drop' and scheduled_at > now()`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p placement.Location
		if err := rows.Scan(&p.Cell, &p.Collection, &p.Partition, &p.Shared); err != nil {
			t.Fatal(err)
		}
		got[p]++
	}
	return got
}

// TestApplyWithoutChangesTakesNoLocks locks the tables, so that a write would wait.
func TestApplyWithoutChangesTakesNoLocks(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	tx, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, table := range []string{"tenants", "quotas", "users"} {
		if _, err := tx.Exec(t.Context(), "lock table "+table+" in exclusive mode"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := b.Apply(ctx, b.specs[0])
	if err != nil {
		t.Fatalf("Apply: %v, want it not to wait for a lock", err)
	}
	if len(got.Users) != 2 {
		t.Errorf("Apply returned users %+v, want 2", got.Users)
	}
}

// TestLeaveIndexDuringMigrationToAnotherModel: the progress remains, because the vectors are in
// PostgreSQL, and every location is dropped.
func TestLeaveIndexDuringMigrationToAnotherModel(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b, unindexed := setupIn(t, d, nil), postgrestest.OpenUnindexed(t, d)
	id, p := assignPlacement(t, b)
	target := b.copyToEmbeddingTarget(t, id, false)
	state, err := unindexed.ReconcilePlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := state.Next.Placement
	if state.Current.Indexed() || nowhere.Indexed() || state.Next.Cursor != 77 {
		t.Errorf("placement is %+v, want no index and the same progress", state)
	}
	if diff := cmp.Diff(map[placement.Location]int{p: 2, target.Placement.Location: 2}, b.drops(t)); diff != "" {
		t.Errorf("locations to drop (-want +got):\n%s", diff)
	}
	if valid, err := b.AdvanceEmbeddingTarget(t.Context(), id, target.Placement, 99, true); err != nil || valid {
		t.Errorf("AdvanceEmbeddingTarget of the location that was left = %t, %v", valid, err)
	}
	if valid, err := b.AdvanceEmbeddingTarget(t.Context(), id, nowhere, 99, true); err != nil || !valid {
		t.Errorf("AdvanceEmbeddingTarget = %t, %v", valid, err)
	}
	if err := b.CutOver(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if state := b.getPlacement(t, id); state.Current.Location != nowhere.Location || state.Generation != target.Generation {
		t.Errorf("placement is %+v, want %+v in the next generation", state, nowhere)
	}
	if n := b.jobs(t, "placement.drop"); n != 4 {
		t.Errorf("%d jobs drop locations, want none in addition to the 4", n)
	}
}

func (b *testBundle) getPlacement(t *testing.T, id tenant.ID) placement.State {
	t.Helper()
	state, err := b.GetPlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestMigrateToAnotherModelWithoutIndex: the second placement is in no index either, and units are
// written to it.
func TestMigrateToAnotherModelWithoutIndex(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b, unindexed := setupIn(t, d, nil), postgrestest.OpenUnindexed(t, d)
	id := b.users[0].Tenant
	if _, err := unindexed.EnsurePlacement(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	next := b.startEmbeddingTarget(t, id)
	if next.Placement.Indexed() {
		t.Fatalf("EnsureEmbeddingTarget = %+v, want no index", next)
	}
	want := []placement.Target{{Location: b.getPlacement(t, id).Current.Location, Generation: 1}, {Location: next.Placement.Location, Generation: next.Generation}}
	if diff := cmp.Diff(want, b.getPlacement(t, id).Targets()); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if err := b.DiscardTarget(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.wantJobCount(t, "placement.drop", 0)
}
