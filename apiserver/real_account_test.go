package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// vectors returns what the index holds of a tenant of realStores.tenant.
func (s realStores) vectors(t *testing.T, name string) ([]retrieve.UnitID, error) {
	t.Helper()
	id := tenant.ID(fmt.Sprintf("0196b2f4-0000-7000-8000-%012x", name))
	place, err := s.db.Place(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.index.List(t.Context(), id, place, 0, 1000)
}

// holds waits until the index holds n vectors of a tenant.
func (h *house) holds(t *testing.T, s realStores, name string, n int) {
	t.Helper()
	h.eventually(t, func() string {
		list, err := s.vectors(t, name)
		if err != nil || len(list) != n {
			return fmt.Sprintf("the index holds %d vectors, want %d: %v", len(list), n, err)
		}
		return ""
	})
}

// takesAccountsOutAndAway: an export holds all that is the user's and nothing
// that is not; a deletion likewise, vectors included, and the token stays.
func (h *house) takesAccountsOutAndAway(t *testing.T, s realStores) {
	t.Helper()
	alice, bob, carol := s.tenant(t, "leave", "alice", false), s.tenant(t, "leave", "bob", false), s.tenant(t, "stay", "carol", false)
	ids := map[string]*strings.Replacer{alice: h.fill(t, alice), bob: h.fill(t, bob), carol: h.fill(t, carol)}
	h.holds(t, s, "leave", 6) // a memory and two messages each
	for token, own := range ids {
		got := files(t, h.ok(t, token, "GET", "/api/export", "").body)
		all := fmt.Sprint(got)
		for other := range ids {
			for _, id := range []string{"$m", "$c"} {
				if has := strings.Contains(all, ids[other].Replace(id)); has != (other == token) {
					t.Errorf("another's id is in the export, or the own one is not: %t", has)
				}
			}
		}
		if !strings.Contains(got["buckets.jsonl"], own.Replace(`"id":$b,"name":"Travel"`)) || strings.Contains(all, "embedding") {
			t.Errorf("the export is %s", all)
		}
	}
	got := h.ok(t, alice, "DELETE", "/api/account", `{"confirm":"delete everything"}`)
	if !strings.Contains(got.body, `"memories":1,"conversations":1`) {
		t.Errorf("deleted: %s", got.body)
	}
	h.seesNothing(t, alice, "the user that left")
	h.holds(t, s, "leave", 3)
	if got := files(t, h.ok(t, alice, "GET", "/api/export", "").body); got["memories.jsonl"]+got["messages.jsonl"]+got["conversations.jsonl"] != "" {
		t.Errorf("after the deletion the export is %v", got)
	}
	h.ok(t, bob, "GET", ids[bob].Replace("/api/memories/$m"), "")
	h.ok(t, carol, "GET", ids[carol].Replace("/api/chat-history/conversation?conversationId=$c"), "")
	h.fill(t, alice) // an account like any other
	h.holds(t, s, "leave", 6)
}

// With Milvus away an account is deleted all the same, and its vectors go when
// Milvus is back.
func TestAccountIsDeletedWithMilvusAway(t *testing.T) {
	t.Parallel()
	gate := testkit.NewGate(t, testkit.Milvus(t).Addr)
	gate.Open(t)
	h, s := newRealHouseOn(t, openRealAt(t, gate.Addr))
	alice := s.tenant(t, "away", "alice", false)
	h.fill(t, alice)
	h.holds(t, s, "away", 3)
	gate.Close()
	h.ok(t, alice, "DELETE", "/api/account", `{"confirm":"delete everything"}`)
	h.seesNothing(t, alice, "the user that left")
	gate.Open(t)
	h.holds(t, s, "away", 0)
}
