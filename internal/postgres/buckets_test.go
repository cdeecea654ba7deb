package postgres_test

import (
	"sync"
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

func TestDefaultBucketIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = b.ListBuckets(t.Context(), b.users[0])
			} else {
				_, err = b.Memories().Create(t.Context(), b.users[0], newMemory("text"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := b.ListBuckets(t.Context(), b.users[0])
	if err != nil || len(got) != 1 || got[0].Memories != 6 {
		t.Errorf("buckets: %v, %v", got, err)
	}
}
