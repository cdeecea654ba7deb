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
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// edit returns an edit with a new text and its units.
func edit(id, text string) memory.Edit {
	m := newMemory(text)
	return memory.Edit{UpdateInput: memory.UpdateInput{ID: id, Text: &text}, Tokens: m.Tokens, Units: m.Units}
}

// createBucket creates a bucket and returns its id.
func (b *testBundle) createBucket(t testing.TB, scope tenant.Scope, name string) int64 {
	t.Helper()
	id, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// get returns one memory.
func (b *testBundle) get(t testing.TB, scope tenant.Scope, id string) memory.Memory {
	t.Helper()
	got, err := b.Memories().ByID(t.Context(), scope, []string{id}, time.Time{})
	if err != nil || len(got) != 1 {
		t.Fatalf("ByID = %v, %v", got, err)
	}
	return got[0]
}

// wantJobs checks that the index jobs enqueued by step contain exactly the given units.
func (b *testBundle) wantJobs(t testing.TB, step string, units ...[]retrieve.UnitID) {
	t.Helper()
	want := map[retrieve.UnitID]bool{}
	for _, id := range slices.Concat(units...) {
		want[id] = true
	}
	if diff := cmp.Diff(want, b.jobUnits(t)); diff != "" {
		t.Errorf("units in index jobs after %s (-want +got):\n%s", step, diff)
	}
}

func TestEditAppendsAVersionWithNewUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	id := b.remember(t, scope, "2025-05-09 window seat", nil)
	before, old := b.get(t, scope, id), b.unitsOf(t, id)
	work := b.createBucket(t, scope, "Work")
	b.jobUnits(t)

	long := "2025-05-10 aisle seat. " + strings.Repeat("It is closer to the door. ", 100)
	e := edit(strings.ToUpper(id), long)
	e.Bucket = memory.BucketRef{ID: work, Name: "wORK"}
	if v, err := b.Memories().Update(ctx, scope, e); err != nil || v != 2 {
		t.Fatalf("Update = %d, %v", v, err)
	}
	m := b.get(t, scope, id)
	want := before
	want.Text, want.Tokens, want.Version, want.BucketID, want.BucketName = long, e.Tokens, 2, work, "Work"
	if diff := cmp.Diff(want, m, cmpopts.IgnoreFields(memory.Memory{}, "UpdatedAt")); diff != "" || !m.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("after the edit, updated %v then %v (-want +got):\n%s", before.UpdatedAt, m.UpdatedAt, diff)
	}
	created := b.unitsOf(t, id)
	if len(created) < 2 || slices.Contains(created, old[0]) {
		t.Errorf("units after the edit: %v, want new units instead of %v", created, old)
	}
	b.wantJobs(t, "the edit", old, created)

	for i := 3; i <= 5; i++ {
		if v, err := b.Memories().Update(ctx, scope, edit(id, fmt.Sprint("text ", i))); err != nil || v != i {
			t.Fatalf("Update = %d, %v", v, err)
		}
	}
	list, hasMore, err := b.Memories().Versions(ctx, scope, id, 1, 3)
	wantVersions := []memory.Version{{Version: 4, Text: "text 4"}, {Version: 3, Text: "text 3"}, {Version: 2, Text: long}}
	if diff := cmp.Diff(wantVersions, list, cmpopts.IgnoreFields(memory.Version{}, "CreatedAt")); diff != "" || !hasMore || err != nil {
		t.Errorf("Versions = more %v, %v (-want +got):\n%s", hasMore, err, diff)
	}
	if list, hasMore, err = b.Memories().Versions(ctx, scope, id, 50, 3); err != nil || hasMore || len(list) != 0 {
		t.Errorf("Versions beyond the last = %v, %v, %v", list, hasMore, err)
	}
	if _, err := b.Memories().Delete(ctx, scope, []string{id}); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.Memories().Versions(ctx, scope, id, 0, 1)
	wantKind(t, "Versions of a deleted memory", err, fault.NotFound)
}

func TestEditWithoutChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.remember(t, scope, "same", nil)
	before := b.get(t, scope, id)
	b.jobUnits(t)
	e := edit(id, "same")
	e.Bucket.Name = "general"
	if v, err := b.Memories().Update(t.Context(), scope, e); err != nil || v != 1 {
		t.Fatalf("Update = %d, %v", v, err)
	}
	if diff := cmp.Diff(before, b.get(t, scope, id)); diff != "" {
		t.Errorf("an edit without changes changed the memory (-want +got):\n%s", diff)
	}
	b.wantJobs(t, "an edit without changes")
}

// A text replaces only the version that its author has seen. Otherwise nothing of the edit is stored.
func TestEditReplacesSeenVersion(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	id := b.remember(t, scope, "first", nil)
	b.createBucket(t, scope, "Work")
	replace := func(text string, version int, bucket string) (int, error) {
		e := edit(id, text)
		e.Replaces, e.Bucket.Name = &version, bucket
		return b.Memories().Update(ctx, scope, e)
	}
	if v, err := replace("second", 1, ""); err != nil || v != 2 {
		t.Fatalf("Update of the seen version = %d, %v", v, err)
	}
	before := b.get(t, scope, id)
	_, err := replace("late", 1, "Work")
	wantKind(t, "Update of an earlier version", err, fault.Conflict)
	if diff := cmp.Diff(before, b.get(t, scope, id)); diff != "" {
		t.Errorf("the rejected edit changed the memory (-want +got):\n%s", diff)
	}
	if v, err := replace("second", 1, "Work"); err != nil || v != 2 {
		t.Errorf("Update with the current text = %d, %v", v, err)
	}
	e := edit(id, "other")
	e.Replaces = new(2)
	_, err = b.Memories().Update(ctx, b.users[1], e)
	wantKind(t, "Update of another user's memory", err, fault.NotFound)
}

// A bucket's name and description replace only those that their author has seen.
func TestBucketUpdateReplacesSeenValues(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	id := b.createBucket(t, scope, "Work")
	first, second := "of all kinds", "of one kind"
	u := memory.BucketUpdate{Description: &first, Replaces: &memory.BucketInput{Name: "Work"}}
	if err := b.UpdateBucket(ctx, scope, id, u); err != nil {
		t.Fatal(err)
	}
	u.Description = &second
	wantKind(t, "UpdateBucket with an earlier description", b.UpdateBucket(ctx, scope, id, u), fault.Conflict)
	u.Replaces.Description = first
	if err := b.UpdateBucket(ctx, scope, id, u); err != nil {
		t.Errorf("UpdateBucket with the current description: %v", err)
	}
	wantKind(t, "UpdateBucket of another user", b.UpdateBucket(ctx, b.users[1], id, u), fault.NotFound)
}

// A move copies the lexemes and the embedding to new units in the other bucket.
func TestMoveCopiesUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	v := randomUnit(rand.New(rand.NewPCG(1, 2)))
	var ids []string
	var old, created []retrieve.UnitID
	for i := range 3 {
		id := b.remember(t, scope, fmt.Sprintf("gardening %d", i), func(string) []float32 { return v })
		ids = append(ids, id)
		old = append(old, b.unitsOf(t, id)...)
	}
	work := b.createBucket(t, scope, "Work")
	b.jobUnits(t)
	moved, err := b.Memories().Move(ctx, scope, memory.MoveInput{
		IDs: []string{ids[2], ids[0], strings.ToUpper(ids[0]), ids[1]}, Bucket: memory.BucketRef{Name: "WORK"}})
	if diff := cmp.Diff([]string{ids[2], ids[0], ids[1]}, moved); diff != "" || err != nil {
		t.Fatalf("Move: %v (-want +got):\n%s", err, diff)
	}
	for _, id := range ids {
		created = append(created, b.unitsOf(t, id)...)
		m := b.get(t, scope, id)
		if m.BucketID != work {
			t.Errorf("bucket after the move = %d, want %d", m.BucketID, work)
		}
		if m.Version != 1 {
			t.Errorf("version after the move = %d, want 1", m.Version)
		}
	}
	b.wantJobs(t, "the move", old, created)
	units, err := b.Load(ctx, scope.Tenant, slices.Concat(old, created))
	if err != nil || len(units) != 3 {
		t.Fatalf("live units: %v, %v", units, err)
	}
	for _, u := range units {
		if u.Group != work {
			t.Errorf("bucket of unit %d = %d, want %d", u.ID, u.Group, work)
		}
		if len(u.Vectors) == 0 {
			t.Errorf("unit %d has no vector", u.ID)
		}
		if !strings.HasPrefix(u.Dense, "(undated) gardening ") {
			t.Errorf("text of unit %d = %q, want a copy", u.ID, u.Dense)
		}
	}
	hits, err := b.Lexical(ctx, scope, retrieve.Request{Kind: retrieve.Memory, Text: "gardening", Group: work, Limit: 10})
	if err != nil || len(hits) != 3 {
		t.Errorf("found in the new bucket: %v, %v", hits, err)
	}
	// Repeating the move writes nothing.
	if moved, err = b.Memories().Move(ctx, scope, memory.MoveInput{IDs: ids, Bucket: memory.BucketRef{ID: work}}); err != nil || len(moved) != 3 {
		t.Errorf("Move again = %v, %v", moved, err)
	}
	b.wantJobs(t, "the repeated move")
}

func TestMoveIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	mine, others := b.remember(t, scope, "mine", nil), b.remember(t, b.users[1], "another user's", nil)
	foreign := b.remember(t, b.users[2], "another tenant's", nil)
	work := b.createBucket(t, scope, "Work")
	before := b.get(t, scope, mine)
	b.jobUnits(t)
	unknown := uuid.NewString()
	_, err := b.Memories().Move(ctx, scope, memory.MoveInput{
		IDs: []string{others, mine, foreign, "x", unknown, "x", "\x00"}, Bucket: memory.BucketRef{ID: work}})
	wantKind(t, "Move with foreign ids", err, fault.NotFound)
	e, _ := errors.AsType[*fault.Error](err)
	if diff := cmp.Diff([]string{others, foreign, "x", unknown, "\x00"}, e.RejectedIDs); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	theirs := b.createBucket(t, b.users[1], "Theirs")
	for name, ref := range map[string]memory.BucketRef{
		"of another user": {ID: theirs}, "unknown": {ID: 1 << 40}, "named by another user": {Name: "Theirs"}, "with contradicting name": {ID: work, Name: "General"},
	} {
		_, err := b.Memories().Move(ctx, scope, memory.MoveInput{IDs: []string{mine}, Bucket: ref})
		if !errors.Is(err, memory.ErrBucketNotFound) {
			t.Errorf("Move to a bucket %s: %v, want ErrBucketNotFound", name, err)
		}
		_, err = b.Memories().Update(ctx, scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: mine, Bucket: ref}})
		if !errors.Is(err, memory.ErrBucketNotFound) {
			t.Errorf("Update to a bucket %s: %v, want ErrBucketNotFound", name, err)
		}
	}
	if diff := cmp.Diff(before, b.get(t, scope, mine)); diff != "" {
		t.Errorf("a rejected move changed the memory (-want +got):\n%s", diff)
	}
	b.wantJobs(t, "the rejected moves")
}

func TestEditsAreIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx := t.Context()
	id := b.remember(t, b.users[0], "mine", nil)
	bucket := b.createBucket(t, b.users[0], "Mine")
	name := "Theirs"
	for i, u := range b.users[1:] {
		_, err := b.Memories().Update(ctx, u, edit(id, "theirs"))
		wantKind(t, fmt.Sprintf("Update by user %d", i+1), err, fault.NotFound)
		_, _, err = b.Memories().Versions(ctx, u, id, 0, 1)
		wantKind(t, fmt.Sprintf("Versions by user %d", i+1), err, fault.NotFound)
		wantKind(t, "UpdateBucket", b.UpdateBucket(ctx, u, bucket, memory.BucketUpdate{Name: &name}), fault.NotFound)
		_, err = b.DeleteBucket(ctx, u, bucket)
		wantKind(t, "DeleteBucket", err, fault.NotFound)
	}
	m := b.get(t, b.users[0], id)
	if m.Text != "mine" {
		t.Errorf("text = %q, want %q", m.Text, "mine")
	}
	if m.Version != 1 {
		t.Errorf("version = %d, want 1", m.Version)
	}
	for _, id := range []string{"", "x", "\x00", uuid.NewString()} {
		_, err := b.Memories().Update(ctx, b.users[0], edit(id, "text"))
		wantKind(t, "Update of "+id, err, fault.NotFound)
	}
}

