package apiserver

import (
	"fmt"
	"strings"
	"testing"
)

// excludesConversations: excluded conversations are not listed, counted or found;
// their quota goes to blocked ones, and the filters of the list agree.
func (h *testServer) excludesConversations(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "marks", "alice", false)
	ids := make([]string, 11) // the quota is 10
	for i := range ids {
		body := strings.NewReplacer("x-1", fmt.Sprintf("x-%d", i), "2025-05-09", fmt.Sprintf("2025-05-%02d", i+1),
			"By the window.", fmt.Sprintf("On platform number %d.", i)).Replace(ingestText)
		ids[i] = h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", body).json(t)["conversationId"].(string)
	}
	mark := func(body string) {
		t.Helper()
		h.ok(t, token, "PATCH", "/api/chat-history/chats", body)
	}
	count := func(query string, want int) {
		t.Helper()
		if got := h.ok(t, token, "GET", "/api/chat-history/chats?pageSize=1&"+query, ""); !strings.Contains(got.body, fmt.Sprintf(`"total":%d,`, want)) {
			t.Errorf("chats?%s: %.300s, want %d", query, got.body, want)
		}
	}
	count("status=blocked", 1)
	mark(`{"ids":["` + ids[3] + `","nobody"],"excluded":true}`)
	mark(`{"ids":["` + ids[5] + `"],"pinned":true}`)
	count("status=excluded", 1)
	count("status=blocked", 0)
	count("", 10)
	count("status=all", 11)
	count("pinnedOnly=1", 1)
	count("pinnedOnly=1&dateFrom=2025-05-07", 0)
	count("dateFrom=2025-05-05&dateTo=2025-05-06", 2)
	count("title=RAIN&provider=custom", 10)
	count("provider=chatgpt", 0)
	search := `{"query":"platform number 3","limit":100,"contextChunks":0}`
	if got := h.ok(t, token, "POST", "/api/chat-history/search", search); strings.Contains(got.body, "number 3.") || !strings.Contains(got.body, "number 10.") {
		t.Errorf("search finds an excluded conversation, or misses the one that took its quota: %s", got.body)
	}
	mark(`{"ids":["` + ids[3] + `"],"excluded":false}`)
	count("status=blocked", 1)
	if got := h.ok(t, token, "GET", "/api/chat-history/conversation?conversationId="+ids[3], ""); !strings.Contains(got.body, `"status":"blocked"`) {
		t.Errorf("included over quota: %s", got.body)
	}
	mark(`{"ids":["` + ids[0] + `"],"excluded":true}`)
	if got := h.ok(t, token, "POST", "/api/chat-history/search", search); !strings.Contains(got.body, "number 3.") {
		t.Errorf("search misses a conversation that is included again: %s", got.body)
	}
	if got := h.ok(t, token, "GET", "/api/chat-history/count", ""); strings.TrimSpace(got.body) != `{"count":10}` {
		t.Errorf("count: %s", got.body)
	}
}
