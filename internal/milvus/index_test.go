package milvus_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func sortedIDs(hits []retrieve.Hit) []retrieve.UnitID {
	var ids []retrieve.UnitID
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestSearchSeesOneUserOfOneTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := placement.Location{Collection: b.location.Collection, Partition: "p_two"}
	if _, err := placement.WaitLoaded(b).Ensure(t.Context(), placement.Placement{Location: other}); err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	b.upsert(t, b.location, entry(1, b.alice.User, 5), entry(2, b.alice.User, 6), entry(3, b.bob.User, 5))
	// User ids are unique across tenants, but the partition isolates even equal ones.
	b.upsert(t, other, entry(11, b.alice.User, 5), entry(12, 9, 5))
	chat := entry(4, b.alice.User, 5)
	chat.Kind = retrieve.Chat
	b.upsert(t, b.location, chat)

	tests := map[string]struct {
		reason   string
		scope    tenant.Scope
		location placement.Location
		query    retrieve.Request
		want     []retrieve.UnitID
	}{
		"Alice":       {"not Bob's or the other tenant's entries", b.alice, b.location, retrieve.Request{}, []retrieve.UnitID{1, 2}},
		"Bob":         {"not Alice's entries", b.bob, b.location, retrieve.Request{}, []retrieve.UnitID{3}},
		"OtherTenant": {"only its own partition", tenant.Scope{Tenant: "two", User: 9}, other, retrieve.Request{}, []retrieve.UnitID{12}},
		"Partition":   {"the partition isolates even equal user ids", b.alice, other, retrieve.Request{}, []retrieve.UnitID{11}},
		"Group":       {"restricted to the group", b.alice, b.location, retrieve.Request{Group: 6}, []retrieve.UnitID{2}},
		"GroupEmpty":  {"an unknown group is empty, not an error", b.alice, b.location, retrieve.Request{Group: 7}, nil},
		"Kind":        {"restricted to the kind", b.alice, b.location, retrieve.Request{Kind: retrieve.Chat}, []retrieve.UnitID{4}},
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

func TestSearchIsBestFirstByCosine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	far := entry(2, b.alice.User, 1)
	near := entry(3, b.alice.User, 1)
	near.Vector = axis(1)
	near.Vector[0] = 1 // not normalized: the cosine ignores the length
	b.upsert(t, b.location, far, near, entry(1, b.alice.User, 1))
	hits, err := b.Search(t.Context(), b.alice, b.location, retrieve.Request{Kind: retrieve.Memory, Limit: 3}, axis(1))
	if err != nil {
		t.Fatalf("Search: %v", err)
	}
	want := []retrieve.Hit{{ID: 1, Score: 1}, {ID: 3, Score: 0.7071}, {ID: 2, Score: 0}}
	roughly := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-3 && b-a < 1e-3 })
	if d := cmp.Diff(want, hits, roughly); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestUpsertReplaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.location, entry(1, b.alice.User, 5))
	moved := entry(1, b.alice.User, 6)
	moved.Vector = axis(1)
	b.upsert(t, b.location, moved)
	b.upsert(t, b.location, moved)
	if d := cmp.Diff([]retrieve.UnitID{1}, b.list(t, b.location)); d != "" {
		t.Errorf("after three upserts, -want +got\n%s", d)
	}
	if got := b.search(t, b.alice, b.location, retrieve.Request{Group: 5}); got != nil {
		t.Errorf("the replaced entry is still found: %v", got)
	}
	hits, err := b.Search(t.Context(), b.alice, b.location, retrieve.Request{Kind: retrieve.Memory, Limit: 10}, axis(1))
	if err != nil || len(hits) != 1 {
		t.Errorf("Search = %v, %v, want one hit: Milvus does not enforce unique keys", hits, err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.location, entry(1, b.alice.User, 5), entry(2, b.alice.User, 5), entry(3, b.alice.User, 5))
	if err := b.Delete(t.Context(), b.tenant, b.location, []retrieve.UnitID{1, 3, 77}); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if d := cmp.Diff([]retrieve.UnitID{2}, b.list(t, b.location)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]retrieve.UnitID{2}, b.search(t, b.alice, b.location, retrieve.Request{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	gone := placement.Location{Collection: b.location.Collection, Partition: "p_never"}
	if err := b.Delete(t.Context(), b.tenant, gone, []retrieve.UnitID{1}); err != nil {
		t.Errorf("Delete in a missing partition = %v, want nil", err)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := rand.New(rand.NewPCG(1, 2))
	var entries []indexing.Entry
	var want []retrieve.UnitID
	for i := range 2500 { // three batches
		entries = append(entries, entry(i*3+1, b.alice.User, 1))
		want = append(want, retrieve.UnitID(i*3+1))
	}
	r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	b.upsert(t, b.location, entries...)
	var got []retrieve.UnitID
	for after := retrieve.UnitID(0); ; {
		page, err := b.List(t.Context(), b.tenant, b.location, after, 600)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestWrongDimensionsAreInternal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	short := []float32{1, 2}
	b.upsert(t, b.location, entry(1, b.alice.User, 1))
	_, err := b.Search(t.Context(), b.alice, b.location, retrieve.Request{Kind: retrieve.Memory, Limit: 1}, short)
	if !fault.Is(err, fault.Internal) {
		t.Errorf("Search = %v, want Internal", err)
	}
	e := entry(1, b.alice.User, 1)
	e.Vector = short
	if err := b.Upsert(t.Context(), b.tenant, b.location, []indexing.Entry{e}); !fault.Is(err, fault.Internal) {
		t.Errorf("Upsert = %v, want Internal", err)
	}
}
