package jobs_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const size = 16 // of vectors

// oneVector embeds everything alike, so that a search finds all there is.
type oneVector struct{}

func (oneVector) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = make([]float32, size)
		out[i][0] = 1
	}
	return out, nil
}
func (oneVector) Model() string   { return postgrestest.Generation.Model }
func (oneVector) Dimensions() int { return size }

// mover is a tenant in PostgreSQL and Milvus, with workers between them and a
// neighbour beside it.
type mover struct {
	db       *postgres.DB
	owner    *pgxpool.Pool
	index    *milvus.Index
	spec     tenant.Spec
	scope    tenant.Scope
	neighbor *mover
}

func setupMover(t *testing.T) *mover {
	t.Helper()
	d, addr := postgrestest.Create(t), testkit.Milvus(t)
	m := &mover{db: postgrestest.Open(t, d)}
	var err error
	if m.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.owner.Close)
	m.index, err = milvus.Open(t.Context(), milvus.Config{Address: addr.Addr, Username: addr.User, Password: addr.Password,
		Prefix: "move" + strings.ToLower(rand.Text()) + "_", Dimensions: size})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.index.Close() })
	m.neighbor = &mover{db: m.db, owner: m.owner, index: m.index}
	m.work(t)
	for _, m := range []*mover{m, m.neighbor} {
		m.spec = tenanttest.NewSpec()
		m.spec.Quota.Memories, m.spec.Quota.UserMemories = 1e6, 1e6
		m.reconcile(t, tenant.Partition)
	}
	return m
}

// work runs the jobs until the test ends.
func (m *mover) work(t *testing.T) {
	t.Helper()
	config, err := jobs.Config(retrieve.NewIndexer(m.db, m.index, oneVector{}), m.db, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := m.db.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop workers: %v", err)
		}
	})
}

// reconcile does what the operator does about places.
func (m *mover) reconcile(t *testing.T, as tenant.Isolation) placement.State {
	t.Helper()
	m.spec.Isolation = as
	got, err := m.db.Apply(t.Context(), m.spec)
	if err != nil {
		t.Fatal(err)
	}
	m.scope = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}
	if _, err := m.db.EnsurePlacement(t.Context(), got.ID); err != nil {
		t.Fatal(err)
	}
	places, err := m.db.ReconcilePlacement(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []placement.Location{places.Current.Location, places.Migration.Target.Location} {
		if p == (placement.Location{}) {
			continue
		}
		made, err := placement.WaitLoaded(m.index).Ensure(t.Context(), placement.Placement{Location: p})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.db.SetPartitionID(t.Context(), got.ID, p, made); err != nil {
			t.Fatal(err)
		}
	}
	return places
}

// reconcileUntil reconciles until the tenant is at a place of the kind and
// nothing is on its way.
func (m *mover) reconcileUntil(t *testing.T, as tenant.Isolation) placement.Location {
	t.Helper()
	for started := time.Now(); ; {
		places := m.reconcile(t, as)
		if places.Current.Shared == (as == tenant.Shared) && places.Migration.Target == (placement.Placement{}) && !places.Rebuilding() {
			return places.Current.Location
		}
		if time.Since(started) > patience {
			t.Fatalf("after %s it is at %+v", patience, places)
		}
	}
}

func (m *mover) remember(t *testing.T, text string) {
	t.Helper()
	units := retrieve.MemoryUnits(text)
	for i := range units {
		units[i].Vector = make([]float32, size)
		units[i].Vector[0] = 1
	}
	if _, err := m.db.Memories().Create(t.Context(), m.scope, memory.NewMemory{
		CreateInput: memory.CreateInput{Text: text}, Tokens: 1, Units: units,
	}); err != nil {
		t.Error(err)
	}
}

