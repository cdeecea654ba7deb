package milvus_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

func TestEnsureIsIdempotent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.location, entry(1, b.alice.User, 1))
	b.ensure(t, b.location)
	if d := cmp.Diff([]retrieve.UnitID{1}, b.list(t, b.location)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestEnsureDoesNotWait ensures locations in new and recreated collections, which Milvus
// takes seconds to load.
func TestEnsureDoesNotWait(t *testing.T) {
	t.Parallel()
	b := prepare(t)
	t.Cleanup(func() { dropCollection(t, b.prefix+shared.Collection) })
	for _, p := range []placement.Location{b.location, shared, b.location, shared} {
		if id, err := b.Ensure(t.Context(), placement.Placement{Location: p}); !errors.Is(err, placement.ErrLoading) {
			t.Errorf("Ensure of %+v = %d, %v, want ErrLoading", p, id, err)
		}
		id := ensured(t, b.Index, p)
		if again, err := b.Ensure(t.Context(), placement.Placement{Location: p, PartitionID: id}); err != nil || again != id {
			t.Errorf("Ensure with id %d = %d, %v, want the same id", id, again, err)
		}
		dropCollection(t, b.prefix+p.Collection)
	}
	ensured(t, b.Index, b.location) // dropped when the test ends
	ensured(t, b.Index, shared)
}

// TestConcurrentEnsure creates a collection, partitions and a shared collection from
// several connections concurrently, while other partitions are dropped.
func TestConcurrentEnsure(t *testing.T) {
	t.Parallel()
	b := prepare(t)
	t.Cleanup(func() { dropCollection(t, b.prefix+shared.Collection) })
	locations := []placement.Location{
		{Collection: b.location.Collection, Partition: "p_a"}, {Collection: b.location.Collection, Partition: "p_b"}, shared,
	}
	var mu sync.Mutex
	ids := map[placement.Location]map[int64]bool{}
	var wait sync.WaitGroup
	for i := range 9 {
		x := open(t, config(t, b.prefix)) // a separate connection, like a separate process
		p := locations[i%len(locations)]
		wait.Go(func() {
			n, err := placement.WaitLoaded(x).Ensure(t.Context(), placement.Placement{Location: p})
			if err != nil {
				t.Errorf("Ensure: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if ids[p] == nil {
				ids[p] = map[int64]bool{}
			}
			ids[p][n] = true
		})
		wait.Go(func() {
			brief := placement.Location{Collection: b.location.Collection, Partition: "p_brief" + string(rune('a'+i))}
			if _, err := placement.WaitLoaded(x).Ensure(t.Context(), placement.Placement{Location: brief}); err != nil {
				t.Errorf("Ensure: %v", err)
			}
			if err := x.Drop(t.Context(), brief); err != nil {
				t.Errorf("Drop: %v", err)
			}
		})
	}
	wait.Wait()
	for p, numbers := range ids {
		if len(numbers) != 1 || numbers[0] {
			t.Errorf("%+v got ids %v, want one id for all", p, numbers)
		}
	}
	b.upsert(t, locations[1], entry(1, b.alice.User, 1))
	b.upsert(t, shared, entry(2, b.alice.User, 1))
	if d := cmp.Diff([]retrieve.UnitID{1}, b.search(t, b.alice, locations[1], retrieve.Request{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]retrieve.UnitID{2}, b.search(t, b.alice, shared, retrieve.Request{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestDropAndEnsureAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := placement.Location{Collection: b.location.Collection, Partition: "p_two"}
	if _, err := placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: other}); err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	b.upsert(t, b.location, entry(1, b.alice.User, 1))
	b.upsert(t, other, entry(2, b.alice.User, 1))
	for range 2 { // the second call has no effect
		if err := b.Drop(t.Context(), b.location); err != nil {
			t.Fatalf("Drop: %v", err)
		}
	}

	_, err := b.Search(t.Context(), b.alice, b.location, retrieve.Request{Kind: retrieve.Memory, Limit: 1}, axis(1))
	if !errors.Is(err, milvus.ErrNoPartition) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("Search = %v, want ErrNoPartition of kind Unavailable", err)
	}
	err = b.Upsert(t.Context(), b.tenant, b.location, []indexing.Entry{entry(1, b.alice.User, 1)})
	if !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("Upsert = %v, want ErrNoPartition", err)
	}
	if _, err := b.List(t.Context(), b.tenant, b.location, 0, 10); !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("List = %v, want ErrNoPartition", err)
	}
	if d := cmp.Diff([]retrieve.UnitID{2}, b.search(t, b.alice, other, retrieve.Request{})); d != "" {
		t.Errorf("the other tenant's entries, -want +got\n%s", d)
	}

	id, err := placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: b.location, PartitionID: b.partitionID})
	if err != nil || id == b.partitionID {
		t.Fatalf("Ensure of a lost partition = %d, %v, want a different id", id, err)
	}
	if _, err := b.List(t.Context(), b.tenant, b.location, 0, 10); !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("List = %v, want ErrNoPartition: Ensure must not recreate a lost partition whose id is recorded", err)
	}
	id, err = placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: b.location})
	if err != nil || id == b.partitionID || id == 0 {
		t.Fatalf("Ensure = %d, %v, want a new id", id, err)
	}
	if got := b.list(t, b.location); got != nil {
		t.Errorf("a recreated partition contains %v", got)
	}
	b.upsert(t, b.location, entry(3, b.alice.User, 1))
	if d := cmp.Diff([]retrieve.UnitID{3}, b.search(t, b.alice, b.location, retrieve.Request{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestDropOfMissingPartition(t *testing.T) {
	t.Parallel()
	b := prepare(t)
	if err := b.Drop(t.Context(), b.location); err != nil {
		t.Errorf("Drop = %v, want nil", err)
	}
}

func TestEnsureCompletesInterruptedOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.location, entry(1, b.alice.User, 1))
	c, err := sdk(t.Context(), t)
	if err != nil {
		t.Fatalf("connect to Milvus: %v", err)
	}
	defer func() { _ = c.Close() }()
	name := b.prefix + b.location.Collection

	if err := c.ReleasePartitions(t.Context(), name, []string{b.location.Partition}); err != nil {
		t.Fatalf("release partition: %v", err)
	}
	b.ensure(t, b.location)
	if d := cmp.Diff([]retrieve.UnitID{1}, b.search(t, b.alice, b.location, retrieve.Request{})); d != "" {
		t.Errorf("after an interrupted Drop, -want +got\n%s", d)
	}

	if err := c.ReleaseCollection(t.Context(), name); err != nil {
		t.Fatalf("release collection: %v", err)
	}
	if err := c.DropIndex(t.Context(), name, "embedding"); err != nil {
		t.Fatalf("drop index: %v", err)
	}
	_, err = b.Search(t.Context(), b.alice, b.location, retrieve.Request{Kind: retrieve.Memory, Limit: 1}, axis(1))
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("Search of a collection that is not loaded = %v, want Unavailable", err)
	}
	b.ensure(t, b.location)
	if d := cmp.Diff([]retrieve.UnitID{1}, b.search(t, b.alice, b.location, retrieve.Request{})); d != "" {
		t.Errorf("after an interrupted Ensure, -want +got\n%s", d)
	}
}

// ensure checks that Ensure returns the id of the location that setup created.
func (b bundle) ensure(t *testing.T, p placement.Location) {
	t.Helper()
	id, err := placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: p})
	if err != nil || id != b.partitionID {
		t.Fatalf("Ensure = %d, %v, want the unchanged id %d", id, err, b.partitionID)
	}
}

func TestEnsureRejectsAnotherModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := config(t, b.prefix)
	c.Dimensions = 1536
	_, err := placement.WaitLoaded(open(t, c)).Ensure(t.Context(), placement.Placement{Location: b.location})
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("Ensure = %v, want Invalid", err)
	}
	for _, want := range []string{"16 dimensions", "1536", "mnemo index rebuild"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
}
