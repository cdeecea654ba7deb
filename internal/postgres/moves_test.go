package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// placed gives the first tenant a place, numbered 1, with two indexed units in it.
func placed(t *testing.T, b *testBundle) (tenant.ID, tenant.Placement) {
	t.Helper()
	id := b.users[0].Tenant
	p, err := b.Place(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b.refill(t, p, 1)
	b.remember(t, b.users[0], "The boiler was serviced.", nil)
	b.remember(t, b.users[1], "The tax return was sent.", nil)
	b.remember(t, b.users[2], "The other tenant's.", nil)
	for _, id := range []tenant.ID{b.users[0].Tenant, b.users[2].Tenant} {
		if err := b.Confirm(t.Context(), id, b.liveUnits(t, id, 100)); err != nil {
			t.Fatal(err)
		}
	}
	return id, p
}

func (b *testBundle) refill(t *testing.T, p tenant.Placement, made int64) {
	t.Helper()
	if err := b.Refill(t.Context(), b.users[0].Tenant, p, made); err != nil {
		t.Fatal(err)
	}
}

func (b *testBundle) whereabouts(t *testing.T) retrieve.Whereabouts {
	t.Helper()
	w, err := b.Places(t.Context(), b.users[0].Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (b *testBundle) isolate(t *testing.T, as tenant.Isolation) tenant.Places {
	t.Helper()
	b.specs[0].Isolation = as
	if _, err := b.Apply(t.Context(), b.specs[0]); err != nil {
		t.Fatal(err)
	}
	places, err := b.Move(t.Context(), b.users[0].Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return places
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

func TestPlacesBeforePlace(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, err := b.Places(t.Context(), b.users[0].Tenant)
	wantKind(t, "Places before Place", err, fault.NotFound)
}

func TestANewPlaceNeedsNoFilling(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := placed(t, b)
	if w := b.whereabouts(t); w != (retrieve.Whereabouts{Current: p}) || b.jobs(t, "index.fill") != 0 {
		t.Errorf("tenant %s is at %+v with %d jobs, want nothing to be filled", id, w, b.jobs(t, "index.fill"))
	}
}

func TestALostPlaceIsFilledOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := placed(t, b)
	for range 2 {
		b.refill(t, p, 2)
	}
	w := b.whereabouts(t)
	if w.Current != p || w.Filling != p || b.jobs(t, "index.fill") != 1 {
		t.Fatalf("at %+v with %d jobs, want the place to be filled by one", w, b.jobs(t, "index.fill"))
	}
	if n := b.number(t, "select count(*) from units where indexed_at is not null and tenant_id = $1", id); n != 0 {
		t.Errorf("%d units count as indexed in a place that was lost", n)
	}
	if n := b.number(t, "select count(*) from units where indexed_at is not null"); n != 1 {
		t.Errorf("%d units of others count as indexed, want theirs", n)
	}
	if places := b.isolate(t, tenant.Shared); !places.Rebuilding || places.Next != (tenant.Place{}) {
		t.Errorf("places are %+v, want it to be rebuilt before it is moved", places)
	}
	if err := b.Filled(t.Context(), id, w.Run+1); err != nil || b.whereabouts(t) != w {
		t.Errorf("another run ended it (%v): at %+v", err, b.whereabouts(t))
	}
	if err := b.Filled(t.Context(), id, w.Run); err != nil || b.whereabouts(t) != (retrieve.Whereabouts{Current: p}) {
		t.Errorf("Filled: %v, at %+v", err, b.whereabouts(t))
	}
	if b.jobs(t, "index.empty") != 0 {
		t.Error("the place is to be emptied")
	}
}

func TestARunThatIsNotHeardOfIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, _ := placed(t, b)
	next := b.isolate(t, tenant.Shared).Next.Placement
	if w := b.whereabouts(t); w.Filling != (tenant.Placement{}) {
		t.Fatalf("jobs write to %+v before it was made", w.Filling)
	}
	b.refill(t, next, 5)
	first := b.whereabouts(t)
	if wanted, err := b.Advance(t.Context(), id, first.Run, 77); err != nil || !wanted {
		t.Fatalf("Advance = %t, %v", wanted, err)
	}
	b.isolate(t, tenant.Shared)
	if now := b.whereabouts(t); now.Run != first.Run {
		t.Fatal("a run that was just heard of was replaced")
	}
	exec(t, b.owner, "update fills set heard_at = now() - interval '2 minutes'")
	b.isolate(t, tenant.Shared)
	second := b.whereabouts(t)
	if second.Run == first.Run || second.Upto != 77 || b.jobs(t, "index.fill") != 2 {
		t.Errorf("at %+v with %d jobs, want another run that goes on at 77", second, b.jobs(t, "index.fill"))
	}
	if wanted, err := b.Advance(t.Context(), id, first.Run, 99); err != nil || wanted {
		t.Errorf("Advance of the first run = %t, %v, want it to be refused", wanted, err)
	}
	// Lost on the way: all of it is to be written again.
	b.refill(t, next, 6)
	if third := b.whereabouts(t); third.Upto != 0 || third.Run == second.Run {
		t.Errorf("at %+v, want the filling to begin anew", third)
	}
}

func TestAMoveGivesWayToARebuilding(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, p := placed(t, b)
	next := b.isolate(t, tenant.Shared).Next.Placement
	b.refill(t, next, 5)
	b.refill(t, p, 2)
	if w := b.whereabouts(t); w.Filling != p || b.jobs(t, "index.empty") != 2 {
		t.Errorf("at %+v with %d jobs that empty the other, want it to be rebuilt", w, b.jobs(t, "index.empty"))
	}
}

func TestPurgeEmptiesPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := placed(t, b)
	next := b.isolate(t, tenant.Shared).Next.Placement
	b.refill(t, next, 5)
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if err := b.Purge(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := map[tenant.Placement]int{}
	rows, err := b.owner.Query(t.Context(), `select args->>'collection', args->>'partition', (args->>'shared')::boolean
		from river_job where kind = 'index.empty' and scheduled_at > now()`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p tenant.Placement
		if err := rows.Scan(&p.Collection, &p.Partition, &p.Shared); err != nil {
			t.Fatal(err)
		}
		got[p]++
	}
	if diff := cmp.Diff(map[tenant.Placement]int{p: 2, next: 2}, got); diff != "" {
		t.Errorf("places to be emptied (-want +got):\n%s", diff)
	}
}

// TestApplyingWhatIsAppliedLocksNothing holds the rows that a write, or a lock,
// would have to wait for.
func TestApplyingWhatIsAppliedLocksNothing(t *testing.T) {
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
	if got, err := b.Apply(ctx, b.specs[0]); err != nil || len(got.Users) != 2 {
		t.Errorf("Apply = %+v, %v, want the tenant without waiting for a lock", got, err)
	}
}
