package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// store stores the units of a user's memories, and returns the number of units in each row of the user.
func (b *testBundle) store(t testing.TB, scope tenant.Scope) []int {
	t.Helper()
	if err := b.StoreUnits(t.Context(), scope, retrieve.Memory, 0, 1); err != nil {
		t.Fatal(err)
	}
	return b.stored(t, scope)
}

func (b *testBundle) stored(t testing.TB, scope tenant.Scope) []int {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), "select units from cached_units where user_id = $1 order by last_unit", scope.User)
	if err != nil {
		t.Fatal(err)
	}
	units, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return units
}

// TestStoredUnitsFollowChanges: after every change, a server that has cached nothing scores, ranks and describes units as they are in the database.
func TestStoredUnitsFollowChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	r := rand.New(rand.NewPCG(41, 42))
	change := b.randomChanges(t, b.users[0], b.users[1], r)
	stored := 0
	for i := range 120 {
		name, q := change(), allMemories
		q.Text = randomWords(r, 9)
		if i%3 == 0 {
			stored = max(stored, sum(b.store(t, b.users[0])))
		}
		b.ForgetUnits()
		if _, _, err := b.exact(t.Context(), b.users[0], q, randomUnit(r)); err != nil { // compares both
			t.Fatalf("after %q, with %v stored units: %v", name, b.stored(t, b.users[0]), err)
		}
	}
	if stored < 10 {
		t.Errorf("at most %d units were stored, want more", stored)
	}
}

// TestSearchesStoreUnits: the first search of a user with many units stores them, and the first of another server does not read their rows. To see that, the
// test deletes a vector, which no server does.
func TestSearchesStoreUnits(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	const count = 300
	scope, query := b.users[0], randomUnit(rand.New(rand.NewPCG(43, 44)))
	b.insertUnits(t, scope, b.remember(t, scope, "the first of many", nil), count-1, "now()")
	b.prefetch(t, scope, allMemories, query)
	b.AwaitStored(t)
	if got := b.stored(t, scope); !slices.Equal(got, []int{count - 1}) {
		t.Errorf("stored units: %v, want all but the one without a vector", got)
	}
	exec(t, b.owner, "update units set embedding = null where user_id = $1 and id in (select first_unit from cached_units)", scope.User)
	q := allMemories
	q.Limit = count
	other := &testBundle{DB: postgrestest.Open(t, d)}
	if hits, coverage := other.prefetch(t, scope, q, query); len(hits) != count-1 || !coverage.Missing {
		t.Errorf("%d hits, %+v, want %d", len(hits), coverage, count-1)
	}
}

// TestUnitsWithoutStoredOnes: a search reads the row of each unit if the table with the stored ones cannot be read, as on a replica.
func TestUnitsWithoutStoredOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope, query := b.users[0], randomUnit(rand.New(rand.NewPCG(61, 62)))
	b.insertUnits(t, scope, b.remember(t, scope, "the first of many", func(string) []float32 { return query }), 10, "now()")
	exec(t, b.owner, "alter table cached_units rename to unreadable")
	q := allMemories
	q.Limit = 20
	if hits, coverage := b.prefetch(t, scope, q, query); len(hits) != 11 || !coverage.All {
		t.Errorf("%d hits, %+v, want all 11 units", len(hits), coverage)
	}
}

// TestStoredUnitsOfGrownUser: once a user has more units than are read before a search, those that were stored are not read.
func TestStoredUnitsOfGrownUser(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.remember(t, scope, "the first of many", nil)
	b.insertUnits(t, scope, id, 300, "now()")
	b.store(t, scope)
	if got := b.StoredUnits(t.Context(), scope, retrieve.Memory); got != 300 {
		t.Errorf("%d stored units are read, want 300", got)
	}
	b.insertUnits(t, scope, id, placement.ExactUnits, "now()")
	if got := b.StoredUnits(t.Context(), scope, retrieve.Memory); got != 0 {
		t.Errorf("%d stored units of a user with many are read, want none", got)
	}
	if p, few, err := b.Prefetch(t.Context(), scope, allMemories); p.Nearest != nil || few || err != nil {
		t.Errorf("units were read: %t, few %t, %v", p.Nearest != nil, few, err)
	}
	if got := b.store(t, scope); !slices.Equal(got, []int{300}) {
		t.Errorf("stored units: %v, want those of before", got)
	}
}

