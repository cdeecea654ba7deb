package postgres_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var allMemories = retrieve.Query{Kind: retrieve.Memory, Limit: 10, Few: true}

// prefetch returns the best units for a vector, as a search reads them before it knows the vector.
func (b *testBundle) prefetch(t testing.TB, scope tenant.Scope, q retrieve.Query, vector []float32) ([]retrieve.Hit, retrieve.Coverage) {
	t.Helper()
	prefetched, _, err := b.Prefetch(t.Context(), scope, q)
	if err != nil || prefetched.Nearest == nil {
		t.Fatalf("Prefetch: %v, nothing was read: %t", err, prefetched.Nearest == nil)
	}
	return prefetched.Nearest(vector)
}

// TestPrefetchFollowsChanges: after every change, cached and added units have the same scores as those in the database.
func TestPrefetchFollowsChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	r := rand.New(rand.NewPCG(11, 12))
	change := b.randomChanges(t, b.users[0], b.users[1], r)
	for range 150 {
		name, q := change(), allMemories
		q.Text = randomWords(r, 9)
		if r.IntN(2) == 0 { // a creation adds units without validating the others
			stale := q
			stale.Staleness = time.Hour
			b.prefetch(t, b.users[0], stale, randomUnit(r))
		}
		// It compares both.
		if _, _, err := b.exact(t.Context(), b.users[0], q, randomUnit(r)); err != nil {
			t.Fatalf("after %q: %v", name, err)
		}
	}
}

