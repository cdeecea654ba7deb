package milvus_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/milvus/milvustest"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Two tenants of a shared collection.
var (
	shared   = placement.Location{Collection: "mnemo_shared_1", Partition: "t_one", Shared: true}
	neighbor = placement.Location{Collection: "mnemo_shared_1", Partition: "t_two", Shared: true}
)

// setupShared is setup with a shared collection.
func setupShared(t *testing.T) bundle {
	t.Helper()
	b := prepare(t)
	b.location = shared
	b.partitionID = ensured(t, b.Index, shared)
	if other := ensured(t, b.Index, neighbor); other != b.partitionID {
		t.Fatalf("the neighbor's location has the id %d, want the collection's id %d", other, b.partitionID)
	}
	t.Cleanup(func() { dropCollection(t, b.prefix+shared.Collection) })
	return b
}

func TestSharedSearchSeesOneUserOfOneTenant(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	b.upsert(t, shared, entry(1, b.alice.User, 5), entry(2, b.alice.User, 6), entry(3, b.bob.User, 5))
	// The partition key isolates even equal user ids.
	b.upsert(t, neighbor, entry(11, b.alice.User, 5), entry(12, 9, 5))
	tests := map[string]struct {
		reason   string
		scope    tenant.Scope
		location placement.Location
		query    retrieve.Request
		want     []retrieve.UnitID
	}{
		"Alice":    {"not Bob's or the neighbor's entries", b.alice, shared, retrieve.Request{}, []retrieve.UnitID{1, 2}},
		"Bob":      {"not Alice's entries", b.bob, shared, retrieve.Request{}, []retrieve.UnitID{3}},
		"Neighbor": {"the key isolates even equal user ids", b.alice, neighbor, retrieve.Request{}, []retrieve.UnitID{11}},
		"Group":    {"restricted to the group", b.alice, shared, retrieve.Request{Group: 6}, []retrieve.UnitID{2}},
		"Stranger": {"an unknown key is empty, not an error", b.alice, placement.Location{Collection: shared.Collection, Partition: "t_three", Shared: true}, retrieve.Request{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, b.search(t, tc.scope, tc.location, tc.query)); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

func TestSharedUpsertReplaces(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	b.upsert(t, shared, entry(1, b.alice.User, 5))
	b.upsert(t, shared, entry(1, b.alice.User, 6), entry(2, b.alice.User, 6))
	if d := cmp.Diff([]retrieve.UnitID{1, 2}, b.list(t, shared)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := b.search(t, b.alice, shared, retrieve.Request{Group: 5}); got != nil {
		t.Errorf("the replaced entry is still found: %v", got)
	}
	// Writing a unit under another key removes it from the first.
	b.upsert(t, neighbor, entry(1, b.alice.User, 5))
	if d := cmp.Diff([]retrieve.UnitID{2}, b.list(t, shared)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSharedDeleteAndDrop(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	var ours []indexing.Entry
	for id := range 2500 { // three batches
		ours = append(ours, entry(id+1, b.alice.User, 5))
	}
	b.upsert(t, shared, ours...)
	b.upsert(t, neighbor, entry(9001, b.alice.User, 5))
	if err := b.Delete(t.Context(), b.tenant, shared, []retrieve.UnitID{1, 2, 77777}); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	got := b.list(t, shared)
	if len(got) != 1000 {
		t.Fatalf("after Delete: %d units listed, want 1000", len(got))
	}
	if got[0] != 3 {
		t.Errorf("after Delete: first unit is %d, want 3", got[0])
	}
	for range 2 { // the second call has no effect
		if err := b.Drop(t.Context(), shared); err != nil {
			t.Fatalf("Drop: %v", err)
		}
	}
	if got := b.list(t, shared); got != nil {
		t.Errorf("after Drop: units %v listed, want none", got)
	}
	if got := b.search(t, b.alice, shared, retrieve.Request{}); got != nil {
		t.Errorf("after Drop: units %v found, want none", got)
	}
	if d := cmp.Diff([]retrieve.UnitID{9001}, b.list(t, neighbor)); d != "" {
		t.Errorf("the neighbor's entries, -want +got\n%s", d)
	}
}

func TestSharedCollectionIsRecreated(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	b.upsert(t, shared, entry(1, b.alice.User, 5))
	b.ensure(t, shared)
	dropCollection(t, b.prefix+shared.Collection)
	err := b.Upsert(t.Context(), b.tenant, shared, []indexing.Entry{entry(1, b.alice.User, 5)})
	if !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("Upsert = %v, want ErrNoPartition", err)
	}
	if err := b.Drop(t.Context(), shared); err != nil {
		t.Errorf("Drop = %v, want nil", err)
	}
	for _, p := range []placement.Location{shared, neighbor} {
		if id := ensured(t, b.Index, p); id == b.partitionID {
			t.Errorf("%+v still has the id %d: the loss would go unnoticed", p, id)
		}
	}
	b.upsert(t, shared, entry(2, b.alice.User, 5))
	if d := cmp.Diff([]retrieve.UnitID{2}, b.list(t, shared)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestEnsureRejectsCollectionOfOtherIsolation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: placement.Location{Collection: b.location.Collection, Partition: "t_one", Shared: true}})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("Ensure = %v, want Invalid", err)
	}
}

// A collection that a killed operator left unfinished does not block a purge.
func TestSharedDropOfUnloadedCollection(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	b.upsert(t, shared, entry(1, b.alice.User, 5))
	c, name := milvustest.Open(t), b.prefix+shared.Collection
	if err := c.ReleaseCollection(t.Context(), name); err != nil {
		t.Fatalf("release collection: %v", err)
	}
	if err := c.DropIndex(t.Context(), name, "embedding"); err != nil {
		t.Fatalf("drop index: %v", err)
	}
	if err := b.Drop(t.Context(), shared); err != nil {
		t.Fatalf("Drop in a collection that is not loaded: %v", err)
	}
	if left := b.list(t, shared); left != nil {
		t.Errorf("units left after Drop: %v", left)
	}
}
