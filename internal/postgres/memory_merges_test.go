package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// merge merges memories into the first one.
func (b *testBundle) merge(t testing.TB, scope tenant.Scope, kept string, ids ...string) memory.MergeResult {
	t.Helper()
	got, err := b.Memories().Merge(t.Context(), scope, memory.MergeInput{Kept: kept, IDs: ids})
	if err != nil {
		t.Fatalf("merge: %v", err)
	}
	return got
}

func (b *testBundle) unmerge(t testing.TB, scope tenant.Scope, kept string, ids ...string) []string {
	t.Helper()
	got, err := b.Memories().Unmerge(t.Context(), scope, memory.UnmergeInput{Kept: kept, IDs: ids})
	if err != nil {
		t.Fatalf("unmerge: %v", err)
	}
	return got
}

// mergedInto returns the ids that were merged into a memory, sorted.
func (b *testBundle) mergedInto(t testing.TB, scope tenant.Scope, id string) []string {
	t.Helper()
	list, err := b.Memories().ListMerged(t.Context(), scope, id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range list {
		out = append(out, m.ID)
	}
	slices.Sort(out)
	return out
}

// full stores a memory that differs from the defaults in every column.
func (b *testBundle) full(t *testing.T, scope tenant.Scope, text string) string {
	t.Helper()
	m := newMemory("2025-05-09 first " + text)
	m.Bucket = b.bucketNamed(t, scope, "Work")
	m.Attributes = memory.Attributes{AgentID: "planner", RunID: "run", Tags: []string{"a", "b"}, Metadata: []byte(`{"n": 1}`)}
	created, err := b.Memories().Create(t.Context(), scope, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memories().Update(t.Context(), scope, edit(created.ID, text)); err != nil {
		t.Fatal(err)
	}
	b.superseding(t, scope, "newer than "+text, memory.Links{Supersedes: []string{created.ID}})
	return created.ID
}

// bucketNamed returns the bucket with a name, which it creates if necessary.
func (b *testBundle) bucketNamed(t *testing.T, scope tenant.Scope, name string) int64 {
	t.Helper()
	list, err := b.ListBuckets(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range list {
		if have.Name == name {
			return have.ID
		}
	}
	return b.createBucket(t, scope, name)
}

// rowsExceptUnits is wholeContent without the units, which an undo creates again without vectors.
func (b *testBundle) rowsExceptUnits(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(b.wholeContent(t), func(rows string) bool { return strings.HasPrefix(rows, "units ") })
}

// visible describes what reads of a user's memories return.
func (b *testBundle) visible(t *testing.T, scope tenant.Scope, ids ...string) string {
	t.Helper()
	list, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 99})
	if err != nil {
		t.Fatal(err)
	}
	found, err := b.Memories().ByID(t.Context(), scope, ids, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := b.Memories().Count(t.Context(), scope, filter.Filter{Op: filter.Eq, Field: filter.AgentID, Values: []filter.Value{{Kind: filter.String, Text: "planner"}}})
	if err != nil {
		t.Fatal(err)
	}
	groups, _, err := b.Memories().Groups(t.Context(), scope, 0, 99)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := b.Memories().Labels(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	buckets, err := b.ListBuckets(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	var stored int64
	for _, have := range buckets {
		stored += have.Memories
	}
	return fmt.Sprintf("%d listed, %d found, %d of the planner, %d groups, %d tags, %d in buckets", len(list), len(found), all, len(groups), len(labels.Tags), stored)
}

// A merged memory is nowhere any more but still counts toward the quota, and an undo restores every column.
func TestMergeAndUnmerge(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	attachLedger(t, b.DB)
	var kept, merged []string
	for _, scope := range b.users {
		kept, merged = append(kept, b.remember(t, scope, "likes green tea", nil)), append(merged, b.full(t, scope, "likes green tea a lot"))
	}
	scope := b.users[0]
	before, was := b.rowsExceptUnits(t), b.usage(t, scope.Tenant)
	if got, want := b.visible(t, scope, merged[0]), "3 listed, 1 found, 1 of the planner, 2 groups, 2 tags, 3 in buckets"; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	units := b.unitsOf(t, merged[0])
	b.jobUnits(t)
	got := b.merge(t, scope, kept[0], merged[0], strings.ToUpper(merged[0]))
	if diff := cmp.Diff(memory.MergeResult{IDs: merged[:1], Units: units}, got); diff != "" {
		t.Errorf("merge (-want +got):\n%s", diff)
	}
	b.wantJobs(t, "the merge", units)
	if left := b.unitsOf(t, merged[0]); len(left) > 0 {
		t.Errorf("%d units are still there", len(left))
	}
	if got, want := b.visible(t, scope, merged[0]), "2 listed, 0 found, 0 of the planner, 0 groups, 0 tags, 2 in buckets"; got != want {
		t.Errorf("after the merge: %s, want %s", got, want)
	}
	if now := b.usage(t, scope.Tenant); now != was {
		t.Errorf("the usage is %+v after the merge, want %+v", now, was)
	}
	b.checkCounters(t)
	for i, want := range []int{1, 0, 0} {
		if n := b.get(t, b.users[i], kept[i]).Merged; n != want {
			t.Errorf("%d memories are merged into that of user %d, want %d", n, i, want)
		}
	}
	m, err := b.Memories().GetMerged(t.Context(), scope, merged[0])
	if err != nil || m.MergedInto != kept[0] || m.Text != "likes green tea a lot" || m.BucketName != "Work" || m.SupersededBy == "" {
		t.Errorf("the merged memory is %+v, %v", m, err)
	}
	again := b.merge(t, scope, kept[0], merged[0]) // a retry
	if len(again.Units) > 0 || !slices.Equal(again.IDs, merged[:1]) {
		t.Errorf("the merge of a merged memory returns %+v", again)
	}
	b.jobUnits(t)
	if got := b.unmerge(t, scope, kept[0]); !slices.Equal(got, merged[:1]) {
		t.Errorf("restored %v, want %v", got, merged[:1])
	}
	if diff := cmp.Diff(before, b.rowsExceptUnits(t)); diff != "" {
		t.Errorf("rows after the undo (-before +after):\n%s", diff)
	}
	b.wantJobs(t, "the undo", b.unitsOf(t, merged[0]))
	if n := len(b.unitsOf(t, merged[0])); n != len(units) {
		t.Errorf("%d units are restored, want %d", n, len(units))
	}
	if got := b.unmerge(t, scope, kept[0]); len(got) > 0 {
		t.Errorf("the second undo restores %v", got)
	}
	if entries := pendingErasures(t, b.DB); len(entries) > 0 {
		t.Errorf("%d erasures are recorded although nothing was deleted", len(entries))
	}
}

// usage returns the counters of a tenant.
func (b *testBundle) usage(t *testing.T, id tenant.ID) [2]int64 {
	t.Helper()
	var out [2]int64
	if err := b.owner.QueryRow(t.Context(), "select memories, storage from usage where tenant_id = $1", id).Scan(&out[0], &out[1]); err != nil {
		t.Fatal(err)
	}
	return out
}

// A merge that is not possible changes nothing, and ids of others are like ids that do not exist.
func TestRefusedMerges(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	kept, second, third := b.remember(t, scope, "a", nil), b.remember(t, scope, "b", nil), b.remember(t, scope, "c", nil)
	neighbor, foreign, unknown := b.remember(t, b.users[1], "a", nil), b.remember(t, b.users[2], "a", nil), uuid.NewString()
	other := newMemory("of somebody else")
	other.Metadata = []byte(`{"user_id":"eve"}`)
	eve, err := b.Memories().Create(t.Context(), scope, other)
	if err != nil {
		t.Fatal(err)
	}
	b.merge(t, scope, kept, second)
	before := b.wholeContent(t)
	for reason, tc := range map[string]struct {
		kept     string
		ids      []string
		kind     fault.Kind
		rejected []string
	}{
		"unknown memories":              {kept, []string{third, unknown, neighbor, foreign, "x"}, fault.NotFound, []string{unknown, neighbor, foreign, "x"}},
		"unknown kept memory":           {unknown, []string{third}, fault.NotFound, nil},
		"kept memory of another user":   {neighbor, []string{third}, fault.NotFound, nil},
		"kept memory of another tenant": {foreign, []string{third}, fault.NotFound, nil},
		"no id":                         {"x", []string{third}, fault.NotFound, nil},
		"kept memory was merged":        {second, []string{third}, fault.Conflict, nil},
		"merged into another one":       {third, []string{second}, fault.NotFound, []string{second}},
		"about another person":          {third, []string{eve.ID}, fault.Invalid, nil},
	} {
		_, err := b.Memories().Merge(t.Context(), scope, memory.MergeInput{Kept: tc.kept, IDs: tc.ids})
		wantKind(t, reason, err, tc.kind)
		if diff := cmp.Diff(tc.rejected, rejectedIDs(err)); diff != "" {
			t.Errorf("%s: rejected ids (-want +got):\n%s", reason, diff)
		}
	}
	for reason, tc := range map[string]struct {
		kept     string
		ids      []string
		rejected []string
	}{
		"not merged":                    {kept, []string{second, third}, []string{third}},
		"no valid id":                   {kept, []string{"x"}, []string{"x"}},
		"unknown kept memory":           {unknown, nil, nil},
		"kept memory of another user":   {neighbor, nil, nil},
		"merged into another one":       {third, []string{second}, []string{second}},
		"kept memory of another tenant": {foreign, []string{second}, nil},
	} {
		_, err := b.Memories().Unmerge(t.Context(), scope, memory.UnmergeInput{Kept: tc.kept, IDs: tc.ids})
		wantKind(t, "unmerge: "+reason, err, fault.NotFound)
		if diff := cmp.Diff(tc.rejected, rejectedIDs(err)); diff != "" {
			t.Errorf("unmerge: %s: rejected ids (-want +got):\n%s", reason, diff)
		}
	}
	for i, u := range b.users[1:] {
		if got := b.mergedInto(t, u, kept); len(got) > 0 {
			t.Errorf("user %d lists %d merged memories of another user", i+1, len(got))
		}
		_, err := b.Memories().GetMerged(t.Context(), u, second)
		wantKind(t, "merged memory of another user", err, fault.NotFound)
		_, err = b.Memories().Unmerge(t.Context(), u, memory.UnmergeInput{Kept: kept})
		wantKind(t, "undo of another user's merge", err, fault.NotFound)
		if _, err := b.Memories().Delete(t.Context(), u, []string{second}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, b.wholeContent(t)); diff != "" {
		t.Errorf("the content has changed (-before +after):\n%s", diff)
	}
	if got := b.mergedInto(t, scope, kept); !slices.Equal(got, []string{second}) {
		t.Errorf("merged memories are %v, want %s", got, second)
	}
}

func rejectedIDs(err error) []string {
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil {
		return nil
	}
	return f.RejectedIDs
}

func TestAtMostSoManyMergedMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	kept := b.remember(t, scope, "kept", nil)
	var ids []string
	for i := range memory.MaxMerged + 1 {
		ids = append(ids, b.remember(t, scope, fmt.Sprint("memory ", i), nil))
	}
	b.merge(t, scope, kept, ids[:memory.MaxMerged-1]...)
	_, err := b.Memories().Merge(t.Context(), scope, memory.MergeInput{Kept: kept, IDs: ids[memory.MaxMerged-1:]})
	wantKind(t, "one too many", err, fault.Conflict)
	b.merge(t, scope, kept, ids[memory.MaxMerged-1])
}

// The undo of a merge restores a memory with what was merged into it before.
func TestMergeOfMergedMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	first, second, third := b.full(t, scope, "a"), b.full(t, scope, "b"), b.full(t, scope, "c")
	b.merge(t, scope, second, third)
	b.merge(t, scope, first, second)
	if got := b.mergedInto(t, scope, first); !slices.Equal(got, []string{second}) {
		t.Errorf("%v are merged into the first memory, want the second one", got)
	}
	if m, err := b.Memories().GetMerged(t.Context(), scope, second); err != nil || m.Merged != 1 {
		t.Errorf("the second memory has %d merged ones, %v", m.Merged, err)
	}
	if got := b.unmerge(t, scope, second, third); !slices.Equal(got, []string{third}) { // out of a merged one
		t.Errorf("restored %v, want the third memory", got)
	}
	_, err := b.Memories().Unmerge(t.Context(), scope, memory.UnmergeInput{Kept: second})
	wantKind(t, "undo of the merges into a memory that has none and is merged itself", err, fault.Conflict)
	if want := "merged into memory " + first; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
	b.merge(t, scope, first, third)
	b.unmerge(t, scope, first, second)
	if got := b.mergedInto(t, scope, first); !slices.Equal(got, []string{third}) {
		t.Errorf("%v are merged into the first memory, want the third one", got)
	}
}

// A memory that was superseded by a merged one is superseded by the one that was kept, until the undo.
func TestLinksOfMergedMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	old := b.remember(t, scope, "lives in Berlin", nil)
	newer := b.superseding(t, scope, "lives in Munich", memory.Links{Supersedes: []string{old}})
	kept := b.remember(t, scope, "lives in Munich now", nil)
	b.merge(t, scope, kept, newer)
	if got := b.newer(t, scope, old, 0, time.Time{}); got != kept {
		t.Errorf("after the merge the old memory is superseded by %q, want %s", got, kept)
	}
	b.unmerge(t, scope, kept)
	if got := b.newer(t, scope, old, 0, time.Time{}); got != newer {
		t.Errorf("after the undo the old memory is superseded by %q, want %s", got, newer)
	}
	// The kept memory must not become superseded by what it supersedes.
	b.superseding(t, scope, "lives in Ulm", memory.Links{Supersedes: []string{newer}})
	b.merge(t, scope, old, newer)
	if m := b.get(t, scope, old); m.SupersededBy != "" || len(m.Supersedes) > 0 {
		t.Errorf("the kept memory has the links %q and %v", m.SupersededBy, m.Supersedes)
	}
}

// A restored memory is in the default bucket if its own was deleted in the meantime.
func TestUnmergeAfterDeletionOfTheBucket(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	kept, merged := b.remember(t, scope, "a", nil), b.full(t, scope, "b")
	b.merge(t, scope, kept, merged)
	if _, err := b.DeleteBucket(t.Context(), scope, b.bucketNamed(t, scope, "Work")); err != nil {
		t.Fatal(err)
	}
	m, err := b.Memories().GetMerged(t.Context(), scope, merged)
	if err != nil || m.BucketName != memory.DefaultBucket {
		t.Errorf("the merged memory is in bucket %q, %v", m.BucketName, err)
	}
	openExport(t, b.exported(t, scope)) // names no bucket that does not exist
	b.unmerge(t, scope, kept)
	if got := b.get(t, scope, merged).BucketName; got != memory.DefaultBucket {
		t.Errorf("the restored memory is in bucket %q, want %q", got, memory.DefaultBucket)
	}
}

// A column of memories is also one of merged_memories, with the same type.
func TestMergedMemoriesHaveTheColumnsOfMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	if n := b.count(t, `select count(*) from (select attname, atttypid, attnotnull from pg_attribute where attrelid = 'memories'::regclass and attnum > 0
		except select attname, atttypid, attnotnull from pg_attribute where attrelid = 'merged_memories'::regclass) c`); n != 0 {
		t.Errorf("%d columns of memories are missing in merged_memories: add them, and to InsertMerged, RestoreMerged and RestoreMergedMemories", n)
	}
}

// Concurrent merges, undos, edits, moves and deletions lose nothing: in the end each memory is stored once or was
// erased once. The counters, and that each merged memory has a kept one, are checked after each test.
func TestConcurrentMerges(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx := t.Context()
	ids, buckets := map[tenant.Scope][]string{}, map[tenant.Scope]int64{}
	for _, scope := range b.users {
		buckets[scope] = b.createBucket(t, scope, "Work")
		for i := range 12 {
			ids[scope] = append(ids[scope], b.remember(t, scope, fmt.Sprint("memory ", i), nil))
		}
	}
	attachLedger(t, b.DB)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range 30 {
				scope := b.users[r.IntN(2)*2] // of two tenants
				x, y := ids[scope][r.IntN(12)], ids[scope][r.IntN(12)]
				var err error
				switch r.IntN(10) {
				case 0:
					_, err = b.Memories().Delete(ctx, scope, []string{x})
				case 1, 2:
					_, err = b.Memories().Update(ctx, scope, edit(x, fmt.Sprint("edited ", r.Int())))
				case 3:
					_, err = b.Memories().Move(ctx, scope, memory.MoveInput{IDs: []string{x}, Bucket: memory.BucketRef{ID: buckets[scope]}})
				case 4, 5, 6:
					_, err = b.Memories().Unmerge(ctx, scope, memory.UnmergeInput{Kept: x})
				default:
					if x != y {
						_, err = b.Memories().Merge(ctx, scope, memory.MergeInput{Kept: x, IDs: []string{y}})
					}
				}
				if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
					t.Errorf("a change fails: %v", err)
				}
			}
		})
	}
	wg.Wait()
	erased := map[string]int{}
	for _, e := range pendingErasures(t, b.DB) {
		for _, id := range e.Objects {
			erased[id]++
		}
	}
	for _, scope := range b.users {
		for _, id := range ids[scope] {
			stored := b.count(t, "select (select count(*) from memories where id = $1) + (select count(*) from merged_memories where id = $1)", id)
			if stored+erased[id] != 1 {
				t.Errorf("memory %s of user %d is stored %d times and was erased %d times", id, scope.User, stored, erased[id])
			}
		}
	}
}
