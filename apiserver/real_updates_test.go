package apiserver

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// ranksUpdatesFirst: the newer of two statements ranks first and both name each other, in
// searches, listings and single memories; asOf shows what was known before.
func (h *testServer) ranksUpdatesFirst(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "newer", "alice", false)
	store := func(text string) string {
		return h.ok(t, token, "POST", "/api/memory", `{"text":"`+text+`"}`).json(t)["memoryId"].(string)
	}
	old := store("2025-01-10 Lives in Berlin, in a flat with a balcony")
	other := store("2025-02-01 Berlin has the best kebab")
	between := h.ok(t, token, "GET", "/api/memories/"+other, "").json(t)["metadata"].(map[string]any)["createdAt"].(string)
	updated := store("2025-06-01 Lives in Munich")
	first := store("2025-06-02 My sister lives in Cologne")
	memories := func(query string) []any {
		return h.ok(t, token, "GET", "/api/v2/memory?minScore=0&"+query, "").json(t)["memories"].([]any)
	}
	found := memories("query=" + url.QueryEscape("Does the user live in a flat with a balcony in Berlin?"))
	want := fmt.Sprintf("%s superseded by <nil>, %s superseded by %s", updated, old, updated)
	if got := fmt.Sprintf("%s, %s", linkOf(found[0]), linkOf(found[1])); got != want {
		t.Errorf("search: %s, want %s", got, want)
	}
	for _, m := range memories("query=sister") {
		if got := linkOf(m); strings.HasPrefix(got, first) && got != first+" superseded by <nil>" {
			t.Errorf("the sister's home: %s", got)
		}
	}
	if got := h.ok(t, token, "GET", "/api/memories/"+old, "").json(t)["supersededBy"]; got != updated {
		t.Errorf("memory superseded by %v, want %s", got, updated)
	}
	if got := fmt.Sprint(h.ok(t, token, "GET", "/api/memories/"+updated, "").json(t)["supersedes"]); got != "["+old+"]" {
		t.Errorf("memory supersedes %v, want %s", got, old)
	}
	for query, want := range map[string]string{
		"query=" + url.QueryEscape("Where does the user live?") + "&asOf=" + between: old + " superseded by <nil>",
		"asOf=" + between:       old + " superseded by <nil>",
		"asOf=2999-01-01":       old + " superseded by " + updated,
		"asOf=1999-01-01T00:00": "",
	} {
		list := memories(query)
		got := ""
		for _, m := range list {
			if link := linkOf(m); strings.HasPrefix(link, old) {
				got = link
			}
			if strings.HasPrefix(linkOf(m), updated) && want == old+" superseded by <nil>" {
				t.Errorf("%s: the memory stored later is found", query)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := h.ok(t, token, "POST", "/api/search", `{"query":"Where does the user live?","minScore":0,"asOf":"`+between+`"}`); strings.Contains(got.body, updated) || !strings.Contains(got.body, old) {
		t.Errorf("search of everything as of %s: %s", between, got.body)
	}
	again := h.ok(t, token, "POST", "/api/memory", `{"text":"2025-07-01 Lives in Munich"}`).json(t)
	if got := fmt.Sprint(again["similar"]); !strings.Contains(got, updated) || again["memoryId"] == updated {
		t.Errorf("near-duplicate: similar %v, stored as %v", got, again["memoryId"])
	}
	h.ok(t, token, "DELETE", "/api/memories/"+again["memoryId"].(string), "")
	h.ok(t, token, "DELETE", "/api/memories/"+updated, "")
	if got := h.ok(t, token, "GET", "/api/memories/"+old, "").json(t)["supersededBy"]; got != nil {
		t.Errorf("after the newer memory was deleted: superseded by %v", got)
	}
	h.findsOldMessages(t, token)
}

// findsOldMessages: asOf hides later messages, also those around a passage.
func (h *testServer) findsOldMessages(t *testing.T, token string) {
	t.Helper()
	h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", ingestText)
	now := h.ok(t, token, "POST", "/api/chat-history/search", `{"query":"window seat","minScore":0,"contextChunks":4}`).json(t)
	passage := now["results"].([]any)[0].(map[string]any)
	at, err := time.Parse(time.RFC3339, passage["timestamp"].(string))
	if err != nil {
		t.Fatal(err)
	}
	then := h.ok(t, token, "POST", "/api/chat-history/search",
		`{"query":"window seat","minScore":0,"contextChunks":4,"asOf":"`+chat.Stamp(at.AddDate(-1, 0, 0))+`"}`).json(t)
	if n := len(then["results"].([]any)); n != 0 {
		t.Errorf("%d messages are found as of a year before them", n)
	}
	if got := h.call(t, token, "POST", "/api/chat-history/search", `{"query":"x","asOf":"soon"}`); got.status != 400 || !strings.Contains(got.body, "asOf") {
		t.Errorf("invalid asOf: %d %s", got.status, got.body)
	}
}

// linkOf returns the id of a memory in a response and what supersedes it.
func linkOf(m any) string {
	body := m.(map[string]any)
	return fmt.Sprintf("%v superseded by %v", body["id"], body["supersededBy"])
}
