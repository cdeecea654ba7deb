package postgres_test

import (
	"errors"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

// prepare prepares a memory, which must succeed.
func (b *testBundle) prepare(t *testing.T, m memory.NewMemory) memory.NewMemory {
	t.Helper()
	var err error
	if m.Prepared, err = b.Memories().Prepare(t.Context(), b.users[0], m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPreparedMemory: what changed between the preparation and the creation of a memory has the same result as without a preparation.
func TestPreparedMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change    func(t *testing.T, b *testBundle, m memory.NewMemory)
		duplicate bool
		err       error
		kind      fault.Kind
		stored    int
	}{
		"Nothing": {stored: 1, change: func(*testing.T, *testBundle, memory.NewMemory) {}},
		"Duplicate": {stored: 1, duplicate: true, change: func(t *testing.T, b *testBundle, m memory.NewMemory) {
			t.Helper()
			if _, err := b.Memories().Create(t.Context(), b.users[0], m); err != nil {
				t.Fatal(err)
			}
		}},
		"BucketDeleted": {err: memory.ErrBucketNotFound, change: func(t *testing.T, b *testBundle, m memory.NewMemory) {
			t.Helper()
			if _, err := b.Memories().DeleteBucket(t.Context(), b.users[0], m.Bucket); err != nil {
				t.Fatal(err)
			}
		}},
		"QuotaUsed": {kind: fault.Forbidden, change: func(t *testing.T, b *testBundle, _ memory.NewMemory) {
			t.Helper()
			exec(t, b.owner, "update quotas set memories = 1")
		}},
		"UserErased": {kind: fault.NotFound, change: func(t *testing.T, b *testBundle, _ memory.NewMemory) {
			t.Helper()
			exec(t, b.owner, "update users set purging = true")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			b.remember(t, b.users[0], "first", nil) // creates the default bucket
			m := newMemory("second")
			m.Bucket = b.createBucket(t, b.users[0], "Recipes")
			prepared := b.prepare(t, m)
			if prepared.Prepared.Bucket != m.Bucket || prepared.Prepared.Duplicate != "" || len(prepared.Prepared.Units) != len(m.Units) {
				t.Fatalf("prepared: %+v, want bucket %d and %d units", prepared.Prepared, m.Bucket, len(m.Units))
			}
			test.change(t, b, m)
			created, err := b.Memories().Create(t.Context(), b.users[0], prepared)
			switch {
			case test.err != nil && !errors.Is(err, test.err), test.kind != 0 && !fault.Is(err, test.kind), test.err == nil && test.kind == 0 && err != nil:
				t.Errorf("Create: %v, want %v, kind %v", err, test.err, test.kind)
			case created.Duplicate != test.duplicate:
				t.Errorf("duplicate: %t, want %t", created.Duplicate, test.duplicate)
			}
			if n := b.count(t, "select count(*) from memories where text = 'second'"); n != test.stored {
				t.Errorf("%d memories are stored, want %d", n, test.stored)
			}
		})
	}
}

// TestPreparedDuplicate: a memory that repeats one is stored if that has been deleted since.
func TestPreparedDuplicate(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.remember(t, b.users[0], "text", nil)
	prepared := b.prepare(t, newMemory("text"))
	if prepared.Prepared.Duplicate != id {
		t.Fatalf("prepared: %+v, want the duplicate %s", prepared.Prepared, id)
	}
	created, err := b.Memories().Create(t.Context(), b.users[0], prepared)
	if err != nil || !created.Duplicate || created.ID != id {
		t.Errorf("Create = %+v, %v, want the duplicate %s", created, err, id)
	}
	if _, err := b.Memories().Delete(t.Context(), b.users[0], []string{id}); err != nil {
		t.Fatal(err)
	}
	created, err = b.Memories().Create(t.Context(), b.users[0], prepared)
	if err != nil || created.Duplicate {
		t.Errorf("Create = %+v, %v, want a new memory", created, err)
	}
}

// A memory that repeats another one with other decorations is a duplicate, which only the preparation finds.
func TestPreparedRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.remember(t, b.users[0], "text", nil)
	m := newMemory("- text")
	m.Repeats = []memory.Repeat{{Text: "text"}}
	created, err := b.Memories().Create(t.Context(), b.users[0], b.prepare(t, m))
	if err != nil || !created.Duplicate || created.ID != id {
		t.Errorf("Create = %+v, %v, want the duplicate %s", created, err, id)
	}
}

// The default bucket is created with the first memory, also if the preparation did not find it.
func TestPreparedFirstMemory(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	prepared := b.prepare(t, newMemory("text"))
	if created, err := b.Memories().Create(t.Context(), b.users[0], prepared); err != nil || created.Duplicate {
		t.Errorf("Create = %+v, %v, want a new memory", created, err)
	}
}
