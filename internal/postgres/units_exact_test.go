package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// insertUnits adds n units to a user's memory as the owner of the database. Their words
// have a skewed distribution, like those of a language, and their vectors are equal.
// confirmed is an SQL expression for indexed_at.
func (b *testBundle) insertUnits(t testing.TB, scope tenant.Scope, memory string, n int, confirmed string) {
	t.Helper()
	sql := `insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id, indexed_at)
		select $1, $2, 1, 1, $3, 0, 1, to_tsvector('english', (
			select string_agg('lorem' || (4000 * random() ^ 4)::int, ' ') from generate_series(1, 40 + 0 * n))),
			decode(repeat('0028', 384), 'hex'), 0, ` + confirmed + `
		from generate_series(1, $4::int) n`
	if _, err := b.owner.Exec(t.Context(), sql, scope.Tenant, scope.User, memory, n); err != nil {
		t.Fatal(err)
	}
	if _, err := b.owner.Exec(t.Context(), "vacuum analyze units"); err != nil {
		t.Fatal(err)
	}
}

func TestExactScoresAllUnitsOfSmallUser(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	r := rand.New(rand.NewPCG(3, 4))
	vectors := map[string][]float32{}
	embed := func(text string) []float32 {
		vectors[text] = randomUnit(r)
		return vectors[text]
	}
	for i := range 60 {
		b.remember(t, b.users[0], fmt.Sprint("memory ", i), embed)
		b.remember(t, b.users[1+i%3], fmt.Sprint("other memory ", i), embed)
	}
	exec(t, b.owner, "update units set indexed_at = '2020-01-01'")
	query := randomUnit(r)
	type scored struct {
		text  string
		score float64
	}
	var want []scored
	for i := range 60 {
		text := retrieve.MemoryDense(fmt.Sprint("memory ", i))
		want = append(want, scored{text, cosine(query, vectors[text])})
	}
	slices.SortFunc(want, func(a, b scored) int { return cmp.Compare(b.score, a.score) })

	q := retrieve.Request{Kind: retrieve.Memory, Limit: 20}
	hits, coverage, err := b.exact(t.Context(), b.users[0], q, query)
	if err != nil {
		t.Fatal(err)
	}
	if want := (retrieve.Coverage{All: true}); coverage != want {
		t.Errorf("coverage = %+v, want %+v", coverage, want)
	}
	if len(hits) != len(want) {
		t.Fatalf("%d hits, want all %d", len(hits), len(want))
	}
	units := b.load(t, b.users[0].Tenant, hits)
	for i, h := range hits {
		if d := h.Score - want[i].score; d > 1e-3 || d < -1e-3 || units[h.ID].Dense != want[i].text && i < 3 {
			t.Errorf("hit %d is %q with %v, want %v", i, units[h.ID].Dense, h.Score, want[i])
		}
	}
	b.remember(t, b.users[0], "not embedded yet", nil)
	_, coverage, err = b.exact(t.Context(), b.users[0], q, query)
	if err != nil || coverage != (retrieve.Coverage{All: true, Missing: true}) {
		t.Errorf("coverage with a missing vector: %+v, %v", coverage, err)
	}
}

// exact counts the units and scores them, as the engine does.
func (b *testBundle) exact(ctx context.Context, scope tenant.Scope, q retrieve.Request, vector []float32) ([]retrieve.Hit, retrieve.Coverage, error) {
	var err error
	if q.WithinExactLimit, err = b.WithinExactLimit(ctx, scope, q); err != nil {
		return nil, retrieve.Coverage{}, err
	}
	return b.Exact(ctx, scope, q, vector)
}

