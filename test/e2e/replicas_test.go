package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

// replicas are the platform's API server and another one over the same stores;
// turn gives one after the other.
type replicas struct {
	urls []string
	next int
}

func (r *replicas) turn(t *testing.T, token string) user {
	t.Helper()
	r.next++
	return connectTo(t, r.urls[r.next%len(r.urls)], token)
}

// TestReplicas alternates between two API servers: what one did the other
// knows with the very next request.
//
//nolint:tparallel // its parts count on the same rows, one after the other
func TestReplicas(t *testing.T) {
	t.Parallel()
	urls := []string{platform.env["MNEMO_URL"], startReplica(t)}
	applyTenant(t, "replicas", "  quota: {requestsPerMinute: 1000000}\n")
	token := secret(t, "replicas", "alice", "token")
	for _, part := range []struct {
		name string
		test func(*testing.T, *replicas, string)
	}{
		{"Memories", alternateMemories}, // first: it knows all that are there
		{"Buckets", alternateBuckets}, {"Chats", alternateChats}, {"Once", alternateKeys},
		{"Rate", alternateRate}, {"Import", alternateImport},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, &replicas{urls: urls}, token) })
	}
	t.Run("Revocation", func(t *testing.T) { alternateRevocation(t, &replicas{urls: urls}) })
}

