package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx := t.Context()
	for _, name := range []string{"work", "Art"} {
		if _, err := b.CreateBucket(ctx, b.users[0], memory.BucketInput{Name: name, Description: "of " + name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, taken := range []string{"WORK", "general", "General"} {
		_, err := b.CreateBucket(ctx, b.users[0], memory.BucketInput{Name: taken})
		wantKind(t, "CreateBucket "+taken, err, fault.Conflict)
	}
	b.remember(t, b.users[0], "text", nil)
	want := []memory.Bucket{
		{Name: "General", Memories: 1, Default: true},
		{Name: "Art", Description: "of Art"},
		{Name: "work", Description: "of work"},
	}
	for i, u := range b.users {
		got, err := b.ListBuckets(ctx, u)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			want = []memory.Bucket{{Name: "General", Default: true}}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(memory.Bucket{}, "ID")); diff != "" {
			t.Errorf("buckets of user %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestDefaultBucketIsCreatedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = b.ListBuckets(t.Context(), b.users[0])
			} else {
				_, err = b.Memories().Create(t.Context(), b.users[0], newMemory(fmt.Sprint("text ", i)))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := b.ListBuckets(t.Context(), b.users[0])
	if err != nil {
		t.Fatalf("buckets: %v", err)
	}
	if len(got) != 1 {
		t.Fatalf("buckets: len(got) = %d, want 1", len(got))
	}
	if got[0].Memories != 6 {
		t.Errorf("buckets: got[0].Memories = %d, want 6", got[0].Memories)
	}
}

// Names that look the same are the same, regardless of their encoding. Each name is
// stored as given.
func TestBucketNames(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, alice := t.Context(), b.users[0]
	for name, names := range map[string][]string{
		"Caf\u00e9":   {"cafe\u0301", "CAFE\u0301", "caf\u00c9"},
		"Stra\u00dfe": {"STRASSE", "stra\u1e9ee"},
		"\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2": {"\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3"},
		"Travel":                     {"Tra\u200bvel", "\u2060travel\ufeff", "TRAVEL\ufe0f"},
		"\U0001f469\u200d\U0001f4bb": {"\U0001f469\U0001f4bb"},
	} {
		id, err := b.CreateBucket(ctx, alice, memory.BucketInput{Name: name})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		other, err := b.CreateBucket(ctx, alice, memory.BucketInput{Name: "another than " + name})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range names {
			_, err := b.CreateBucket(ctx, alice, memory.BucketInput{Name: s})
			wantKind(t, fmt.Sprintf("CreateBucket %q beside %q", s, name), err, fault.Conflict)
			wantKind(t, fmt.Sprintf("rename to %q beside %q", s, name), b.UpdateBucket(ctx, alice, other, memory.BucketUpdate{Name: &s}), fault.Conflict)
			if err := b.UpdateBucket(ctx, alice, id, memory.BucketUpdate{Name: &s}); err != nil {
				t.Errorf("rename %q to %q: %v", name, s, err)
			}
			m := b.remember(t, alice, "text", nil)
			if _, err := b.Memories().Move(ctx, alice, memory.MoveInput{IDs: []string{m}, Bucket: memory.BucketRef{ID: id, Name: name}}); err != nil {
				t.Errorf("move to %q: %v", name, err)
			}
		}
	}
	m := b.remember(t, alice, "text", nil)
	_, err := b.Memories().Move(ctx, alice, memory.MoveInput{IDs: []string{m}, Bucket: memory.BucketRef{Name: "\u200b"}})
	wantKind(t, "move to an invisible name", err, fault.NotFound)
	list, err := b.ListBuckets(ctx, alice)
	if err != nil || !slices.ContainsFunc(list, func(b memory.Bucket) bool { return b.Name == "TRAVEL\ufe0f" }) {
		t.Errorf("names are not stored as given: %v, %v", list, err)
	}
}

// An export with more than memory.MaxBuckets could not be restored. Concurrent creations respect the limit.
func TestBucketsAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	b.createBucket(t, scope, "first")
	exec(t, b.owner, `insert into buckets (tenant_id, user_id, name, name_key, description)
		select $1, $2, 'b' || n, 'b' || n, '' from generate_series(1, $3::int) n`, string(scope.Tenant), int64(scope.User), memory.MaxBuckets-4)
	var created atomic.Int64
	var creators sync.WaitGroup
	for n := range 6 {
		creators.Go(func() {
			_, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: fmt.Sprint("last ", n)})
			if err == nil {
				created.Add(1)
			} else if !errors.Is(err, memory.ErrTooManyBuckets) {
				t.Errorf("CreateBucket = %v, want %v", err, memory.ErrTooManyBuckets)
			}
		})
	}
	creators.Wait()
	if n := created.Load(); n != 2 {
		t.Errorf("%d buckets were created, want 2", n)
	}
	b.createBucket(t, b.users[1], "theirs")
	openExport(t, b.exported(t, scope))
}