func (b *testBundle) load(t testing.TB, id tenant.ID, hits []retrieve.Hit) map[retrieve.UnitID]retrieve.Unit {
	t.Helper()
	var ids []retrieve.UnitID
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	units, err := b.Load(t.Context(), id, ids)
	if err != nil || len(units) != len(ids) {
		t.Fatalf("Load of %d = %d, %v", len(ids), len(units), err)
	}
	out := map[retrieve.UnitID]retrieve.Unit{}
	for _, u := range units {
		out[u.ID] = u.Unit
	}
	return out
}

func TestExactFilters(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	v := randomUnit(rand.New(rand.NewPCG(5, 6)))
	id := b.remember(t, b.users[0], "text", func(string) []float32 { return v })
	exec(t, b.owner, "update memories set created_at = $1", start)
	for name, test := range map[string]struct {
		query retrieve.Request
		want  int
	}{
		"all":         {retrieve.Request{}, 1},
		"other group": {retrieve.Request{Group: 1 << 40}, 0},
		"from":        {retrieve.Request{From: start}, 1},
		"from later":  {retrieve.Request{From: start.Add(1e6)}, 0},
		"to":          {retrieve.Request{To: start.Add(1e6)}, 1},
		"to earlier":  {retrieve.Request{To: start}, 0},
	} {
		test.query.Kind, test.query.Limit = retrieve.Memory, 10
		hits, _, err := b.exact(t.Context(), b.users[0], test.query, v)
		if err != nil || len(hits) != test.want {
			t.Errorf("%s: %v, %v, want %d hits", name, hits, err, test.want)
		}
	}
	if _, err := b.Memories().Delete(t.Context(), b.users[0], []string{id}); err != nil {
		t.Fatal(err)
	}
	hits, _, err := b.exact(t.Context(), b.users[0], retrieve.Request{Kind: retrieve.Memory, Limit: 1}, v)
	if err != nil || len(hits) != 0 {
		t.Errorf("after the deletion: %v, %v, want no hits", hits, err)
	}
}

// The few units of a time are all scored, also if the user has too many others for that: the
// index has no times.
func TestExactScoresAllUnitsOfATime(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, v := b.users[0], randomUnit(rand.New(rand.NewPCG(9, 9)))
	embed := func(string) []float32 { return v }
	last := b.remember(t, scope, "last week", embed)
	want := b.unitsOf(t, last)
	b.insertUnits(t, scope, b.remember(t, scope, "another time", embed), placement.ExactUnits, "now() - interval '1 hour'")
	exec(t, b.owner, "update units set indexed_at = now() - interval '1 hour'")
	exec(t, b.owner, "update memories set created_at = $1", start)
	exec(t, b.owner, "update memories set created_at = $1 where id = $2", start.AddDate(0, 0, 7), last)
	for name, q := range map[string]retrieve.Request{
		"from": {From: start.AddDate(0, 0, 7)}, "both": {From: start.AddDate(0, 0, 6), To: start.AddDate(0, 0, 8)},
	} {
		q.Kind, q.Limit = retrieve.Memory, 10
		hits, coverage, err := b.exact(t.Context(), scope, q, v)
		if err != nil || len(hits) != 1 || hits[0].ID != want[0] || !coverage.All {
			t.Errorf("%s: %v, %+v, %v, want the unit %d of all that match", name, hits, coverage, err, want[0])
		}
	}
	for name, q := range map[string]retrieve.Request{"all": {}, "to": {To: start.AddDate(0, 0, 1)}} {
		q.Kind = retrieve.Memory
		if within, err := b.WithinExactLimit(t.Context(), scope, q); within || err != nil {
			t.Errorf("%s: within the limit %v, %v, want more than %d units", name, within, err, placement.ExactUnits)
		}
	}
	for name, q := range map[string]retrieve.Request{"created": {From: start}, "created and written": {To: start, After: start}} {
		q.Kind = retrieve.Chat
		if within, err := b.WithinExactLimit(t.Context(), scope, q); !within || err != nil {
			t.Errorf("%s: within the limit %v, %v, want none in conversations", name, within, err)
		}
	}
}

