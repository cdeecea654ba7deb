package postgres_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func request(route, key, body string) tenant.Request {
	return tenant.Request{Route: route, Key: sha256.Sum256([]byte(key)), Body: sha256.Sum256([]byte(body))}
}

func (b *testBundle) keyed(t testing.TB, scope tenant.Scope, key, text string) (string, error) {
	t.Helper()
	m := newMemory(text)
	m.Request = request("memory", key, text)
	created, err := b.Memories().Create(t.Context(), scope, m)
	return created.ID, err
}

func TestRequestIsExecutedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	seen := map[string]bool{}
	for i, u := range b.users { // all with the same key
		first, err := b.keyed(t, u, "k", "text")
		if err != nil || seen[first] {
			t.Fatalf("user %d: %q, %v", i, first, err)
		}
		seen[first] = true
		again, err := b.keyed(t, u, "k", "text")
		if err != nil || again != first {
			t.Errorf("user %d, again: %q, %v, want %q", i, again, err, first)
		}
		_, err = b.keyed(t, u, "k", "another text")
		wantKind(t, "another request", err, fault.Conflict)
		list, _, err := b.Memories().List(t.Context(), u, memory.Filter{Limit: 9})
		if err != nil {
			t.Fatalf("user %d: %v", i, err)
		}
		if len(list) != 1 {
			t.Fatalf("user %d: len(list) = %d, want 1", i, len(list))
		}
		if list[0].ID != first {
			t.Errorf("user %d: list[0].ID = %v, want %v", i, list[0].ID, first)
		}
	}
	// Keys are per route, and a repeated request returns the stored answer even
	// after the object was deleted.
	u := b.users[0]
	in := memory.BucketInput{Name: "Work", Request: request("bucket", "k", "Work")}
	id, err := b.CreateBucket(t.Context(), u, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.DeleteBucket(t.Context(), u, id); err != nil {
		t.Fatal(err)
	}
	if again, err := b.CreateBucket(t.Context(), u, in); err != nil || again != id {
		t.Errorf("CreateBucket again = %d, %v, want %d", again, err, id)
	}
}

func TestFailedRequestCanBeRetried(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Storage = 10 })
	_, err := b.keyed(t, b.users[0], "k", strings.Repeat("x", 11))
	wantKind(t, "over the quota", err, fault.Forbidden)
	if _, err := b.keyed(t, b.users[0], "k", "short"); err != nil {
		t.Errorf("another request after a failure: %v", err)
	}
}

func TestRequestExpiresAfterADay(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, key := range []string{"old", "older"} {
		if _, err := b.keyed(t, b.users[0], key, "text"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.owner.Exec(t.Context(), "update idempotency_keys set created_at = created_at - interval '24 hours'"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.keyed(t, b.users[0], "old", "new text"); err != nil {
		t.Errorf("the key of yesterday: %v", err)
	}
	var left int
	if err := b.owner.QueryRow(t.Context(), "select count(*) from idempotency_keys").Scan(&left); err != nil || left != 1 {
		t.Errorf("%d records are left, %v", left, err)
	}
}

// Stored answers contain nothing of the texts of the request and of similar memories.
func TestStoredAnswersContainNoText(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	m := newMemory("secret text")
	m.Request = request("memory", "secret key", "secret text")
	m.Similar = []memory.SimilarMemory{{ID: b.remember(t, scope, "another secret", nil), Text: "another secret", Score: 0.9}}
	if _, err := b.Memories().Create(t.Context(), scope, m); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: "secret", Request: request("bucket", "secret", "secret")}); err != nil {
		t.Fatal(err)
	}
	u := chat.Upsert{ExternalID: "secret", Platform: "secret", Title: "secret", Request: request("ingest", "secret", "secret"),
		Messages: []chat.Message{{ExternalID: "secret", Sender: chat.Human, Text: "secret"}}}
	first, err := b.Conversations().Upsert(t.Context(), scope, u)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Conversations().Upsert(t.Context(), scope, u)
	repeated := again.ImportID == first.ImportID && again.Conversation.ID == first.Conversation.ID &&
		again.Conversation.UpdatedAt.Equal(first.Conversation.UpdatedAt) && again.Conversation.MessageCount == 1 && again.Conversation.Title == "secret"
	if err != nil || !repeated {
		t.Errorf("sent again: %+v, %v, want %+v", again, err, first)
	}
	var all string
	if err := b.owner.QueryRow(t.Context(), "select string_agg(k::text, '') from idempotency_keys k").Scan(&all); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(all, "secret") || !strings.Contains(all, first.Conversation.ID) {
		t.Errorf("records: %s", all)
	}
}

func TestConcurrentDuplicatesWait(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() {
			var err error
			if ids[i], err = b.keyed(t, b.users[0], "k", "text"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("ids %v differ", ids)
			break
		}
	}
	_, err := b.keyed(t, b.users[0], "k", "other")
	if e, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(e.Message, "idempotency key") {
		t.Errorf("another request: %v", err)
	}
}