func alternateMemories(t *testing.T, r *replicas, token string) {
	var want []string
	for i := range 20 {
		text := fmt.Sprintf("2026-04-%02d The lighthouse keeper of rock number %d keeps goats.", i+1, i)
		id := r.turn(t, token).remember(t, text)
		want = append(want, id)
		if got := r.turn(t, token).memories(t); !slices.Equal(got, want) {
			t.Fatalf("after write %d the other replica lists %v, want %v", i, got, want)
		}
		if found, _ := r.turn(t, token).recall(t, fmt.Sprintf("which animals live on rock %d", i)); !slices.Contains(found, id) {
			t.Errorf("the other replica does not find %q", text)
		}
	}
	edit := client.UpdateMemoryRequest{MemoryID: &want[0], Text: new("2026-04-01 The lighthouse keeper of rock number 0 keeps otters.")}
	if _, err := r.turn(t, token).UpdateMemory(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	got, err := r.turn(t, token).GetMemory(t.Context(), want[0])
	if err != nil {
		t.Fatal(err)
	}
	if got.Body.Text != *edit.Text {
		t.Errorf("Body.Text = %v, want %v", got.Body.Text, *edit.Text)
	}
	if got.Body.Version != 2 {
		t.Errorf("Body.Version = %d, want 2", got.Body.Version)
	}
	r.turn(t, token).forget(t, want[1])
	if found, _ := r.turn(t, token).recall(t, "which animals live on rock 1"); slices.Contains(found, want[1]) {
		t.Error("the other replica finds a deleted memory")
	}
	_, err = r.turn(t, token).GetMemory(t.Context(), want[1])
	wantStatus(t, "reading what the other deleted", err, http.StatusNotFound)
}

func alternateBuckets(t *testing.T, r *replicas, token string) {
	if _, err := r.turn(t, token).CreateBucket(t.Context(), nil, client.CreateBucketRequest{Name: "Islands"}); err != nil {
		t.Fatal(err)
	}
	_, err := r.turn(t, token).CreateBucket(t.Context(), nil, client.CreateBucketRequest{Name: "islands"})
	wantStatus(t, "creating a bucket with a name in use", err, http.StatusConflict)
	move := client.UpdateMemoryRequest{MemoryIds: []string{r.turn(t, token).remember(t, "2026-04-30 The ferry is blue.")}, BucketName: new("Islands")}
	if _, err := r.turn(t, token).UpdateMemory(t.Context(), move); err != nil {
		t.Fatal(err)
	}
	counts := func() map[string]int64 {
		list, err := r.turn(t, token).ListBuckets(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int64{}
		for _, b := range list.Body {
			out[b.Name] = b.MemoryCount
		}
		return out
	}
	if got := counts(); got["Islands"] != 1 {
		t.Errorf("counts of the other replica %v, want one memory in Islands", got)
	}
}

func alternateChats(t *testing.T, r *replicas, token string) {
	at := time.Date(2026, 5, 2, 9, 0, 0, 0, time.UTC)
	id := r.turn(t, token).ingest(t, "sourdough", "Bread", at, "How long should the dough rise?", "Eight hours in a cool room.")
	if got := r.turn(t, token).passages(t, "how many hours for the bread"); !slices.Contains(got, id) {
		t.Errorf("the other replica found %v, want %s", got, id)
	}
	if n := r.turn(t, token).count(t); n != 1 {
		t.Errorf("count of the other replica %d, want 1", n)
	}
	// Ingesting it again through the other replica updates it.
	if again := r.turn(t, token).ingest(t, "sourdough", "Bread", at, "How long should the dough rise?", "Eight hours.", "Thanks!"); again != id {
		t.Errorf("id of the second ingest %s, want %s", again, id)
	}
	mark := client.UpdateConversationsRequest{Ids: []string{id}, Excluded: new(true)}
	if _, err := r.turn(t, token).UpdateConversations(t.Context(), mark); err != nil {
		t.Fatal(err)
	}
	if got := r.turn(t, token).passages(t, "how many hours for the bread"); slices.Contains(got, id) {
		t.Error("the other replica finds an excluded conversation")
	}
	if _, err := r.turn(t, token).DeleteConversations(t.Context(), client.DeleteConversationsRequest{Ids: []string{id}}); err != nil {
		t.Fatal(err)
	}
	_, err := r.turn(t, token).GetConversation(t.Context(), &client.GetConversationParams{ConversationID: id})
	wantStatus(t, "reading what the other deleted", err, http.StatusNotFound)
}

// alternateKeys sends one request to both at the same time, many times: it is
// done once.
func alternateKeys(t *testing.T, r *replicas, token string) {
	before := len(r.turn(t, token).memories(t))
	for i := range 5 {
		params := &client.CreateMemoryParams{IdempotencyKey: new(fmt.Sprintf("twice-%d", i))}
		body := client.CreateMemoryRequest{Text: fmt.Sprintf("2026-05-%02d The harbour master retired.", i+1)}
		answers := make([]*client.Response[client.CreatedMemory], 6)
		errs := make([]error, len(answers))
		var wg sync.WaitGroup
		for n := range answers {
			u := r.turn(t, token)
			wg.Go(func() { answers[n], errs[n] = u.CreateMemory(t.Context(), params, body) })
		}
		wg.Wait()
		for n := range answers {
			if errs[n] != nil || answers[n].Body.MemoryID != answers[0].Body.MemoryID {
				t.Fatalf("request %d of one key: %+v, %v; the first: %+v", n, answers[n], errs[n], answers[0])
			}
		}
		_, err := r.turn(t, token).CreateMemory(t.Context(), params, client.CreateMemoryRequest{Text: "another"})
		wantStatus(t, "the key with another body", err, http.StatusConflict)
	}
	if after := len(r.turn(t, token).memories(t)); after != before+5 {
		t.Errorf("%d memories were stored under five keys", after-before)
	}
}

// alternateImport: a file sent to one is followed at the other, by asking and
// as events.
func alternateImport(t *testing.T, r *replicas, _ string) {
	applyTenant(t, "replicas-import", "  quota: {requestsPerMinute: 1000000}\n")
	token := secret(t, "replicas-import", "alice", "token")
	id := r.turn(t, token).importFile(t, claudeExport)
	events, err := r.turn(t, token).FollowImport(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	said, err := io.ReadAll(events.Body) // it ends when the import is over
	if err != nil || !strings.Contains(string(said), `"status":"done"`) {
		t.Errorf("events of the other replica %s, %v, want status done", said, err)
	}
	for range r.urls {
		got, err := r.turn(t, token).GetImport(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got.Body.Status != client.ImportStatusDone {
			t.Errorf("Body.Status = %v, want %v", got.Body.Status, client.ImportStatusDone)
		}
		if got.Body.Imported != 1 {
			t.Errorf("Body.Imported = %d, want 1", got.Body.Imported)
		}
	}
	if n := r.turn(t, token).count(t); n != 1 {
		t.Errorf("count is %d, want 1", n)
	}
}

// alternateRate checks that the rate limit applies to the sum of both replicas.
func alternateRate(t *testing.T, r *replicas, _ string) {
	const limit = 40
	applyTenant(t, "replicas-rate", fmt.Sprintf("  quota: {requestsPerMinute: %d}\n", limit))
	token := secret(t, "replicas-rate", "alice", "token")
	begun := time.Now().Truncate(time.Minute)
	admitted, refused := 0, map[int]bool{}
	for range 3 * limit {
		_, err := r.turn(t, token).CountConversations(t.Context())
		switch client.StatusOf(err) {
		case http.StatusTooManyRequests:
			refused[r.next%2] = true
		case 0:
			if err != nil {
				t.Fatal(err)
			}
			admitted++
		default:
			t.Fatal(err)
		}
	}
	minutes := int(time.Now().Truncate(time.Minute).Sub(begun)/time.Minute) + 1
	if admitted < limit || admitted > limit*minutes || !refused[0] || !refused[1] {
		t.Errorf("in %d minutes %d of %d were admitted, refused by %v", minutes, admitted, limit, refused)
	}
}

// alternateRevocation checks that both replicas reject a replaced token, although
// both have just accepted it.
func alternateRevocation(t *testing.T, r *replicas) {
	applyTenant(t, "replicas-token", "")
	old := secret(t, "replicas-token", "alice", "token")
	for range r.urls {
		r.turn(t, old).count(t)
	}
	kubectl(t, "", "patch", "tenant", "replicas-token", "--type=merge", "-p", `{"spec":{"users":[{"name":"alice","tokenGeneration":2}]}}`)
	eventually(t, 30*time.Second, func() string {
		if secret(t, "replicas-token", "alice", "token") == old {
			return "the Secret still has the old token"
		}
		return ""
	})
	fresh := secret(t, "replicas-token", "alice", "token")
	for range r.urls {
		r.turn(t, fresh).count(t)
	}
	eventually(t, 10*time.Second, func() string {
		for range r.urls {
			if _, err := r.turn(t, old).CountConversations(t.Context()); client.StatusOf(err) != http.StatusUnauthorized {
				return fmt.Sprintf("the old token: %v, want 401", err)
			}
		}
		return ""
	})
}
