package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStory is a customer's life from `kubectl apply` to `kubectl delete`.
func TestStory(t *testing.T) {
	t.Parallel()
	const policy = "  deletionPolicy: Delete\n"
	applyTenant(t, "story", policy)
	alice := client{token: secret(t, "story", "alice", "token")}
	if got := secret(t, "story", "alice", "url"); got != platform.env["MNEMO_URL"] {
		t.Errorf("url in the Secret is %q, want %q", got, platform.env["MNEMO_URL"])
	}

	dog := alice.remember(t, "2026-05-03 We adopted a greyhound from the shelter.")
	tax := alice.remember(t, "2026-05-04 The tax return was sent by post.")
	var all memories
	alice.want(t, "GET", "/api/v2/memory", nil, &all)
	if got, want := all.ids(), []string{dog, tax}; !slices.Equal(got, want) {
		t.Errorf("list gave %v, want %v in order of writing", got, want)
	}
	if found, _ := alice.recall(t, "what kind of dog do we have"); len(found.Memories) == 0 || found.Memories[0].ID != dog {
		t.Errorf("search for the dog gave %v, want %s first", found.ids(), dog)
	}
	alice.want(t, "DELETE", "/api/memories/"+dog, nil, nil)
	if found, _ := alice.recall(t, "what kind of dog do we have"); slices.Contains(found.ids(), dog) {
		t.Error("a deleted memory was found")
	}
	if r := alice.do(t, "DELETE", "/api/memories/"+dog, nil, nil); r.StatusCode != http.StatusNotFound {
		t.Errorf("deleting it again: status %d, want 404", r.StatusCode)
	}

	old := alice.ingest(t, "old", "Knee", time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		"My knee hurts after running, what should I do?", "Rest it and put ice on the joint.")
	recent := alice.ingest(t, "recent", "Lisbon", time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC),
		"Where should we travel in spring?", "Lisbon is warm in May and not yet crowded.")
	if got := alice.passages(t, "which city was recommended for the holiday"); len(got) == 0 || got[0] != recent {
		t.Errorf("search for the city gave %v, want %s first", got, recent)
	}
	if got := alice.count(t); got != 2 {
		t.Errorf("count = %d, want 2", got)
	}

	// Room for one: the older becomes blocked, and is neither counted nor found.
	applyTenant(t, "story", policy+"  quota: {conversations: 1}\n")
	eventually(t, 30*time.Second, func() string {
		if n := alice.count(t); n != 1 {
			return "count is " + string(rune('0'+n)) + ", want 1"
		}
		return ""
	})
	if got := alice.passages(t, "ice for a painful joint"); slices.Contains(got, old) {
		t.Error("a blocked conversation was found")
	}
	var chats struct {
		Items []struct{ ID, Status string }
	}
	alice.want(t, "GET", "/api/chat-history/chats?status=blocked", nil, &chats)
	if len(chats.Items) != 1 || chats.Items[0].ID != old {
		t.Errorf("blocked conversations are %+v, want only %s", chats.Items, old)
	}
	// Deleting the newer makes room, without a request from anyone.
	alice.want(t, "DELETE", "/api/chat-history/chats", map[string]any{"ids": []string{recent}}, nil)
	eventually(t, 30*time.Second, func() string {
		if got := alice.passages(t, "ice for a painful joint"); !slices.Contains(got, old) {
			return "the blocked conversation is not back"
		}
		return ""
	})

	uid := kubectl(t, "", "get", "tenant", "story", "-o", "jsonpath={.metadata.uid}")
	place := placementOf(t, uid)
	kubectl(t, "", "delete", "tenant", "story", "--timeout=90s")
	if r := alice.do(t, "GET", "/api/v2/memory", nil, nil); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token of a deleted Tenant: status %d, want 401", r.StatusCode)
	}
	if left := rowsOf(t, uid); left != "" {
		t.Errorf("PostgreSQL still holds %s", left)
	}
	if hasPartition(t, place) {
		t.Errorf("Milvus still has the partition %+v", place)
	}
	if out := kubectl(t, "", "get", "secrets", "-l", "mnemo.dev/tenant=story", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("Secrets are left: %s", out)
	}
}

// TestTenantsCannotReachEachOther tries one tenant's ids with another's token.
func TestTenantsCannotReachEachOther(t *testing.T) {
	t.Parallel()
	applyTenant(t, "ours", "")
	applyTenant(t, "theirs", "")
	us := client{token: secret(t, "ours", "alice", "token")}
	them := client{token: secret(t, "theirs", "alice", "token")}
	text := "2026-05-03 The vault code is hidden in the piano."
	id := us.remember(t, text)
	conversation := us.ingest(t, "c", "Vault", time.Now(), "Where is the vault code hidden?", "In the piano.")

	if found, _ := them.recall(t, "vault code"); len(found.Memories) != 0 {
		t.Errorf("their search found %+v", found.Memories)
	}
	if found := them.passages(t, "vault code"); len(found) != 0 {
		t.Errorf("their search found %v", found)
	}
	if n := them.count(t); n != 0 {
		t.Errorf("their count is %d", n)
	}
	for _, c := range []struct{ method, ours, unknown string }{
		{"DELETE", "/api/memories/" + id, "/api/memories/unknown"},
		{"GET", "/api/chat-history/conversation?conversationId=" + conversation, "/api/chat-history/conversation?conversationId=unknown"},
	} {
		var got, want map[string]any
		g, w := them.do(t, c.method, c.ours, nil, &got), them.do(t, c.method, c.unknown, nil, &want)
		if g.StatusCode != w.StatusCode || got["error"] != want["error"] || g.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s: %d %v, unlike an unknown id: %d %v", c.method, c.ours, g.StatusCode, got, w.StatusCode, want)
		}
	}
	var bulk struct{ DeletedCount int }
	them.want(t, "POST", "/api/memories/bulk-delete", map[string]any{"memoryIds": []string{id}}, &bulk)
	var chats struct{ Deleted []string }
	them.want(t, "DELETE", "/api/chat-history/chats", map[string]any{"ids": []string{conversation}}, &chats)
	if bulk.DeletedCount != 0 || len(chats.Deleted) != 0 {
		t.Errorf("they deleted %d memories and %v", bulk.DeletedCount, chats.Deleted)
	}
	if found, _ := us.recall(t, "vault code"); !slices.Contains(found.ids(), id) {
		t.Error("our memory is gone")
	}
}
