package postgres_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// testBundle is a database with two tenants of two users each.
type testBundle struct {
	*postgres.DB
	owner *pgxpool.Pool
	specs []tenant.Spec
	users []tenant.Scope // two of the first tenant, then two of the second
}

// setup creates tenants with quotas high enough not to be reached by accident;
// change may be nil.
func setup(t testing.TB, change func(*tenant.Quota)) *testBundle {
	t.Helper()
	return setupIn(t, postgrestest.Create(t), change)
}

func setupIn(t testing.TB, d postgrestest.Database, change func(*tenant.Quota)) *testBundle {
	t.Helper()
	b := &testBundle{DB: postgrestest.Open(t, d)}
	var err error
	if b.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.owner.Close)
	if _, benchmark := t.(*testing.B); benchmark {
		if _, err := b.owner.Exec(t.Context(), "drop function test_check_audit, test_note_audit cascade"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		spec := tenanttest.NewSpec()
		spec.Quota.Memories, spec.Quota.UserMemories = 1e6, tenant.NoLimit
		spec.Quota.Conversations, spec.Quota.Storage = 1e6, 1<<40
		if change != nil {
			change(&spec.Quota)
		}
		got, err := b.Apply(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range got.Users {
			b.users = append(b.users, tenant.Scope{Tenant: got.ID, User: u.ID})
		}
		b.specs = append(b.specs, spec)
	}
	t.Cleanup(func() { b.checkCounters(t) })
	return b
}

// setQuota changes the quota of the first tenant and runs the resulting job.
func (b *testBundle) setQuota(t *testing.T, change func(*tenant.Quota)) {
	t.Helper()
	change(&b.specs[0].Quota)
	if _, err := b.Apply(t.Context(), b.specs[0]); err != nil {
		t.Fatal(err)
	}
	workJobs(t, b.DB, b.owner)
}

// checkCounters compares every counter with the rows it counts.
func (b *testBundle) checkCounters(t testing.TB) {
	t.Helper()
	// The test's context is canceled before cleanups run.
	wrong, err := postgrestest.WrongCounters(contextWithoutCancel(t), b.owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// remember stores a text with its units, with vectors if vector is not nil.
func (b *testBundle) remember(t testing.TB, scope tenant.Scope, text string, vector func(string) []float32) string {
	t.Helper()
	m := newMemory(text)
	if vector != nil {
		for i := range m.Units {
			m.Units[i].Vector = vector(m.Units[i].Dense)
		}
	}
	created, err := b.Memories().Create(t.Context(), scope, m)
	if err != nil {
		t.Fatalf("Create(%q): %v", text, err)
	}
	if created.Duplicate {
		t.Fatalf("Create(%q): duplicate", text)
	}
	return created.ID
}

func newMemory(text string) memory.NewMemory {
	return memory.NewMemory{
		CreateInput: memory.CreateInput{Text: text, Source: "test"},
		Tokens:      len(strings.Fields(text)),
		Units:       retrieve.MemoryUnits(text),
	}
}

// unitsOf returns the ids of a memory's or conversation's units, in order.
func (b *testBundle) unitsOf(t testing.TB, owner string) []retrieve.UnitID {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), "select id from units where coalesce(memory_id, conversation_id) = $1 order by id", owner)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[retrieve.UnitID])
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// jobUnits deletes the index jobs and returns the units they contain.
func (b *testBundle) jobUnits(t testing.TB) map[retrieve.UnitID]bool {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `with gone as (delete from river_job where kind = 'index.sync' returning args)
		select jsonb_array_elements(args -> 'units')::bigint from gone`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[retrieve.UnitID])
	if err != nil {
		t.Fatal(err)
	}
	out := map[retrieve.UnitID]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}

// withVectors returns units with vectors, for SaveVectors.
func withVectors(vectors map[retrieve.UnitID][]float32) (units []retrieve.Unit) {
	for id, v := range vectors {
		units = append(units, retrieve.Unit{ID: id, Vector: v})
	}
	return units
}

// randomUnit returns a random vector of length 1.
func randomUnit(r *rand.Rand) []float32 {
	v := make([]float32, postgrestest.Generation.Dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return unitVector(v)
}

func wantKind(t testing.TB, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: %v, want kind %s", what, err, kind)
	}
}
