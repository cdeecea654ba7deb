package apiserver

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A key that is too long is rejected on every route that supports keys, and ignored
// on other routes.
func TestIdempotencyKeyIsChecked(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	long := strings.Repeat("k", 256)
	for path, body := range map[string]string{
		"/api/memory": `{"text":"a"}`, "/api/v2/memory": `{"text":"a"}`, "/api/buckets": `{"name":"a"}`,
		"/api/chat-history/ingest/custom-online": ingestText,
	} {
		got := h.call(t, h.alice, "POST", path, body, "Idempotency-Key", long)
		if got.status != 400 || !strings.Contains(got.body, "Idempotency-Key must be at most 255 bytes") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := h.call(t, h.alice, "POST", "/api/chat-history/search", `{"query":"a"}`, "Idempotency-Key", long); got.status != 200 {
		t.Errorf("a search with a key: %d %s", got.status, got.body)
	}
}

// doesOnce: a repeated request returns the first response without being executed
// again, also concurrently; a different request with the same key is a 409.
func (h *testServer) doesOnce(t *testing.T, s realStores) {
	t.Helper()
	alice, bob := s.tenant(t, "once", "alice", false), s.tenant(t, "once", "bob", false)
	send := func(token, path, body, key string) answer {
		return h.call(t, token, "POST", path, body, "Idempotency-Key", key)
	}
	for _, r := range []struct{ path, body, other string }{
		{"/api/memory", `{"text":"2025-05-09 window seat"}`, `{"text":"2025-05-09 aisle seat"}`},
		{"/api/buckets", `{"name":"Travel"}`, `{"name":"Work"}`},
		{"/api/chat-history/ingest/custom-online", ingestText, strings.Replace(ingestText, "Trains", "Trams", 1)},
	} {
		first := send(alice, r.path, r.body, "k-1")
		again := send(alice, r.path, r.body, "k-1")
		if first.status != 200 {
			t.Errorf("%s: first.status = %d, want 200", r.path, first.status)
		}
		if again.status != 200 {
			t.Errorf("%s: again.status = %d, want 200", r.path, again.status)
		}
		if again.body != first.body {
			t.Errorf("%s: again.body = %v, want %v", r.path, again.body, first.body)
		}
		if again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%s: Location = %v, want %v", r.path, again.header.Get("Location"), first.header.Get("Location"))
		}
		other := send(alice, r.path, r.other, "k-1")
		if other.status != 409 || !strings.Contains(other.body, "idempotency key") {
			t.Errorf("%s, another request: %d %s", r.path, other.status, other.body)
		}
		// Keys are per user.
		if theirs := send(bob, r.path, r.other, "k-1"); theirs.status != 200 {
			t.Errorf("%s, another user: %d %s", r.path, theirs.status, theirs.body)
		}
	}
	// Both paths of a route share their keys, and failed requests can be retried.
	if got := send(alice, "/api/v2/memory", `{"text":"2025-05-09 aisle seat"}`, "k-1"); got.status != 409 {
		t.Errorf("the second path: %d %s", got.status, got.body)
	}
	if got := send(alice, "/api/memory", `{"text":"a","bucketId":999999}`, "k-2"); got.status != 404 {
		t.Errorf("an unknown bucket: %d %s", got.status, got.body)
	}
	if got := send(alice, "/api/memory", `{"text":"b"}`, "k-2"); got.status != 200 {
		t.Errorf("the key of a request that failed: %d %s", got.status, got.body)
	}
	h.doesOnceAtATime(t, alice)
}

func (h *testServer) doesOnceAtATime(t *testing.T, token string) {
	t.Helper()
	var wg sync.WaitGroup
	answers := make([]answer, 10)
	for i := range answers {
		wg.Go(func() {
			answers[i] = h.call(t, token, "POST", "/api/memory", `{"text":"2025-05-10 sent ten times"}`, "Idempotency-Key", "k-3")
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a.status != 200 {
			t.Errorf("one of ten at once: a.status = %d, want 200", a.status)
		}
		if a.body != answers[0].body {
			t.Errorf("one of ten at once: a.body = %v, want %v", a.body, answers[0].body)
		}
	}
	got := h.ok(t, token, "GET", "/api/memory?all=1", "")
	if n := strings.Count(got.body, "sent ten times"); n != 2 { // the text and its metadata's
		t.Errorf("stored %s times: %s", fmt.Sprint(float64(n)/2), got.body)
	}
}