// TestStoredUnitsOfHiddenOnes: if many stored units are no longer searched, none of the others is found twice.
func TestStoredUnitsOfHiddenOnes(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"desc", "asc"} { // with and without the newest
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			scope, r := b.users[0], rand.New(rand.NewPCG(61, 62))
			for i := range 20 {
				b.remember(t, scope, fmt.Sprint("memory ", i), func(string) []float32 { return randomUnit(r) })
			}
			b.store(t, scope)
			for _, active := range []bool{false, true} {
				exec(t, b.owner, "update units set active = $1 where id in (select id from units where user_id = $2 order by id "+which+" limit 8)", active, scope.User)
				for range 2 {
					b.store(t, scope)
					b.ForgetUnits()
					q := allMemories
					q.Text, q.Limit = "memory", 40
					hits, _ := b.prefetch(t, scope, q, randomUnit(r))
					found := map[retrieve.UnitID]bool{}
					for _, h := range hits {
						found[h.ID] = true
					}
					want := 12
					if active {
						want = 20
					}
					if len(hits) != want || len(found) != want {
						t.Errorf("active %t: %d hits of %d units, want %d", active, len(hits), len(found), want)
					}
					if _, _, err := b.exact(t.Context(), scope, q, randomUnit(r)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

func sum(numbers []int) (n int) {
	for _, x := range numbers {
		n += x
	}
	return n
}

// TestFewUnitsAreNotStored: a search stores no fewer than 256 units.
func TestFewUnitsAreNotStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	b.insertUnits(t, scope, b.remember(t, scope, "the first of few", nil), 255, "now()")
	b.prefetch(t, scope, allMemories, randomUnit(rand.New(rand.NewPCG(45, 46))))
	b.AwaitStored(t)
	if units := b.stored(t, scope); len(units) != 0 {
		t.Errorf("%v units are stored, want none", units)
	}
}

// TestStoredUnitsAreDeleted: whatever deletes a unit deletes what is stored with it, and no more.
func TestStoredUnitsAreDeleted(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(b *testBundle, scope tenant.Scope, id string) error{
		"delete": func(b *testBundle, scope tenant.Scope, id string) error {
			_, err := b.Memories().Delete(t.Context(), scope, []string{id})
			return err
		},
		"delete, can be undone": func(b *testBundle, scope tenant.Scope, id string) error {
			_, err := b.Memories().DeleteUndoable(t.Context(), scope, []string{id})
			return err
		},
		"of a hidden unit": func(b *testBundle, _ tenant.Scope, id string) error {
			exec(t, b.owner, "update units set active = false where memory_id = $1", id)
			exec(t, b.owner, "delete from units where memory_id = $1", id)
			return nil
		},
		"a new version": func(b *testBundle, scope tenant.Scope, id string) error {
			m := newMemory("another text")
			_, err := b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: id, Text: &m.Text}, Tokens: 2, Units: m.Units})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			r := rand.New(rand.NewPCG(47, 48))
			embed := func(string) []float32 { return randomUnit(r) }
			var ids []string
			for _, scope := range b.users[:2] {
				for i := range 5 {
					id := b.remember(t, scope, fmt.Sprint("memory ", i), embed)
					if scope == b.users[0] {
						ids = append(ids, id)
					}
				}
				b.store(t, scope)
			}
			if err := remove(b, b.users[0], ids[1]); err != nil {
				t.Fatal(err)
			}
			if got := b.stored(t, b.users[0]); len(got) != 0 {
				t.Errorf("stored units: %v, want none", got)
			}
			if got := b.stored(t, b.users[1]); !slices.Equal(got, []int{5}) {
				t.Errorf("stored units of another user: %v, want 5", got)
			}
			if got := b.store(t, b.users[0]); sum(got) != 4 {
				t.Errorf("stored again: %v, want 4 units", got)
			}
		})
	}
}