// Each version counts toward the storage quota; moves do not.
func TestEditsRespectTheStorageQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Storage = 25 })
	ctx, scope := t.Context(), b.users[0]
	id := b.remember(t, scope, strings.Repeat("a", 10), nil)
	if _, err := b.Memories().Update(ctx, scope, edit(id, strings.Repeat("b", 15))); err != nil {
		t.Errorf("edit up to the quota: %v", err)
	}
	_, err := b.Memories().Update(ctx, scope, edit(id, "c"))
	wantKind(t, "edit over the quota", err, fault.Forbidden)
	work := b.createBucket(t, scope, "Work")
	if _, err := b.Memories().Move(ctx, scope, memory.MoveInput{IDs: []string{id}, Bucket: memory.BucketRef{ID: work}}); err != nil {
		t.Errorf("move at the quota: %v", err)
	}
	m := b.get(t, scope, id)
	if m.Version != 2 {
		t.Errorf("version = %d, want 2", m.Version)
	}
	if m.BucketID != work {
		t.Errorf("bucket = %d, want %d", m.BucketID, work)
	}
}

func TestConcurrentEditsMovesAndDeletions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	buckets := []int64{b.createBucket(t, scope, "One"), b.createBucket(t, scope, "Two"), b.createBucket(t, scope, "Three")}
	var ids []string
	for i := range 6 {
		ids = append(ids, b.remember(t, scope, fmt.Sprint(i), nil))
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 12 {
				var err error
				switch id := ids[(w+i)%6]; (w + 3*i) % 5 {
				case 0, 1:
					_, err = b.Memories().Update(ctx, scope, edit(id, fmt.Sprintf("writer %d, %d", w, i)))
				case 2, 3:
					_, err = b.Memories().Move(ctx, scope, memory.MoveInput{IDs: []string{id, ids[0]}, Bucket: memory.BucketRef{ID: buckets[i%3]}})
				case 4:
					_, err = b.DeleteBucket(ctx, scope, buckets[w%3])
				}
				if err != nil && !fault.Is(err, fault.NotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	units, err := b.Live(ctx, scope.Tenant, 0, 100)
	if err != nil || len(units) != len(ids) {
		t.Errorf("%d memories have the live units %v, %v", len(ids), units, err)
	}
}

func TestBucketsAreRenamed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	work, art := b.createBucket(t, scope, "Work"), b.createBucket(t, scope, "Art")
	b.createBucket(t, b.users[1], "Journeys")
	change := func(id int64, name, description string) error {
		u := memory.BucketUpdate{}
		if name != "" {
			u.Name = &name
		}
		if description != "" {
			u.Description = &description
		}
		return b.UpdateBucket(ctx, scope, id, u)
	}
	list, err := b.ListBuckets(ctx, scope)
	if err != nil {
		t.Fatal(err)
	}
	general := list[0].ID
	for _, s := range []struct {
		reason, name, description string
		id                        int64
		want                      fault.Kind
	}{
		{"name used by another user", "Journeys", "", work, 0},
		{"own name in another case", "jOURNEYS", "", work, 0},
		{"duplicate name", "JOURNEYS", "", art, fault.Conflict},
		{"name of the default bucket", "general", "", art, fault.Conflict},
		{"renamed default bucket", "Other", "", general, fault.Conflict},
		{"default bucket with its own name", "General", "for all", general, 0},
		{"description only", "", "of all kinds", art, 0},
		{"unknown bucket", "x", "", 1 << 40, fault.NotFound},
	} {
		if err := change(s.id, s.name, s.description); fault.KindOf(err) != s.want {
			t.Errorf("%s: %v, want kind %v", s.reason, err, s.want)
		}
	}
	want := []memory.Bucket{
		{ID: general, Name: "General", Description: "for all", Default: true},
		{ID: art, Name: "Art", Description: "of all kinds"}, {ID: work, Name: "jOURNEYS"},
	}
	if list, err = b.ListBuckets(ctx, scope); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
}

// Deleting a bucket moves its memories in batches and keeps their order.
func TestDeleteBucketKeepsMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	work := b.createBucket(t, scope, "Work")
	const n = 1203
	for i := range n {
		m := newMemory(fmt.Sprint(i))
		m.Bucket = work
		if _, err := b.Memories().Create(ctx, scope, m); err != nil {
			t.Fatal(err)
		}
	}
	if moved, err := b.DeleteBucket(ctx, scope, work); err != nil || moved != n {
		t.Fatalf("DeleteBucket = %d, %v", moved, err)
	}
	list, err := b.ListBuckets(ctx, scope)
	if err != nil {
		t.Fatalf("buckets: %v", err)
	}
	if len(list) != 1 {
		t.Fatalf("buckets: len(list) = %d, want 1", len(list))
	}
	if list[0].Memories != n {
		t.Errorf("buckets: list[0].Memories = %v, want %v", list[0].Memories, n)
	}
	all, _, err := b.Memories().List(ctx, scope, memory.Filter{Bucket: list[0].ID, Limit: 2 * n})
	if err != nil || len(all) != n {
		t.Fatalf("%d memories, %v", len(all), err)
	}
	for i, m := range all {
		if m.Text != fmt.Sprint(i) {
			t.Fatalf("memory %d is %q", i, m.Text)
		}
	}
	_, err = b.DeleteBucket(ctx, scope, work)
	wantKind(t, "DeleteBucket again", err, fault.NotFound)
	_, err = b.DeleteBucket(ctx, scope, list[0].ID)
	wantKind(t, "DeleteBucket of the default", err, fault.Conflict)
}

