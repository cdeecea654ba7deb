package importer_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// An export whose merged memories do not follow the ones that were kept, as no account can have, restores them as
// memories: none is lost, and none is merged in a circle.
func TestRestoreOfImpossibleMerges(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	id := func(n int) string { return fmt.Sprintf("0196b2f4-6d1e-7c3a-9f5e-%012d", n) }
	memories := []account.Memory{
		{ID: id(0), MergedInto: id(1)},  // comes later
		{ID: id(1), MergedInto: id(0)},  // in a circle, but after it
		{ID: id(2), MergedInto: id(2)},  // itself
		{ID: id(3), MergedInto: id(99)}, // does not exist
		{ID: id(4), MergedInto: id(1)},
	}
	for i := range memories {
		m := &memories[i]
		m.Bucket, m.Text, m.Version = 7, fmt.Sprint("memory ", i), 1
		m.CreatedAt, m.UpdatedAt, m.EditedAt, m.MergedAt = monday, monday, monday, monday
	}
	var file bytes.Buffer
	err := archive.Write(&file, monday, account.Counts{Buckets: 1, Memories: int64(len(memories))}, content{memories})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.restore(t, b.alice, file.Bytes()); got.Status != importer.Done {
		t.Fatalf("the import is %+v", got)
	}
	list, _, err := b.db.Memories().List(t.Context(), b.alice, memory.Filter{Limit: 99})
	if err != nil {
		t.Fatal(err)
	}
	var live []string
	for _, m := range list {
		live = append(live, m.ID)
	}
	if want := []string{id(0), id(2), id(3)}; !slices.Equal(live, want) {
		t.Errorf("the memories are %v, want %v", live, want)
	}
	for n, want := range map[int][]string{0: {id(1)}, 1: {id(4)}} {
		merged, err := b.db.Memories().ListMerged(t.Context(), b.alice, id(n))
		if err != nil || len(merged) != 1 || merged[0].ID != want[0] {
			t.Errorf("into memory %d are merged %v, %v, want %v", n, merged, err, want)
		}
	}
	b.checkMemoryCounters(t)
}

// A chain of merges deeper than an account can have, as a changed export may contain, is restored with a bounded depth,
// so that it can be deleted. No memory is lost.
func TestRestoreFlattensDeepMerges(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	id := func(n int) string { return fmt.Sprintf("0196b2f4-6d1e-7c3a-9f5e-%012d", n) }
	memories := make([]account.Memory, 260)
	for i := range memories {
		memories[i] = account.Memory{ID: id(i), Bucket: 7, Text: fmt.Sprint("memory ", i), Version: 1, CreatedAt: monday, UpdatedAt: monday, EditedAt: monday}
		if i > 0 {
			memories[i].MergedInto, memories[i].MergedAt = id(i-1), monday
		}
	}
	var file bytes.Buffer
	if err := archive.Write(&file, monday, account.Counts{Buckets: 1, Memories: int64(len(memories))}, content{memories}); err != nil {
		t.Fatal(err)
	}
	if got := b.restore(t, b.alice, file.Bytes()); got.Status != importer.Done {
		t.Fatalf("the import is %+v", got)
	}
	var merged, depth int
	err := b.owner.QueryRow(t.Context(), `with recursive tree as (
			select g.id, 1 as depth from memories m join merged_memories g on g.merged_into = m.id
			union all select g.id, t.depth + 1 from tree t join merged_memories g on g.merged_into = t.id
		) select count(*), max(depth) from tree`).Scan(&merged, &depth)
	if err != nil {
		t.Fatal(err)
	}
	if merged != 259 {
		t.Errorf("%d merged memories, want 259", merged)
	}
	if depth != 100 {
		t.Errorf("the merges are %d levels deep, want 100", depth)
	}
	if got, err := b.db.Memories().ListMerged(t.Context(), b.alice, id(50)); err != nil || len(got) != 1 || got[0].ID != id(51) {
		t.Errorf("into memory 50 are merged %v, %v, want memory 51", got, err)
	}
	b.checkMemoryCounters(t)
	b.empty(t, b.alice)
	if n := b.count(t, "merged_memories"); n != 0 {
		t.Errorf("%d merged memories remain after the deletion of the account", n)
	}
}

// A merged memory outlives the deletion of its bucket and of the default one: it is exported, and restored in the bucket
// that is left.
func TestMergedMemoryWithoutItsBuckets(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	b.fill(t, b.alice, 0, 0, constant)
	list, err := b.db.ListBuckets(t.Context(), b.alice)
	if err != nil {
		t.Fatal(err)
	}
	kept, merged := b.remember(t, b.alice, "kept", list[1].ID), b.remember(t, b.alice, "merged", 0)
	if _, err := b.db.Memories().Merge(t.Context(), b.alice, memory.MergeInput{Kept: kept, IDs: []string{merged}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.owner.Exec(t.Context(), "delete from buckets where memories = 0"); err != nil { // as PurgeBuckets
		t.Fatal(err)
	}
	file := b.exported(t, b.alice)
	if _, err := b.db.Memories().GetMerged(t.Context(), b.alice, merged); err != nil {
		t.Errorf("the merged memory: %v", err)
	}
	b.empty(t, b.alice)
	if got := b.restore(t, b.alice, file); got.Status != importer.Done {
		t.Fatalf("the import is %+v", got)
	}
	if again := b.exported(t, b.alice); !bytes.Equal(file, again) {
		t.Errorf("the restored account differs (-exported +restored):\n%s", cmp.Diff(contents(t, file), contents(t, again)))
	}
	if ids, err := b.db.Memories().Unmerge(t.Context(), b.alice, memory.UnmergeInput{Kept: kept}); err != nil || !slices.Equal(ids, []string{merged}) {
		t.Errorf("Unmerge = %v, %v, want %s", ids, err, merged)
	}
	b.checkMemoryCounters(t)
}

// remember stores a memory and returns its id.
func (b *bundle) remember(t *testing.T, scope tenant.Scope, text string, bucket int64) string {
	t.Helper()
	m, err := b.db.Memories().Create(t.Context(), scope, memory.NewMemory{CreateInput: memory.CreateInput{Text: text, Bucket: bucket}, Tokens: 1, Units: retrieve.MemoryUnits(text)})
	if err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// content is an account with one bucket and memories.
type content struct{ memories []account.Memory }

func (c content) Buckets() iter.Seq2[account.Bucket, error] {
	return each([]account.Bucket{{ID: 7, Name: memory.DefaultBucket, Default: true, CreatedAt: monday}})
}
func (c content) Memories() iter.Seq2[account.Memory, error] { return each(c.memories) }
func (content) Versions() iter.Seq2[account.Version, error]  { return each[account.Version](nil) }
func (content) Conversations() iter.Seq2[chat.Conversation, error] {
	return each[chat.Conversation](nil)
}
func (content) Messages() iter.Seq2[account.Message, error] { return each[account.Message](nil) }

func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}
