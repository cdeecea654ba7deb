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

	"github.com/mnemo-dev/mnemo/internal/indexing"
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

// oneVector returns the same embedding for every text, so that a search finds all units.
type oneVector struct{}

func (oneVector) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = make([]float32, size)
		out[i][0] = 1
	}
	return out, nil
}
func (v oneVector) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := v.Embed(ctx, []string{text})
	return vectors[0], err
}
func (oneVector) Model() string   { return postgrestest.Generation.Model }
func (oneVector) Dimensions() int { return size }

// migrationEnv is a tenant in PostgreSQL and Milvus with running workers, and a
// neighbor in the same stores.
type migrationEnv struct {
	db       *postgres.DB
	owner    *pgxpool.Pool
	index    *milvus.Index
	spec     tenant.Spec
	scope    tenant.Scope
	neighbor *migrationEnv
}

func setupMigration(t *testing.T) *migrationEnv {
	t.Helper()
	m := openMigration(t)
	m.work(t)
	for _, m := range []*migrationEnv{m, m.neighbor} {
		m.reconcile(t, tenant.Partition)
	}
	return m
}

// openMigration is setupMigration without workers and tenants.
func openMigration(t *testing.T) *migrationEnv {
	t.Helper()
	d, addr := postgrestest.Create(t), testkit.Milvus(t)
	m := &migrationEnv{db: postgrestest.Open(t, d)}
	var err error
	if m.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.owner.Close)
	m.index, err = milvus.Open(t.Context(), milvus.Config{Address: addr.Addr, Username: addr.User, Password: addr.Password,
		Prefix: "migrate" + strings.ToLower(rand.Text()) + "_", Dimensions: size})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.index.Close() })
	m.neighbor = &migrationEnv{db: m.db, owner: m.owner, index: m.index}
	for _, m := range []*migrationEnv{m, m.neighbor} {
		m.spec = tenanttest.NewSpec()
		m.spec.Quota.Memories, m.spec.Quota.UserMemories = 1e6, 1e6
	}
	return m
}