func TestExactScoresUnconfirmedUnitsOfLargeUser(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	r := rand.New(rand.NewPCG(7, 8))
	embed := func(string) []float32 { return randomUnit(r) }
	first := b.remember(t, scope, "confirmed long ago", embed)
	exec(t, b.owner, "update units set indexed_at = now() - interval '11 seconds'")
	b.insertUnits(t, scope, first, 2000, "now() - interval '1 hour'")
	recent := b.unitsOf(t, b.remember(t, scope, "confirmed just now", embed))
	if err := b.Confirm(t.Context(), scope.Tenant, []tenant.UserID{scope.User}, recent); err != nil {
		t.Fatal(err)
	}
	never := b.unitsOf(t, b.remember(t, scope, "never confirmed", embed))
	b.remember(t, b.users[1], "memory of another user", embed)

	q := retrieve.Request{Kind: retrieve.Memory, Limit: 9000}
	exact := func() ([]retrieve.UnitID, retrieve.Coverage) {
		t.Helper()
		hits, coverage, err := b.exact(t.Context(), scope, q, randomUnit(r))
		if err != nil {
			t.Fatal(err)
		}
		var ids []retrieve.UnitID
		for _, h := range hits {
			ids = append(ids, h.ID)
		}
		slices.Sort(ids)
		return ids, coverage
	}
	want := append(recent, never...)
	if got, coverage := exact(); !slices.Equal(got, want) || coverage != (retrieve.Coverage{}) {
		t.Errorf("Exact = %v, %+v, want %v", got, coverage, want)
	}
	q.Group = 1 << 40
	if got, _ := exact(); len(got) != 0 {
		t.Errorf("Exact in another bucket = %v, want nothing", got)
	}
	q.Group = 0
	q.From = start.AddDate(100, 0, 0)
	if got, _ := exact(); len(got) != 0 {
		t.Errorf("Exact in the future = %v, want nothing", got)
	}
	q.From = start
	if got, _ := exact(); !slices.Equal(got, want) {
		t.Errorf("Exact since 2025 = %v, want %v", got, want)
	}
	b.remember(t, scope, "without a vector", nil)
	if _, coverage := exact(); coverage != (retrieve.Coverage{Missing: true}) {
		t.Errorf("coverage with a missing vector: %+v", coverage)
	}
	b.insertUnits(t, scope, first, 5000, "null")
	got, coverage := exact()
	if len(got) != 5000 {
		t.Errorf("%d of 5,002 unconfirmed units were scored, want 5,000", len(got))
	}
	if !coverage.Truncated {
		t.Error("coverage is not truncated")
	}
	if coverage.All {
		t.Error("coverage is complete")
	}
	if slices.Contains(got, never[0]) {
		t.Error("the oldest unconfirmed unit was scored, want the newest")
	}
}

// TestExactScoresAllUnitsWithoutIndex: no limit applies if no index contains the units, also of the
// memories that match a filter.
func TestExactScoresAllUnitsWithoutIndex(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	embed := func(string) []float32 { return randomUnit(rand.New(rand.NewPCG(9, 10))) }
	first := b.remember(t, scope, "the first of many", embed)
	b.insertUnits(t, scope, first, 7000, "now() - interval '1 hour'")
	b.remember(t, b.users[1], "memory of another user", embed)
	for name, q := range map[string]retrieve.Request{
		"all":    {},
		"filter": {Owners: []string{first}},
	} {
		q.Kind, q.Limit, q.Unindexed = retrieve.Memory, 10, true
		hits, coverage, err := b.Exact(t.Context(), scope, q, embed(""))
		if want := (retrieve.Coverage{All: true}); err != nil || coverage != want {
			t.Errorf("%s: coverage = %+v, %v, want %+v", name, coverage, err, want)
		}
		if len(hits) != 7001 {
			t.Errorf("%s: %d hits, want 7001", name, len(hits))
		}
	}
}
