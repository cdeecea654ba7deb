package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestMemoryIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	text := "2025-05-09 Zoë planted tomatoes. " + strings.Repeat("It rained on the garden. ", 100)
	id := b.remember(t, b.users[0], text, nil)
	got, err := b.Memories().ByID(t.Context(), b.users[0], []string{id, id, strings.ToUpper(id)}, time.Time{})
	if err != nil || len(got) != 1 {
		t.Fatalf("ByID = %v, %v", got, err)
	}
	m := got[0]
	want := memory.Memory{
		ID: id, Seq: 1, BucketID: m.BucketID, BucketName: "General", Text: text, Tokens: len(strings.Fields(text)),
		Source: "test", Version: 1, CreatedAt: m.CreatedAt, UpdatedAt: m.CreatedAt,
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("ByID (-want +got):\n%s", diff)
	}
	units := b.unitsOf(t, id)
	if len(units) < 2 {
		t.Errorf("a long text has %d units", len(units))
	}
	jobs := b.jobUnits(t)
	for _, u := range units {
		if !jobs[u] {
			t.Errorf("no index job names unit %d", u)
		}
	}
}

func TestMemoriesAreIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var ids []string
	for i, u := range b.users {
		ids = append(ids, b.remember(t, u, fmt.Sprintf("memory of user %d", i), nil))
	}
	for i, u := range b.users {
		list, hasMore, err := b.Memories().List(t.Context(), u, memory.Filter{Limit: 10})
		if err != nil || hasMore || len(list) != 1 || list[0].ID != ids[i] {
			t.Errorf("user %d lists %v, %v, %v", i, list, hasMore, err)
		}
		got, err := b.Memories().ByID(t.Context(), u, ids, time.Time{})
		if err != nil {
			t.Fatalf("user %d: %v", i, err)
		}
		if len(got) != 1 {
			t.Fatalf("user %d: len(got) = %d, want 1", i, len(got))
		}
		if got[0].ID != ids[i] {
			t.Errorf("user %d: got[0].ID = %v, want %v", i, got[0].ID, ids[i])
		}
		buckets, err := b.ListBuckets(t.Context(), b.users[(i+1)%4])
		if err != nil {
			t.Fatal(err)
		}
		foreign := newMemory("in another's bucket")
		for name, bucket := range map[string]int64{"another's": buckets[0].ID, "no": 1 << 40} {
			foreign.Bucket = bucket
			_, err = b.Memories().Create(t.Context(), u, foreign)
			wantKind(t, "Create in "+name+" bucket", err, fault.NotFound)
			_, _, err = b.Memories().List(t.Context(), u, memory.Filter{Bucket: bucket, Limit: 1})
			wantKind(t, "List of "+name+" bucket", err, fault.NotFound)
		}
		others := slices.Delete(slices.Clone(ids), i, i+1)
		gone, err := b.Memories().Delete(t.Context(), u, others)
		if err != nil || len(gone.IDs)+len(gone.Units) != 0 {
			t.Errorf("user %d deleted %v, %v", i, gone, err)
		}
	}
	_, err := b.Memories().Create(t.Context(), tenant.Scope{Tenant: tenant.ID(uuid.NewString()), User: 1}, newMemory("text"))
	wantKind(t, "Create for no tenant", err, fault.NotFound)
}

func TestMemoriesAreListedInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	bucket, err := b.CreateBucket(ctx, scope, memory.BucketInput{Name: "Work"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		m := newMemory(fmt.Sprint(i))
		if i%2 == 1 {
			m.Bucket = bucket
		}
		if _, err := b.Memories().Create(ctx, scope, m); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		reason  string
		filter  memory.Filter
		want    string
		hasMore bool
	}{
		"oldest":               {"first written first", memory.Filter{Limit: 10}, "0123456", false},
		"limit equals total":   {"nothing follows", memory.Filter{Limit: 7}, "0123456", false},
		"limit below total":    {"more follow", memory.Filter{Limit: 3}, "012", true},
		"skip":                 {"the rest", memory.Filter{Limit: 4, Skip: 3}, "3456", false},
		"after":                {"those that follow", memory.Filter{Limit: 9, After: 3}, "3456", false},
		"after, newest":        {"those written before", memory.Filter{Limit: 9, After: 3, Newest: true}, "10", false},
		"after, bucket":        {"those of the bucket that follow", memory.Filter{Limit: 9, After: 3, Bucket: bucket}, "35", false},
		"newest":               {"last written first", memory.Filter{Limit: 2, Newest: true}, "65", true},
		"bucket":               {"only the bucket's", memory.Filter{Limit: 9, Bucket: bucket}, "135", false},
		"bucket, newest, skip": {"newest of the bucket", memory.Filter{Limit: 1, Skip: 1, Newest: true, Bucket: bucket}, "3", true},
		"skip past the end":    {"empty, but the bucket is known", memory.Filter{Limit: 1, Skip: 50, Bucket: bucket}, "", false},
	} {
		list, hasMore, err := b.Memories().List(ctx, scope, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range list {
			got += m.Text
		}
		if got != test.want {
			t.Errorf("%s (%s): memories %q, want %q", name, test.reason, got, test.want)
		}
		if hasMore != test.hasMore {
			t.Errorf("%s (%s): more = %t, want %t", name, test.reason, hasMore, test.hasMore)
		}
	}
}

func TestDeleteRemovesVersionsAndUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	var ids []string
	var units []retrieve.UnitID
	for i := range 1050 {
		ids = append(ids, b.remember(t, scope, fmt.Sprintf("memory %d", i), nil))
	}
	kept := b.remember(t, scope, "kept", nil)
	for _, id := range []string{ids[0], ids[1], ids[1049]} {
		units = append(units, b.unitsOf(t, id)...)
	}
	b.jobUnits(t)
	asked := append([]string{"", "x", "not-a-uuid", uuid.NewString(), ids[0]}, ids...)
	gone, err := b.Memories().Delete(ctx, scope, asked)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(gone.IDs)
	if diff := cmp.Diff(ids, gone.IDs); diff != "" { // v7 ids sort by time
		t.Errorf("deleted ids (-want +got):\n%s", diff)
	}
	jobs := b.jobUnits(t)
	for _, u := range units {
		if !slices.Contains(gone.Units, u) || !jobs[u] {
			t.Errorf("unit %d is not among the deleted ones, or in no job", u)
		}
	}
	if len(gone.Units) != len(ids) {
		t.Errorf("len(gone.Units) = %d, want %d", len(gone.Units), len(ids))
	}
	if len(jobs) != len(ids) {
		t.Errorf("len(jobs) = %d, want %d", len(jobs), len(ids))
	}
	list, _, err := b.Memories().List(ctx, scope, memory.Filter{Limit: 10})
	if err != nil {
		t.Fatalf("left: %v", err)
	}
	if len(list) != 1 {
		t.Fatalf("left: len(list) = %d, want 1", len(list))
	}
	if list[0].ID != kept {
		t.Errorf("left: list[0].ID = %v, want %v", list[0].ID, kept)
	}
	again, err := b.Memories().Delete(ctx, scope, asked)
	if err != nil || len(again.IDs)+len(again.Units) != 0 {
		t.Errorf("deleted again: %v, %v", again, err)
	}
}

func TestMemoryQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories, q.UserMemories, q.Storage = 3, 2, 100 })
	ctx := t.Context()
	create := func(user int, text string) error {
		_, err := b.Memories().Create(ctx, b.users[user], newMemory(text))
		return err
	}
	steps := []struct {
		reason string
		user   int
		text   string
		want   fault.Kind
	}{
		{"within the quota", 0, "one", 0},
		{"quota of two per user", 0, "two", 0},
		{"the user's quota is exhausted", 0, "three", fault.Forbidden},
		{"the tenant's storage would be passed", 1, strings.Repeat("x", 95), fault.Forbidden},
		{"exactly full", 1, strings.Repeat("x", 94), 0},
		{"the tenant's quota is exhausted", 1, "four", fault.Forbidden},
		{"the other tenant's is not", 2, "five", 0},
	}
	for _, s := range steps {
		if err := create(s.user, s.text); fault.KindOf(err) != s.want {
			t.Errorf("%s: %v", s.reason, err)
		}
		b.checkCounters(t)
	}
	b.setQuota(t, func(q *tenant.Quota) { q.Memories, q.UserMemories = 4, 3 })
	if err := create(0, ""); err != nil {
		t.Errorf("after the quota was raised: %v", err)
	}
	b.setQuota(t, func(q *tenant.Quota) { q.Memories = 0 })
	wantKind(t, "after the quota was lowered", create(1, "x"), fault.Forbidden)
	list, _, err := b.Memories().List(ctx, b.users[0], memory.Filter{Limit: 9})
	if err != nil || len(list) != 3 {
		t.Errorf("a lowered quota left %v, %v", list, err)
	}
	if _, err := b.Memories().Delete(ctx, b.users[0], []string{list[0].ID}); err != nil {
		t.Errorf("deleting over the quota: %v", err)
	}
}

func TestConcurrentWritersOfMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories = 150 })
	ctx := t.Context()
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for w := range 20 {
		wg.Go(func() {
			for i := range 10 {
				_, err := b.Memories().Create(ctx, b.users[w%2], newMemory(fmt.Sprintf("writer %d memory %d", w, i)))
				if err != nil && !fault.Is(err, fault.Forbidden) {
					t.Errorf("Create: %v", err)
				}
				if err != nil {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if refused != 50 {
		t.Errorf("%d of 200 were refused with a quota of 150", refused)
	}
	for _, u := range b.users[:2] {
		list, _, err := b.Memories().List(ctx, u, memory.Filter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range list {
			if m.Seq != int64(i+1) {
				t.Fatalf("memory %d of user %d has seq %d", i, u.User, m.Seq)
			}
		}
	}
}

func TestConcurrentDeletesAndWrites(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := b.Memories().Create(ctx, scope, newMemory(fmt.Sprint("text ", w, i))); err != nil {
					t.Errorf("Create: %v", err)
				}
				list, _, err := b.Memories().List(ctx, scope, memory.Filter{Limit: 2})
				if err != nil {
					t.Errorf("List: %v", err)
				}
				for _, m := range list {
					if _, err := b.Memories().Delete(ctx, scope, []string{m.ID}); err != nil {
						t.Errorf("Delete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// Only the user's own sources and tags are offered, without the empty source.
func TestLabels(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for i, u := range b.users {
		for _, source := range []string{"Claude", "cli", "cli", "", fmt.Sprint("own", i)} {
			m := newMemory(fmt.Sprintf("2025-05-09 %s %s", source, uuid.NewString()))
			m.Source = source
			if source != "" {
				m.Tags = []string{"Common", "by " + source}
			}
			if _, err := b.Memories().Create(t.Context(), u, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, u := range b.users {
		labels, err := b.Memories().Labels(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		want := memory.Labels{Sources: []string{"Claude", "cli", fmt.Sprint("own", i)}, Tags: []string{"by Claude", "by cli", fmt.Sprint("by own", i), "Common"}}
		if diff := cmp.Diff(want, labels); diff != "" {
			t.Errorf("labels of user %d (-want +got):\n%s", i, diff)
		}
	}
}

// A listing of long memories is limited, in both orders and from any memory.
func TestListReadsFewLongMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	b.remember(t, scope, "first", nil)
	const memories = memory.LongTextPage + 20
	exec(t, b.owner, `insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens)
		select tenant_id, user_id, gen_random_uuid(), seq + n, bucket_id, 'note ' || n, 1 from memories, generate_series(1, $1::int) n`, memories-1)
	defer exec(t, b.owner, "delete from memories where text like 'note %'") // before the counters are compared
	for name, test := range map[string]struct {
		tokens  int
		filter  memory.Filter
		want    int
		hasMore bool
	}{
		"Short":   {memory.LongTextTokens - 1, memory.Filter{Limit: memory.MaxPage}, memories, false},
		"Limited": {memory.LongTextTokens - 1, memory.Filter{Limit: memories - 1}, memories - 1, true},
		"Long":    {memory.LongTextTokens, memory.Filter{Limit: memory.MaxPage}, memory.LongTextPage, true},
		"Newest":  {memory.LongTextTokens, memory.Filter{Limit: memory.MaxPage, Newest: true}, memory.LongTextPage, true},
		"Skip":    {memory.LongTextTokens, memory.Filter{Limit: memory.MaxPage, Skip: 20}, memory.LongTextPage, false},
		"Few":     {memory.LongTextTokens, memory.Filter{Limit: memory.MaxPage, Skip: 21}, memory.LongTextPage - 1, false},
		"AsOf":    {memory.LongTextTokens, memory.Filter{Limit: memory.MaxPage, AsOf: time.Now().Add(time.Hour)}, memory.LongTextPage, true},
	} {
		exec(t, b.owner, "update memories set tokens = $1", test.tokens)
		list, hasMore, err := b.Memories().List(t.Context(), scope, test.filter)
		if err != nil {
			t.Fatal(name, err)
		}
		if len(list) != test.want || hasMore != test.hasMore {
			t.Errorf("%s: %d memories, more %t, want %d, %t", name, len(list), hasMore, test.want, test.hasMore)
		}
	}
}