// work runs the jobs until the test ends.
func (m *migrationEnv) work(t *testing.T) {
	t.Helper()
	config, err := jobs.Config(indexing.NewIndexer(m.db, m.index, retrieve.Embedders{1: oneVector{}}, slog.New(slog.DiscardHandler)), m.db, nil, slog.New(slog.DiscardHandler))
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

// reconcile applies the isolation and reconciles the placement, as the operator does.
func (m *migrationEnv) reconcile(t *testing.T, as tenant.Isolation) placement.State {
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
	state, err := m.db.ReconcilePlacement(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []placement.Location{state.Current.Location, state.Migration.Target.Location} {
		if p == (placement.Location{}) {
			continue
		}
		partitionID, err := placement.WaitLoaded(m.index).Ensure(t.Context(), placement.Placement{Location: p})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.db.SetPartitionID(t.Context(), got.ID, p, partitionID); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// reconcileUntil reconciles until the placement has the isolation and no
// migration is in progress.
func (m *migrationEnv) reconcileUntil(t *testing.T, as tenant.Isolation) placement.Location {
	t.Helper()
	for started := time.Now(); ; <-time.After(pollInterval) {
		state := m.reconcile(t, as)
		if state.Current.Shared == (as == tenant.Shared) && state.Migration.Target == (placement.Placement{}) && !state.Rebuilding() {
			return state.Current.Location
		}
		if time.Since(started) > patience {
			t.Fatalf("after %s the placement is %+v", patience, state)
		}
	}
}

func (m *migrationEnv) remember(t *testing.T, text string) {
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

// settled waits until all units are indexed and returns the live ones.
func (m *migrationEnv) settled(t *testing.T) []retrieve.UnitID {
	t.Helper()
	for started := time.Now(); ; <-time.After(pollInterval) {
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

// listed lists the units at a location in Milvus with strong consistency; nil if
// the location does not exist.
func (m *migrationEnv) listed(t *testing.T, p placement.Location) []retrieve.UnitID {
	t.Helper()
	ids, err := m.index.List(t.Context(), m.scope.Tenant, p, 0, 10_000)
	if err != nil && !strings.Contains(err.Error(), placement.ErrNoPartition.Error()) {
		t.Fatal(err)
	}
	return ids
}

// wantIn checks that the location contains exactly the units.
func (m *migrationEnv) wantIn(t *testing.T, p placement.Location, want []retrieve.UnitID) {
	t.Helper()
	for started := time.Now(); ; <-time.After(pollInterval) { // a job may still have to remove deleted units
		diff := cmp.Diff(want, m.listed(t, p))
		if diff == "" {
			return
		}
		if time.Since(started) > patience {
			t.Fatalf("units in %+v (-want +got):\n%s", p, diff)
		}
	}
}

// search returns how many of the units a search at the current location finds.
func (m *migrationEnv) search(t *testing.T, of []retrieve.UnitID) int {
	t.Helper()
	w, err := m.db.GetPlacement(t.Context(), m.scope.Tenant)
	if err != nil {
		t.Error(err)
		return 0
	}
	vectors, _ := oneVector{}.Embed(t.Context(), []string{""})
	hits, err := m.index.Search(t.Context(), m.scope, w.Current.Location, retrieve.Request{Kind: retrieve.Memory, Limit: 2000}, vectors[0])
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

// TestMigrationDuringUse migrates a tenant to a shared location and back while it
// writes, deletes and searches, and compares the contents of Milvus.
func TestMigrationDuringUse(t *testing.T) {
	t.Parallel()
	m := setupMigration(t)
	m.neighbor.remember(t, "The neighbor's piano is out of tune.")
	theirs := m.neighbor.reconcileUntil(t, tenant.Shared)
	theirUnits := m.neighbor.settled(t)
	for i := range 300 {
		m.remember(t, fmt.Sprintf("Letter %d is in the blue folder.", i))
	}
	lasting := m.settled(t)

	was := m.reconcile(t, tenant.Partition).Current.Location
	m.wantIn(t, was, lasting) // searches now depend on the index
	for _, as := range []tenant.Isolation{tenant.Shared, tenant.Partition} {
		is := m.migrateInUse(t, as, lasting)
		if is == was {
			t.Fatalf("migrated from %+v to %+v, want another location", was, is)
		}
		live := m.settled(t)
		m.wantIn(t, is, live)
		m.dropNow(t)
		m.wantIn(t, was, nil)
		m.wantIn(t, is, live)
		m.neighbor.wantIn(t, theirs, theirUnits)
		was = is
	}
}

// migrateInUse migrates the tenant while it writes, deletes and searches.
func (m *migrationEnv) migrateInUse(t *testing.T, as tenant.Isolation, lasting []retrieve.UnitID) placement.Location {
	t.Helper()
	stop := make(chan struct{})
	var searches atomic.Int64
	var wait sync.WaitGroup
	use := func(do func(i int)) {
		wait.Go(func() {
			tick := time.NewTicker(pollInterval)
			defer tick.Stop()
			for i := 0; ; i++ {
				do(i)
				select {
				case <-stop:
					return
				case <-tick.C:
				}
			}
		})
	}
	use(func(i int) {
		m.remember(t, fmt.Sprintf("Parcel %d to %s is on its way.", i, as))
		if i%3 == 2 { // delete the newest
			m.forgetNewest(t)
		}
	})
	use(func(int) {
		if n := m.search(t, lasting); n != len(lasting) {
			t.Errorf("migrating to %s: a search found %d of %d units", as, n, len(lasting))
		}
		searches.Add(1)
	})
	defer func() { // also if the migration fails
		close(stop)
		wait.Wait()
		if searches.Load() == 0 {
			t.Errorf("migrating to %s: no search ran", as)
		}
	}()
	return m.reconcileUntil(t, as)
}

// TestLostLocationIsRebuilt drops the location of a tenant of either isolation.
func TestLostLocationIsRebuilt(t *testing.T) {
	t.Parallel()
	m := setupMigration(t)
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
			t.Fatal(err) // simulates another collection of this name
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

// TestInterruptedLossIsRebuilt: the process that records the loss of a partition ends after the first batch of units.
func TestInterruptedLossIsRebuilt(t *testing.T) {
	t.Parallel()
	m := setupMigration(t)
	m.remember(t, "The boat is at the second pier.")
	p := m.reconcileUntil(t, tenant.Partition)
	m.settled(t)
	for _, sql := range []string{
		`insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, next_embedding, next_generation_id, indexed_at)
			select u.tenant_id, u.user_id, u.kind, u.group_id, u.memory_id, u.span_start, u.span_end, u.tsv, u.next_embedding, u.next_generation_id, now()
			from units u, generate_series(1, 700)`,
		"create function interrupt() returns trigger language plpgsql as $$ begin raise exception 'interrupted'; end $$",
		`do $$ begin execute format('create trigger interrupt before update on units for each row when (new.id = %s) execute function interrupt()',
			(select max(id) from units)); end $$`,
	} {
		if _, err := m.owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	lost := m.reconcile(t, tenant.Partition).Current
	if err := m.index.Drop(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := m.db.MarkLost(t.Context(), lost); err == nil {
		t.Fatal("MarkLost was not interrupted")
	}
	if _, err := m.owner.Exec(t.Context(), "drop trigger interrupt on units"); err != nil {
		t.Fatal(err)
	}
	m.reconcileUntil(t, tenant.Partition)
	live := m.settled(t)
	if len(live) != 701 {
		t.Errorf("%d live units, want 701", len(live))
	}
	m.wantIn(t, p, live)
}

// TestLostCollectionAffectsAllTenants loses a shared collection: no tenant in it
// may rely on the collection that is created for the first of them.
func TestLostCollectionAffectsAllTenants(t *testing.T) {
	t.Parallel()
	m := setupMigration(t)
	for _, m := range []*migrationEnv{m, m.neighbor} {
		m.remember(t, "The well is behind the barn.")
		m.reconcileUntil(t, tenant.Shared)
		m.settled(t)
	}
	lost := m.reconcile(t, tenant.Shared).Current
	if err := m.db.MarkLost(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*migrationEnv{m, m.neighbor} {
		var indexed int
		if err := m.owner.QueryRow(t.Context(), "select count(*) from units where tenant_id = $1 and indexed_at is not null", m.scope.Tenant).Scan(&indexed); err != nil {
			t.Fatal(err)
		}
		if indexed > 0 {
			t.Errorf("%d units of %s count as indexed in a lost collection", indexed, m.spec.ID)
		}
	}
	for _, m := range []*migrationEnv{m, m.neighbor} {
		m.reconcileUntil(t, tenant.Shared)
		m.wantIn(t, m.reconcile(t, tenant.Shared).Current.Location, m.settled(t))
	}
}

func (m *migrationEnv) forgetNewest(t *testing.T) {
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

// dropNow runs the jobs that drop unused locations, without their delay.
func (m *migrationEnv) dropNow(t *testing.T) {
	t.Helper()
	const due = "update river_job set scheduled_at = now(), state = 'available' where kind = 'placement.drop' and state in ('scheduled', 'retryable')"
	for started := time.Now(); ; <-time.After(pollInterval) {
		if _, err := m.owner.Exec(t.Context(), due); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := m.owner.QueryRow(t.Context(), "select count(*) from river_job where kind = 'placement.drop' and state <> 'completed'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Since(started) > patience {
			t.Fatalf("%d drop jobs have not completed", n)
		}
	}
}