// randomChanges returns a function that does something to the scope's memories or adds one of another user, and returns what.
func (b *testBundle) randomChanges(t *testing.T, scope, other tenant.Scope, r *rand.Rand) func() string {
	t.Helper()
	embed := func(string) []float32 { return randomUnit(r) }
	var memories []string
	var bucket int64
	var err error
	n := 0
	remember := func(vector func(string) []float32) {
		n++
		memories = append(memories, b.remember(t, scope, fmt.Sprint(randomWords(r, 30), n), vector))
	}
	embedded := func() memory.NewMemory {
		n++
		m := newMemory(fmt.Sprint(randomWords(r, 30), n))
		m.Units[0].Vector = randomUnit(r)
		return m
	}
	setActive := func(active bool) {
		exec(t, b.owner, "update units set active = $1 where id = (select id from units where user_id = $2 and active <> $1 order by random() limit 1)", active, scope.User)
	}
	changes := []struct {
		name string
		do   func()
	}{
		{"create", func() { remember(embed) }},
		{"create another user's", func() { n++; b.remember(t, other, fmt.Sprint("memory ", n), embed) }},
		{"delete", func() {
			if len(memories) == 0 {
				return
			}
			i := r.IntN(len(memories))
			if _, err := b.Memories().Delete(t.Context(), scope, memories[i:i+1]); err != nil {
				t.Fatal(err)
			}
			memories = slices.Delete(memories, i, i+1)
		}},
		{"create without a vector", func() { remember(nil) }},
		{"embed what has no vector", func() {
			var missing []retrieve.UnitID
			for _, id := range memories {
				missing = append(missing, b.unitsOf(t, id)...)
			}
			units, err := b.Load(t.Context(), scope.Tenant, missing)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range units {
				if len(u.Vectors) == 0 {
					if err := b.SaveVectors(t.Context(), scope.Tenant, []tenant.UserID{scope.User}, 0, withVectors(map[retrieve.UnitID][]float32{u.ID: randomUnit(r)}), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
		}},
		{"hide", func() { setActive(false) }},
		{"show an older one", func() { setActive(true) }},
		{"edit", func() {
			if len(memories) == 0 {
				return
			}
			m := embedded()
			if _, err := b.Memories().Update(t.Context(), scope, memory.Edit{
				UpdateInput: memory.UpdateInput{ID: memories[r.IntN(len(memories))], Text: &m.Text}, Tokens: 1, Units: m.Units,
			}); err != nil {
				t.Fatal(err)
			}
		}},
		{"supersede", func() {
			if len(memories) == 0 {
				return
			}
			m := embedded()
			m.Links.Supersedes = []string{memories[r.IntN(len(memories))]}
			created, err := b.Memories().Create(t.Context(), scope, m)
			if err != nil {
				t.Fatal(err)
			}
			memories = append(memories, created.ID)
		}},
		{"move", func() {
			if len(memories) == 0 {
				return
			}
			if bucket == 0 {
				if bucket, err = b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: "Work"}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.Memories().Move(t.Context(), scope, memory.MoveInput{IDs: memories[r.IntN(len(memories)):], Bucket: memory.BucketRef{ID: bucket}}); err != nil {
				t.Fatal(err)
			}
		}},
		{"rename the bucket", func() {
			n++
			name := fmt.Sprint("Work ", n)
			if err := b.UpdateBucket(t.Context(), scope, bucket, memory.BucketUpdate{Name: &name}); err != nil && bucket != 0 {
				t.Fatal(err)
			}
		}},
		{"create a long one", func() {
			n++
			memories = append(memories, b.remember(t, scope, fmt.Sprint(strings.Repeat("lörem ", postgres.MaxCachedText/6), n), embed))
		}},
		{"create one of the maximum length", func() {
			n++
			memories = append(memories, b.remember(t, scope, fmt.Sprint(n, strings.Repeat("é", (postgres.MaxCachedText-len(fmt.Sprint(n)))/2)), embed))
		}},
		{"create three", func() { remember(embed); remember(embed); remember(embed) }},
	}
	return func() string {
		change := changes[r.IntN(len(changes))]
		change.do()
		return change.name
	}
}

// randomWords returns up to n words, most of which are of a few frequent ones.
func randomWords(r *rand.Rand, n int) string {
	var b strings.Builder
	for range 1 + r.IntN(n) {
		fmt.Fprintf(&b, "lorem%d ", int(40*math.Pow(r.Float64(), 3)))
	}
	return b.String()
}

// everyMemory makes Exact score all units, however many.
var everyMemory = retrieve.Query{Kind: retrieve.Memory, Limit: 10, Unindexed: true}

// many gives a user more units than are read before a search, and caches them.
func (b *testBundle) many(t *testing.T, scope tenant.Scope) {
	t.Helper()
	v := randomUnit(rand.New(rand.NewPCG(23, 24)))
	b.insertUnits(t, scope, b.remember(t, scope, "the first of many", func(string) []float32 { return v }), placement.ExactUnits+500, "now()")
	b.cacheMany(t, scope)
}

// cacheMany caches the units of a user who has more than are read before a search, which two searches do.
func (b *testBundle) cacheMany(t *testing.T, scope tenant.Scope) {
	t.Helper()
	for range 2 {
		if p, few, err := b.Prefetch(t.Context(), scope, everyMemory); p.Nearest != nil || few || err != nil {
			t.Fatalf("many units were read before a search: %t, few %t, %v", p.Nearest != nil, few, err)
		}
	}
	b.AwaitUnits(t)
}

// TestPrefetchLoadsActiveUsers: after two searches, the vectors of a user with many units are cached and follow every change.
func TestPrefetchLoadsActiveUsers(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, r := b.users[0], rand.New(rand.NewPCG(25, 26))
	b.many(t, scope)
	change := b.randomChanges(t, scope, b.users[1], r)
	for range 80 {
		name, query, q := change(), randomUnit(r), everyMemory
		q.Text = randomWords(r, 9)
		p, few, err := b.Prefetch(t.Context(), scope, q)
		if p.Nearest == nil || !few || err != nil {
			t.Fatalf("after %q, the units are not cached: few %t, %v", name, few, err)
		}
		if err := errors.Join(b.sameWords(t.Context(), scope, q, p), b.sameTexts(t.Context(), scope, q, p)); err != nil {
			t.Fatalf("after %q: %v", name, err)
		}
		got, coverage := p.Nearest(query)
		want, wanted, err := b.Exact(t.Context(), scope, everyMemory, query)
		if err != nil || !sameHits(want, got, everyMemory.Limit) || coverage != wanted {
			t.Fatalf("after %q: %d hits, %+v, %v, want %d, %+v", name, len(got), coverage, err, len(want), wanted)
		}
	}
}

// TestPrefetchOfTooManyUnits: nothing is cached of a user with more units than the cache is for, and the vectors of one who gets them at once are dropped.
func TestPrefetchOfTooManyUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.many(t, b.users[0])
	for i, scope := range b.users[:2] {
		v := randomUnit(rand.New(rand.NewPCG(27, 28)))
		b.insertUnits(t, scope, b.remember(t, scope, "one of too many", func(string) []float32 { return v }), postgres.MaxCachedUnits, "now()")
		for range 3 {
			if p, few, err := b.Prefetch(t.Context(), scope, everyMemory); p.Nearest != nil || few || err != nil {
				t.Errorf("user %d: too many units were read: %t, few %t, %v", i, p.Nearest != nil, few, err)
			}
			b.AwaitUnits(t)
		}
	}
}

// TestPrefetchWithoutSpace: units that do not fit in the cache are ranked by the words of each search.
func TestPrefetchWithoutSpace(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, r := b.users[0], rand.New(rand.NewPCG(31, 32))
	embed := func(string) []float32 { return randomUnit(r) }
	search := func(text string) {
		t.Helper()
		q := allMemories
		q.Text = text
		if _, _, err := b.exact(t.Context(), scope, q, randomUnit(r)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	b.remember(t, scope, "a red apple", embed)
	b.remember(t, scope, "a green pear", embed)
	b.remember(t, scope, "a red cherry", nil)
	empty := b.FillCache(0)
	search("red")
	search("pear and cherry")
	empty()
	search("green apple")
	search("red")
	empty = b.FillCache(0)
	b.remember(t, scope, "a red grape", embed) // there is no space for it
	search("grape")
	empty()
	search("red pear")
}

// TestPrefetchKeepsUnitsInFullCache: units that have not changed stay in a cache without space for others. The database is changed as
// no statement of the server can.
func TestPrefetchKeepsUnitsInFullCache(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, v := b.users[0], randomUnit(rand.New(rand.NewPCG(33, 34)))
	for _, vector := range []func(string) []float32{func(string) []float32 { return v }, nil} { // with and without a missing vector
		b.remember(t, scope, fmt.Sprint("memory ", vector == nil), vector)
		b.prefetch(t, scope, allMemories, v)
		empty := b.FillCache(0)
		b.prefetch(t, scope, allMemories, v)
		exec(t, b.owner, "update units set embedding = decode(repeat('0000', 384), 'hex') where embedding is not null and user_id = $1", scope.User)
		if hits, _ := b.prefetch(t, scope, allMemories, v); len(hits) != 1 || hits[0].Score < 0.99 {
			t.Errorf("%v, want the cached vector", hits)
		}
		empty()
	}
}

// TestPrefetchCachesNothingWithoutSpace: the units of a user who has many are not cached either.
func TestPrefetchCachesNothingWithoutSpace(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	empty := b.FillCache(0)
	b.many(t, b.users[0])
	empty()
	if p, few, err := b.Prefetch(t.Context(), b.users[0], everyMemory); p.Nearest != nil || few || err != nil {
		t.Errorf("units were cached: %t, few %t, %v", p.Nearest != nil, few, err)
	}
}

// TestPrefetchKeepsTextsThatFit: the texts of a user with many units are cached if there is enough space for the units as they are kept, which is less
// than their maximum size while they are read, and for more units. Otherwise only the rest is.
func TestPrefetchKeepsTextsThatFit(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.many(t, b.users[0])
	size := b.CacheSize()
	for i, more := range []int{postgres.Growth + 4<<10, postgres.Growth - 40<<10} { // the distinct words have 32 KB, and all words while they are read 700 KB more
		b.ForgetUnits()
		empty := b.FillCache(size + more)
		b.many(t, b.users[1+i])
		p, _, err := b.Prefetch(t.Context(), b.users[1+i], everyMemory)
		if err != nil || !p.Cached {
			t.Fatalf("with space for %d of %d bytes, the units are not cached: %v", size+more, size, err)
		}
		hits, _ := p.Nearest(randomUnit(rand.New(rand.NewPCG(35, 36))))
		if found, _ := p.Describe([]retrieve.UnitID{hits[0].ID}); (len(found) > 0) != (more > postgres.Growth) {
			t.Errorf("with space for %d of %d bytes, texts are cached: %t", size+more, size, len(found) > 0)
		}
		empty()
	}
}

// TestPrefetchReadsAddedVectorsOnly: the database is changed as no statement of the server can, which
// only a vector that is read again shows.
func TestPrefetchReadsAddedVectorsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	r := rand.New(rand.NewPCG(13, 14))
	first, second, query := randomUnit(r), randomUnit(r), randomUnit(r)
	kept := b.unitsOf(t, b.remember(t, scope, "first", func(string) []float32 { return first }))[0]
	b.prefetch(t, scope, allMemories, query)
	added := b.unitsOf(t, b.remember(t, scope, "second", func(string) []float32 { return second }))[0]
	exec(t, b.owner, "update units set embedding = (select embedding from units where id = $1) where id = $2", added, kept)
	hits, _ := b.prefetch(t, scope, allMemories, query)
	got := map[retrieve.UnitID]float64{}
	for _, h := range hits {
		got[h.ID] = h.Score
	}
	for id, v := range map[retrieve.UnitID][]float32{kept: first, added: second} {
		if d := got[id] - cosine(query, v); len(got) != 2 || d > 1e-3 || d < -1e-3 {
			t.Errorf("unit %d of %v has the score %v, want %v", id, got, got[id], cosine(query, v))
		}
	}
	filtered := allMemories
	filtered.From = start.AddDate(-100, 0, 0)
	if hits, _ := b.prefetch(t, scope, filtered, query); len(hits) != 2 || hits[0].Score != hits[1].Score {
		t.Errorf("a search with a filter found %v, want the units as they are in the database", hits)
	}
}

// TestPrefetchKeepsVectorsBesideMissingOnes: a unit that never gets a vector, for instance because the endpoint refuses its
// text, does not make every search read all vectors.
func TestPrefetchKeepsVectorsBesideMissingOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, v := b.users[0], randomUnit(rand.New(rand.NewPCG(21, 22)))
	embed := func(string) []float32 { return v }
	missing := b.unitsOf(t, b.remember(t, scope, "without a vector", nil))[0]
	kept := b.unitsOf(t, b.remember(t, scope, "with a vector", embed))[0]
	b.prefetch(t, scope, allMemories, v)
	exec(t, b.owner, "update units set embedding = decode(repeat('0000', 384), 'hex') where id = $1", kept)
	b.remember(t, scope, "a newer one", embed)
	hits, coverage := b.prefetch(t, scope, allMemories, v)
	if len(hits) != 2 || hits[1].Score < 0.99 || coverage != (retrieve.Coverage{All: true, Missing: true}) {
		t.Errorf("%v, %+v, want two hits that equal the query, and a missing one", hits, coverage)
	}
	if err := b.SaveVectors(t.Context(), scope.Tenant, []tenant.UserID{scope.User}, 0, withVectors(map[retrieve.UnitID][]float32{missing: v}), nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		hits, coverage = b.prefetch(t, scope, allMemories, v)
		if len(hits) != 3 || hits[2].ID != missing || hits[2].Score < 0.99 || coverage != (retrieve.Coverage{All: true}) {
			t.Errorf("%v, %+v, want three hits that equal the query", hits, coverage)
		}
	}
}

// TestPrefetchDropsTexts: units that do not fit in the cache with their texts are cached without.
func TestPrefetchDropsTexts(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, v := b.users[0], randomUnit(rand.New(rand.NewPCG(37, 38)))
	remember := func(text string) retrieve.UnitID {
		return b.unitsOf(t, b.remember(t, scope, text, func(string) []float32 { return v }))[0]
	}
	var ids []retrieve.UnitID
	for n := range 8 {
		ids = append(ids, remember(fmt.Sprint("memory ", n, strings.Repeat(" x", 170))))
	}
	describe := func() (described []retrieve.Described, others []retrieve.UnitID) {
		t.Helper()
		p, _, err := b.Prefetch(t.Context(), scope, allMemories)
		if err != nil || p.Describe == nil {
			t.Fatalf("Prefetch: %v", err)
		}
		if hits, _ := p.Nearest(v); len(hits) < 8 || hits[7].Score < 0.99 {
			t.Errorf("%v, want hits that equal the query", hits)
		}
		return p.Describe(ids)
	}
	empty := b.FillCache(6000) // they need more than 7,000 bytes with their texts, and less than 5,000 without
	if described, others := describe(); len(described) != 0 || len(others) != 8 {
		t.Errorf("%d units are described and %d not, want none", len(described), len(others))
	}
	exec(t, b.owner, "update units set embedding = decode(repeat('0000', 384), 'hex') where user_id = $1", scope.User)
	describe() // the vectors are cached
	empty()
	ids = append(ids, remember("a short one"))
	if described, others := describe(); len(described) != 1 || described[0].Text != "a short one" || len(others) != 8 {
		t.Errorf("%d units are described and %d not, want the new one and the others without their texts", len(described), len(others))
	}
}

// TestPrefetchOfHighIDs: each replay of the erasure ledger skips a billion ids.
func TestPrefetchOfHighIDs(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, v := b.users[0], randomUnit(rand.New(rand.NewPCG(35, 36)))
	exec(t, b.owner, "select setval('unit_ids', 3000000000)")
	for n := range 3 {
		b.remember(t, scope, fmt.Sprint("memory ", n), func(string) []float32 { return v })
		if hits, _ := b.prefetch(t, scope, allMemories, v); len(hits) != n+1 {
			t.Errorf("%d units, want %d", len(hits), n+1)
		}
	}
}

// TestPrefetchWhileStoring: searches see every memory that was stored before they began.
func TestPrefetchWhileStoring(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			scope, r := b.users[i%2], rand.New(rand.NewPCG(15, uint64(i)))
			for n := range 20 {
				v := randomUnit(r)
				id := b.remember(t, scope, fmt.Sprintf("memory %d of %d", n, i), func(string) []float32 { return v })
				hits, _ := b.prefetch(t, scope, allMemories, v)
				if want := b.unitsOf(t, id)[0]; hits[0].ID != want {
					t.Errorf("the best unit is %d, want %d", hits[0].ID, want)
				}
				if n%5 == 0 {
					if _, err := b.Memories().Delete(t.Context(), scope, []string{id}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wait.Wait()
	for _, scope := range b.users[:2] {
		if _, _, err := b.exact(t.Context(), scope, allMemories, randomUnit(rand.New(rand.NewPCG(17, 18)))); err != nil {
			t.Error(err)
		}
	}
}

// TestPrefetchAfterDeletion: nothing is found of a user without memories, although their vectors are cached.
func TestPrefetchAfterDeletion(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, query := b.users[0], randomUnit(rand.New(rand.NewPCG(19, 20)))
	id := b.remember(t, scope, "secret", func(string) []float32 { return query })
	b.remember(t, b.users[1], "another user's", func(string) []float32 { return query })
	b.prefetch(t, scope, allMemories, query)
	if _, err := b.Memories().Delete(t.Context(), scope, []string{id}); err != nil {
		t.Fatal(err)
	}
	if hits, coverage := b.prefetch(t, scope, allMemories, query); len(hits) != 0 || coverage != (retrieve.Coverage{All: true}) {
		t.Errorf("%v, %+v after the deletion, want nothing", hits, coverage)
	}
}

// TestPrefetchOfStaleUnits: if a query allows it, only added units are read, and recent ones validated.
func TestPrefetchOfStaleUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, query := b.users[0], randomUnit(rand.New(rand.NewPCG(27, 28)))
	memories := map[retrieve.UnitID]string{}
	remember := func() retrieve.UnitID {
		memoryID := b.remember(t, scope, fmt.Sprint("memory ", len(memories)), func(string) []float32 { return query })
		unit := b.unitsOf(t, memoryID)[0]
		memories[unit] = memoryID
		return unit
	}
	forget := func(unit retrieve.UnitID) {
		if _, err := b.Memories().Delete(t.Context(), scope, []string{memories[unit]}); err != nil {
			t.Fatal(err)
		}
	}
	reserve := func(ids int) {
		exec(t, b.owner, "select nextval('unit_ids') from generate_series(1, $1::int)", ids)
	}
	check := func(what string, staleness time.Duration, want ...retrieve.UnitID) {
		t.Helper()
		q := allMemories
		q.Staleness = staleness
		hits, _ := b.prefetch(t, scope, q, query)
		var got []retrieve.UnitID
		for _, h := range hits {
			got = append(got, h.ID)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s found %v, want %v", what, got, want)
		}
	}
	first, second := remember(), remember()
	reserve(2 * postgres.RecentIDs)
	third := remember()
	check("the first query", time.Hour, first, second, third)
	forget(first)
	fourth := remember()
	check("after an old unit was deleted, a query", time.Hour, first, second, third, fourth)
	check("a query that allows less", time.Nanosecond, second, third, fourth)
	forget(fourth)
	check("after a recent unit was deleted, a query", time.Hour, second, third)
	forget(second)
	check("a query without staleness", 0, third)

	reserve(1)
	fifth := remember()
	check("after another unit was added, a query", time.Hour, third, fifth)
	late := remember()
	exec(t, b.owner, "update units set id = $1 where id = $2", fifth-1, late)
	check("after a unit with a lower id was committed, a query", time.Hour, third, fifth-1, fifth)

	// A query that does not validate old units does not make them newer.
	check("a query without staleness", 0, third, fifth-1, fifth)
	validated := time.Now()
	reserve(2 * postgres.RecentIDs)
	sixth := remember()
	check("after another unit was added, a query", time.Hour, third, fifth-1, fifth, sixth)
	forget(fifth)
	seventh := remember()
	check("after an old unit was deleted, a query", time.Hour, third, fifth-1, fifth, sixth, seventh)
	check("a query that allows less", time.Since(validated), third, fifth-1, sixth, seventh)
}