// settled waits until everything is indexed, and returns the live units.
func (m *mover) settled(t *testing.T) []retrieve.UnitID {
	t.Helper()
	for started := time.Now(); ; {
		var n int
		if err := m.owner.QueryRow(t.Context(), "select count(*) from units where tenant_id = $1 and indexed_at is null", m.scope.Tenant).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if time.Since(started) > patience {
			t.Fatalf("%d units are not indexed", n)
		}
	}
	live, err := m.db.Live(t.Context(), m.scope.Tenant, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// listed asks Milvus itself, strongly, what is in a place; nil when it is not there.
func (m *mover) listed(t *testing.T, p placement.Location) []retrieve.UnitID {
	t.Helper()
	ids, err := m.index.List(t.Context(), m.scope.Tenant, p, 0, 10_000)
	if err != nil && !strings.Contains(err.Error(), retrieve.ErrNoPartition.Error()) {
		t.Fatal(err)
	}
	return ids
}

// wantIn checks that the place holds exactly the units.
func (m *mover) wantIn(t *testing.T, p placement.Location, want []retrieve.UnitID) {
	t.Helper()
	for started := time.Now(); ; { // a job may be about to take out what was just deleted
		diff := cmp.Diff(want, m.listed(t, p))
		if diff == "" {
			return
		}
		if time.Since(started) > patience {
			t.Fatalf("units in %+v (-want +got):\n%s", p, diff)
		}
	}
}

// search returns what a replica that knows the current place finds of units
// that were there all the time.
func (m *mover) search(t *testing.T, of []retrieve.UnitID) int {
	t.Helper()
	w, err := m.db.GetPlacement(t.Context(), m.scope.Tenant)
	if err != nil {
		t.Error(err)
		return 0
	}
	vectors, _ := oneVector{}.Embed(t.Context(), []string{""})
	hits, err := m.index.Search(t.Context(), m.scope, w.Current.Location, retrieve.Query{Kind: retrieve.Memory, Limit: 2000}, vectors[0])
	if err != nil {
		t.Errorf("search in %+v: %v", w.Current, err)
		return 0
	}
	n := 0
	for _, h := range hits {
		if slices.Contains(of, h.ID) {
			n++
		}
	}
	return n
}

// TestMoveWhileItIsUsed moves a tenant to a shared place and back while it
// writes, deletes and searches, and asks Milvus itself what is left where.
func TestMoveWhileItIsUsed(t *testing.T) {
	t.Parallel()
	m := setupMover(t)
	m.neighbor.remember(t, "The neighbour's piano is out of tune.")
	theirs := m.neighbor.reconcileUntil(t, tenant.Shared)
	theirUnits := m.neighbor.settled(t)
	for i := range 300 {
		m.remember(t, fmt.Sprintf("Letter %d is in the blue folder.", i))
	}
	lasting := m.settled(t)

	was := m.reconcile(t, tenant.Partition).Current.Location
	m.wantIn(t, was, lasting) // searches see from here on what the database does not score beside them
	for _, as := range []tenant.Isolation{tenant.Shared, tenant.Partition} {
		is := m.moveInUse(t, as, lasting)
		if is == was {
			t.Fatalf("moved from %+v to %+v", was, is)
		}
		live := m.settled(t)
		m.wantIn(t, is, live)
		m.emptyNow(t)
		m.wantIn(t, was, nil)
		m.wantIn(t, is, live)
		m.neighbor.wantIn(t, theirs, theirUnits)
		was = is
	}
}

// moveInUse moves the tenant while it writes, deletes and searches.
func (m *mover) moveInUse(t *testing.T, as tenant.Isolation, lasting []retrieve.UnitID) placement.Location {
	t.Helper()
	stop := make(chan struct{})
	var searches atomic.Int64
	var wait sync.WaitGroup
	use := func(do func(i int)) {
		wait.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					do(i)
				}
			}
		})
	}
	use(func(i int) {
		m.remember(t, fmt.Sprintf("Parcel %d to %s is on its way.", i, as))
		if i%3 == 2 { // the newest goes again
			m.forgetNewest(t)
		}
	})
	use(func(int) {
		if n := m.search(t, lasting); n != len(lasting) {
			t.Errorf("moving to %s: %d of %d were found", as, n, len(lasting))
		}
		searches.Add(1)
	})
	defer func() { // also where the move fails
		close(stop)
		wait.Wait()
		if searches.Load() == 0 {
			t.Errorf("moving to %s: nothing was searched meanwhile", as)
		}
	}()
	return m.reconcileUntil(t, as)
}

// TestLostPlaceIsRebuilt takes away the place of a tenant of either isolation.
func TestLostPlaceIsRebuilt(t *testing.T) {
	t.Parallel()
	m := setupMover(t)
	for i := range 30 {
		m.remember(t, fmt.Sprintf("Key %d opens the shed.", i))
	}
	live := m.settled(t)
	for _, as := range []tenant.Isolation{tenant.Partition, tenant.Shared} {
		p := m.reconcileUntil(t, as)
		if as == tenant.Partition {
			if err := m.index.Drop(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		} else if _, err := m.owner.Exec(t.Context(), "update placements set partition_id = 1 where tenant_id = $1", m.scope.Tenant); err != nil {
			t.Fatal(err) // as if the collection were another one
		} else if err := m.index.Drop(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		m.reconcileUntil(t, as)
		if diff := cmp.Diff(live, m.settled(t)); diff != "" {
			t.Errorf("live units (-want +got):\n%s", diff)
		}
		m.wantIn(t, p, live)
	}
}

// TestLostCollectionIsKnownToAll: when a shared collection is lost, nobody who
// was in it relies on the one that is made for the first of them.
func TestLostCollectionIsKnownToAll(t *testing.T) {
	t.Parallel()
	m := setupMover(t)
	for _, m := range []*mover{m, m.neighbor} {
		m.remember(t, "The well is behind the barn.")
		m.reconcileUntil(t, tenant.Shared)
		m.settled(t)
	}
	place := m.reconcile(t, tenant.Shared).Current
	if err := m.db.MarkLost(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*mover{m, m.neighbor} {
		var indexed int
		if err := m.owner.QueryRow(t.Context(), "select count(*) from units where tenant_id = $1 and indexed_at is not null", m.scope.Tenant).Scan(&indexed); err != nil {
			t.Fatal(err)
		}
		if indexed > 0 {
			t.Errorf("%d units of %s count as indexed in a collection that is lost", indexed, m.spec.ID)
		}
	}
	for _, m := range []*mover{m, m.neighbor} {
		m.reconcileUntil(t, tenant.Shared)
		m.wantIn(t, m.reconcile(t, tenant.Shared).Current.Location, m.settled(t))
	}
}

func (m *mover) forgetNewest(t *testing.T) {
	t.Helper()
	var id string
	if err := m.owner.QueryRow(t.Context(), "select id::text from memories where tenant_id = $1 order by seq desc limit 1", m.scope.Tenant).Scan(&id); err != nil {
		t.Error(err)
		return
	}
	if _, err := m.db.Memories().Delete(t.Context(), m.scope, []string{id}); err != nil {
		t.Error(err)
	}
}

// emptyNow runs the jobs that empty places, which wait for readers of the past.
func (m *mover) emptyNow(t *testing.T) {
	t.Helper()
	const due = "update river_job set scheduled_at = now(), state = 'available' where kind = 'index.empty' and state in ('scheduled', 'retryable')"
	for started := time.Now(); ; {
		if _, err := m.owner.Exec(t.Context(), due); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := m.owner.QueryRow(t.Context(), "select count(*) from river_job where kind = 'index.empty' and state <> 'completed'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Since(started) > patience {
			t.Fatalf("%d places are not emptied", n)
		}
	}
}
