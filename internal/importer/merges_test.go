package importer_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
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
