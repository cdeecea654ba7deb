package milvus_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
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
	b.place = shared
	b.made = ensured(t, b.Index, shared)
	if other := ensured(t, b.Index, neighbor); other != b.made {
		t.Fatalf("the neighbour's place is numbered %d, want the collection's %d", other, b.made)
	}
	t.Cleanup(func() { dropCollection(t, b.prefix+shared.Collection) })
	return b
}

func TestSharedSearchSeesOneUserOfOneTenant(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	b.upsert(t, shared, entry(1, b.alice.User, 5), entry(2, b.alice.User, 6), entry(3, b.bob.User, 5))
	// The key holds even if user numbers were not unique across tenants.
	b.upsert(t, neighbor, entry(11, b.alice.User, 5), entry(12, 9, 5))
	tests := map[string]struct {
		reason string
		scope  tenant.Scope
		place  placement.Location
		query  retrieve.Query
		want   []retrieve.UnitID
	}{
		"Alice":    {"neither Bob's nor the neighbour's", b.alice, shared, retrieve.Query{}, []retrieve.UnitID{1, 2}},
		"Bob":      {"not Alice's", b.bob, shared, retrieve.Query{}, []retrieve.UnitID{3}},
		"Neighbor": {"the key separates even equal user numbers", b.alice, neighbor, retrieve.Query{}, []retrieve.UnitID{11}},
		"Group":    {"narrowed to the group", b.alice, shared, retrieve.Query{Group: 6}, []retrieve.UnitID{2}},
		"Stranger": {"a key nobody has is empty, not an error", b.alice, placement.Location{Collection: shared.Collection, Partition: "t_three", Shared: true}, retrieve.Query{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, b.search(t, tc.scope, tc.place, tc.query)); d != "" {
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
	if got := b.search(t, b.alice, shared, retrieve.Query{Group: 5}); got != nil {
		t.Errorf("the old entry is found: %v", got)
	}
	// A unit that comes back under another key has left the first.
	b.upsert(t, neighbor, entry(1, b.alice.User, 5))
	if d := cmp.Diff([]retrieve.UnitID{2}, b.list(t, shared)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSharedDeleteAndDropLeaveNothing(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	var ours []retrieve.Entry
	for id := range 2500 { // three batches
		ours = append(ours, entry(id+1, b.alice.User, 5))
	}
	b.upsert(t, shared, ours...)
	b.upsert(t, neighbor, entry(9001, b.alice.User, 5))
	if err := b.Delete(t.Context(), b.tenant, shared, []retrieve.UnitID{1, 2, 77777}); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if got := b.list(t, shared); len(got) != 1000 || got[0] != 3 {
		t.Errorf("after the delete %d are listed, want the first 1000 from unit 3 on", len(got))
	}
	for range 2 { // the second finds nothing to do
		if err := b.Drop(t.Context(), shared); err != nil {
			t.Fatalf("Drop: %v", err)
		}
	}
	if got := b.list(t, shared); got != nil {
		t.Errorf("after the drop there are %v", got)
	}
	if got := b.search(t, b.alice, shared, retrieve.Query{}); got != nil {
		t.Errorf("after the drop %v are found", got)
	}
	if d := cmp.Diff([]retrieve.UnitID{9001}, b.list(t, neighbor)); d != "" {
		t.Errorf("the neighbour's entries, -want +got\n%s", d)
	}
}

func TestSharedCollectionIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := setupShared(t)
	b.upsert(t, shared, entry(1, b.alice.User, 5))
	b.ensure(t, shared)
	dropCollection(t, b.prefix+shared.Collection)
	err := b.Upsert(t.Context(), b.tenant, shared, []retrieve.Entry{entry(1, b.alice.User, 5)})
	if !errors.Is(err, milvus.ErrNoPartition) {
		t.Errorf("Upsert = %v, want ErrNoPartition", err)
	}
	if err := b.Drop(t.Context(), shared); err != nil {
		t.Errorf("Drop = %v, want nil", err)
	}
	for _, p := range []placement.Location{shared, neighbor} {
		if made := ensured(t, b.Index, p); made == b.made {
			t.Errorf("%+v is numbered %d as before: its tenant would not know of the loss", p, made)
		}
	}
	b.upsert(t, shared, entry(2, b.alice.User, 5))
	if d := cmp.Diff([]retrieve.UnitID{2}, b.list(t, shared)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestEnsureRefusesTheOtherKindOfCollection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: placement.Location{Collection: b.place.Collection, Partition: "t_one", Shared: true}})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("Ensure = %v, want Invalid", err)
	}
}

// What an operator that was killed half way left is no hindrance to a purge.
func TestSharedDropOfWhatIsNotLoaded(t *testing.T) {
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
		t.Fatalf("Drop of what is not loaded: %v", err)
	}
	if left := b.list(t, shared); left != nil {
		t.Errorf("left: %v", left)
	}
}