// TestStoredUnitsEndWithTheUser: an erasure leaves nothing that was stored for searches of memories and messages.
func TestStoredUnitsEndWithTheUser(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	v := randomUnit(rand.New(rand.NewPCG(49, 50)))
	b.remember(t, scope, "a memory", func(string) []float32 { return v })
	b.upsert(t, scope, newConversation("c", 1, 6))
	exec(t, b.owner, "update units set embedding = (select embedding from units where kind = 1), generation_id = 0 where kind = 2")
	b.store(t, scope)
	if err := b.StoreUnits(t.Context(), scope, retrieve.Chat, 0, 1); err != nil {
		t.Fatal(err)
	}
	if got := b.stored(t, scope); len(got) != 2 {
		t.Fatalf("stored units: %v, want two rows", got)
	}
	if err := b.EraseUser(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if got := b.stored(t, scope); len(got) != 0 {
		t.Errorf("stored units after the erasure: %v, want none", got)
	}
}

// TestNothingIsStoredDuringDeletion: while a deletion is not committed, no unit of the user is stored, because the deletion would not see it.
func TestNothingIsStoredDuringDeletion(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	r := rand.New(rand.NewPCG(51, 52))
	id := b.remember(t, scope, "to be deleted", func(string) []float32 { return randomUnit(r) })
	b.remember(t, scope, "to be kept", func(string) []float32 { return randomUnit(r) })
	tx, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "delete from units where memory_id = $1", id); err != nil {
		t.Fatal(err)
	}
	if got := b.store(t, scope); len(got) != 0 {
		t.Errorf("stored units during the deletion: %v, want none", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.store(t, scope); !slices.Equal(got, []int{1}) {
		t.Errorf("stored units after the deletion: %v, want 1", got)
	}
}

// TestStoreDuringDeletions: of units that are stored while memories are created and deleted, none is left that does not exist, and none is stored twice.
func TestStoreDuringDeletions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	var writers, stores sync.WaitGroup
	for seed := range uint64(2) {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(53, seed))
			for i := range 60 {
				id := b.remember(t, scope, fmt.Sprint("memory ", seed, i), func(string) []float32 { return randomUnit(r) })
				if r.IntN(2) == 0 {
					if _, err := b.Memories().Delete(t.Context(), scope, []string{id}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		stores.Go(func() {
			for ended := false; !ended; { // the last time after all deletions
				select {
				case <-done:
					ended = true
				default:
				}
				if err := b.StoreUnits(t.Context(), scope, retrieve.Memory, 0, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	stores.Wait()
	rows, err := b.owner.Query(t.Context(), "select content from cached_units")
	if err != nil {
		t.Fatal(err)
	}
	contents, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	var ids []retrieve.UnitID
	for _, content := range contents {
		part, err := postgres.StoredIDs(content)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, part...)
	}
	slices.Sort(ids)
	if distinct := slices.Compact(slices.Clone(ids)); len(distinct) != len(ids) || len(ids) == 0 {
		t.Errorf("%d units are stored, %d distinct ones; want some, and none twice", len(ids), len(distinct))
	}
	if gone := b.number(t, "select count(*)::int from unnest($1::bigint[]) s (id) where not exists (select from units u where u.id = s.id)", ids); gone != 0 {
		t.Errorf("%d deleted units are still stored", gone)
	}
}

// TestStoredUnitsOfOtherFormats: a server reads neither what another release has stored, vectors of another model, nor what it cannot parse, and replaces them.
func TestStoredUnitsOfOtherFormats(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"format": "format = 99", "generation": "generation_id = 7", "cut": "content = substr(content, 1, length(content) - 1)",
		"overwritten": "content = overlay(content placing decode(repeat('7f', length(content) - 48), 'hex') from 49)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			scope, r := b.users[0], rand.New(rand.NewPCG(55, 56))
			for i := range 3 {
				b.remember(t, scope, fmt.Sprint("memory ", i), func(string) []float32 { return randomUnit(r) })
			}
			b.store(t, scope)
			exec(t, b.owner, "update cached_units set "+change)
			if got := b.StoredUnits(t.Context(), scope, retrieve.Memory); got != 0 {
				t.Errorf("%d stored units are read, want none", got)
			}
			q := allMemories
			q.Text = "memory"
			if _, _, err := b.exact(t.Context(), scope, q, randomUnit(r)); err != nil {
				t.Error(err)
			}
			b.remember(t, scope, "another", func(string) []float32 { return randomUnit(r) })
			if got := b.store(t, scope); !slices.Equal(got, []int{4}) {
				t.Errorf("stored units: %v, want 4", got)
			}
		})
	}
}

// TestCleaningDeletesCachedGenerations: once a migration to another model has ended, no vectors of the previous one are stored.
func TestCleaningDeletesCachedGenerations(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	v := randomUnit(rand.New(rand.NewPCG(57, 58)))
	b.remember(t, scope, "a memory", func(string) []float32 { return v })
	b.store(t, scope)
	exec(t, b.owner, "insert into cached_units select tenant_id, user_id, kind, 1, first_unit, last_unit, units, hash, format, content from cached_units")
	if _, err := b.EnsurePlacement(t.Context(), scope.Tenant); err != nil { // in generation 1
		t.Fatal(err)
	}
	if err := b.DeleteOtherVectors(t.Context(), scope.Tenant); err != nil {
		t.Fatal(err)
	}
	if n, generation := b.number(t, "select count(*)::int from cached_units"), b.number(t, "select min(generation_id)::int from cached_units"); n != 1 || generation != 1 {
		t.Errorf("%d rows of generations from %d on are stored, want one of generation 1", n, generation)
	}
}

// TestCachedUnitsAreScoped: the statement returns no other user's units even if it is asked for them.
func TestCachedUnitsAreScoped(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	v := randomUnit(rand.New(rand.NewPCG(59, 60)))
	b.remember(t, b.users[1], "another user's memory", func(string) []float32 { return v })
	b.store(t, b.users[1])
	asked := db.CachedUnitsParams{TenantID: string(b.users[1].Tenant), UserID: int64(b.users[1].User), Kind: int16(retrieve.Memory), Format: 1, TooMany: 10}
	for i, want := range []int64{0, 1} {
		err := postgres.ReadScope(b.DB, t.Context(), b.users[i], func(_ db.DBTX, q *db.Queries) error {
			row, err := q.CachedUnits(t.Context(), asked)
			if row.Total != want || int64(row.Units) != want || len(row.Content) > 0 != (want > 0) {
				t.Errorf("user %d: %d units, of which %d are stored in %d bytes, want %d", i, row.Total, row.Units, len(row.Content), want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestStoringWaitsOnce: the units of a user do not wait twice, and those of too many users do not wait.
func TestStoringWaitsOnce(t *testing.T) {
	t.Parallel()
	if got, want := postgres.StoresUnits(1, 1, 2, 1), []bool{true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("stores %v, want %v", got, want)
	}
	users := make([]tenant.UserID, postgres.MaxStoring+1)
	for i := range users {
		users[i] = tenant.UserID(i + 1)
	}
	if stores := postgres.StoresUnits(users...); slices.Index(stores, false) != postgres.MaxStoring {
		t.Errorf("stores %v, want all but the last", stores)
	}
}