// The memories of a deleted bucket are kept, even if the default bucket has one with the same text and attributes.
func TestDeleteBucketKeepsEqualMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, scope := t.Context(), b.users[0]
	work := b.createBucket(t, scope, "Work")
	for _, bucket := range []int64{0, work} {
		m := newMemory("2026-05-03 The spare key hangs in the shed.")
		m.Bucket = bucket
		if created, err := b.Memories().Create(ctx, scope, m); err != nil || created.Duplicate {
			t.Fatalf("Create = %+v, %v, want a new memory", created, err)
		}
	}
	if moved, err := b.DeleteBucket(ctx, scope, work); err != nil || moved != 1 {
		t.Fatalf("DeleteBucket = %d, %v, want 1", moved, err)
	}
	if all, _, err := b.Memories().List(ctx, scope, memory.Filter{Limit: 10}); err != nil || len(all) != 2 {
		t.Errorf("%d memories, %v, want 2", len(all), err)
	}
}

// An export with more versions of a memory than memory.MaxHistory could not be restored.
func TestVersionsAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id, theirs := b.remember(t, scope, "a", nil), b.remember(t, b.users[1], "a", nil)
	const stored = memory.CheckedVersions + 2
	for _, m := range []string{id, theirs} {
		exec(t, b.owner, `insert into memory_versions (tenant_id, user_id, memory_id, version, text)
			select m.tenant_id, m.user_id, m.id, n, repeat('x', $2) from memories m, generate_series(2, $3::int) n where m.id = $1`, m, memory.MaxText, stored)
		exec(t, b.owner, "update memories set version = $2 where id = $1", m, stored)
	}
	exec(t, b.owner, "update usage set storage = storage + $2 where tenant_id = $1", string(scope.Tenant), int64(2*(stored-1)*memory.MaxText))
	size := b.count(t, "select sum(octet_length(text) + $2) from memory_versions where memory_id = $1", id, memory.VersionSize)
	exec(t, b.owner, "update memory_versions set text = left(text, octet_length(text) - $2) where memory_id = $1 and version = 2", id, size-memory.MaxHistory)
	exec(t, b.owner, "update usage set storage = storage - $2 where tenant_id = $1", string(scope.Tenant), size-memory.MaxHistory)
	update := func(scope tenant.Scope, id, text string) error {
		_, err := b.Memories().Update(t.Context(), scope, edit(id, text))
		return err
	}
	if err := update(scope, id, "b"); err != nil {
		t.Errorf("the last edit: %v", err)
	}
	for range 2 {
		if err := update(scope, id, "c"); !errors.Is(err, memory.ErrHistoryTooLarge) {
			t.Errorf("an edit more: %v, want %v", err, memory.ErrHistoryTooLarge)
		}
	}
	if got := b.get(t, scope, id).Text; got != "b" {
		t.Errorf("the text is %q, want that of the last edit", got)
	}
}
