package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// TestStory is a customer's life from `kubectl apply` to `kubectl delete`.
func TestStory(t *testing.T) {
	t.Parallel()
	const policy = "  deletionPolicy: Delete\n"
	applyTenant(t, "story", policy)
	alice := connect(t, secret(t, "story", "alice", "token"))
	if got := secret(t, "story", "alice", "url"); got != platform.env["MNEMO_URL"] {
		t.Errorf("url in the Secret is %q, want %q", got, platform.env["MNEMO_URL"])
	}

	dog := alice.remember(t, "2026-05-03 We adopted a greyhound from the shelter.")
	tax := alice.remember(t, "2026-05-04 The tax return was sent by post.")
	if got, want := alice.memories(t), []string{dog, tax}; !slices.Equal(got, want) {
		t.Errorf("list gave %v, want %v in order of writing", got, want)
	}
	if found, _ := alice.recall(t, "what kind of dog do we have"); len(found) == 0 || found[0] != dog {
		t.Errorf("search for the dog gave %v, want %s first", found, dog)
	}
	alice.forget(t, dog)
	if found, _ := alice.recall(t, "what kind of dog do we have"); slices.Contains(found, dog) {
		t.Error("a deleted memory was found")
	}
	_, err := alice.DeleteMemory(t.Context(), dog)
	wantStatus(t, "deleting it again", err, http.StatusNotFound)

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
			return fmt.Sprintf("count is %d, want 1", n)
		}
		return ""
	})
	if got := alice.passages(t, "ice for a painful joint"); slices.Contains(got, old) {
		t.Error("a blocked conversation was found")
	}
	chats, err := alice.ListConversations(t.Context(), &client.ListConversationsParams{Status: new(client.ListConversationsParamsStatusBlocked)})
	if err != nil {
		t.Fatal(err)
	}
	if items := chats.Body.Items; len(items) != 1 || items[0].ID != old {
		t.Errorf("blocked conversations are %+v, want only %s", items, old)
	}
	// Deleting the newer makes room, without a request from anyone.
	if _, err := alice.DeleteConversations(t.Context(), client.DeleteConversationsRequest{Ids: []string{recent}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		if got := alice.passages(t, "ice for a painful joint"); !slices.Contains(got, old) {
			return "the blocked conversation is not back"
		}
		return ""
	})

	app := authorizeApp(t, "story", "alice").access
	if status := usesMCP(t, app); status != http.StatusOK {
		t.Errorf("request of an authorized app: %d", status)
	}

	uid := kubectl(t, "", "get", "tenant", "story", "-o", "jsonpath={.metadata.uid}")
	if rows := rowsOf(t, uid); !strings.Contains(rows, "oauth_secrets") {
		t.Errorf("the rows are %s: what was given to the app is not among them", rows)
	}
	outgrow(t, "story")
	location := placementOf(t, uid)
	kubectl(t, "", "delete", "tenant", "story", "--timeout=90s")
	_, err = alice.ListMemories(t.Context(), nil)
	wantStatus(t, "a token of a deleted Tenant", err, http.StatusUnauthorized)
	if status := usesMCP(t, app); status != http.StatusUnauthorized {
		t.Errorf("an app's access to a deleted Tenant: %d", status)
	}
	if left := rowsOf(t, uid); left != "" {
		t.Errorf("PostgreSQL still holds %s", left)
	}
	if hasPartition(t, location) {
		t.Errorf("Milvus still has the partition %+v", location)
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
	us := connect(t, secret(t, "ours", "alice", "token"))
	them := connect(t, secret(t, "theirs", "alice", "token"))
	text := "2026-05-03 The vault code is hidden in the piano."
	id := us.remember(t, text)
	chat := us.ingest(t, "c", "Vault", time.Now(), "Where is the vault code hidden?", "In the piano.")

	if found, _ := them.recall(t, "vault code"); len(found) != 0 {
		t.Errorf("their search found %v", found)
	}
	if found := them.passages(t, "vault code"); len(found) != 0 {
		t.Errorf("their search found %v", found)
	}
	if n := them.count(t); n != 0 {
		t.Errorf("their count is %d", n)
	}
	deleting := func(id string) error { _, err := them.DeleteMemory(t.Context(), id); return err }
	reading := func(id string) error {
		_, err := them.GetConversation(t.Context(), &client.GetConversationParams{ConversationID: id})
		return err
	}
	for what, c := range map[string]struct{ ours, unknown error }{
		"deleting a memory":      {deleting(id), deleting("unknown")},
		"reading a conversation": {reading(chat), reading("unknown")},
	} {
		wantStatus(t, what, c.ours, http.StatusNotFound)
		if c.ours.Error() != c.unknown.Error() {
			t.Errorf("%s: %v, unlike an unknown id: %v", what, c.ours, c.unknown)
		}
	}
	bulk, err := them.DeleteMemories(t.Context(), client.DeleteMemoriesRequest{MemoryIds: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	chats, err := them.DeleteConversations(t.Context(), client.DeleteConversationsRequest{Ids: []string{chat}})
	if err != nil {
		t.Fatal(err)
	}
	if bulk.Body.DeletedCount != 0 {
		t.Errorf("bulk.Body.DeletedCount = %d, want 0", bulk.Body.DeletedCount)
	}
	if len(chats.Body.Deleted) != 0 {
		t.Errorf("len(chats.Body.Deleted) = %d, want 0", len(chats.Body.Deleted))
	}
	if found, _ := us.recall(t, "vault code"); !slices.Contains(found, id) {
		t.Error("our memory is gone")
	}
}
