package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// findsOriginals: what a recall returned is found where it was said, not where it was pasted,
// and is no new memory.
func (h *testServer) findsOriginals(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "quotes", "alice", false)
	body := func(v any) string {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ingest := func(id, title, day string, texts ...string) {
		t.Helper()
		var messages []map[string]string
		for i, text := range texts {
			messages = append(messages, map[string]string{"id": fmt.Sprint(i), "role": []string{"user", "assistant", "tool"}[i%3],
				"content": text, "createdAt": day + "T12:00:00Z"})
		}
		h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online",
			body(map[string]any{"conversation": map[string]any{"id": id, "title": title, "createdAt": day + "T12:00:00Z", "messages": messages}}))
	}
	memory := h.ok(t, token, "POST", "/api/memory", `{"text":"Is allergic to hazelnuts"}`).json(t)["memoryId"].(string)
	ingest("said", "Bakery plans", "2025-05-09", "I want to open a bakery called Golden Crust in Leipzig.", "A bakery in Leipzig: good luck!")

	recalled := h.ok(t, token, "POST", "/api/chat-history/recall", `{"query":"What bakery does the user want to open?","include":["memories","chats"],"minScore":0}`)
	content := recalled.json(t)["content"].(string)
	for _, part := range []string{"Memories\n", "hazelnuts", "Bakery plans (2025-05-09)\n", "Golden Crust"} {
		if !strings.Contains(content, part) {
			t.Fatalf("the recall returned %q, without %q", content, part)
		}
	}
	ingest("pasted", "Opening day", "2025-06-01", "Context:\n\n"+content+"\n\nWhen should we celebrate the opening?", "On a Sunday in August.", recalled.body)

	found := h.ok(t, token, "POST", "/api/chat-history/search", `{"query":"bakery Golden Crust Leipzig","minScore":0,"limit":50}`).json(t)
	for _, r := range found["results"].([]any) {
		if r := r.(map[string]any); strings.Contains(r["text"].(string), "Golden Crust") && r["title"] != "Bakery plans" {
			t.Errorf("found where it was pasted: %v", r)
		}
	}
	if got := h.ok(t, token, "POST", "/api/chat-history/search", `{"query":"celebrate the opening","minScore":0}`).body; !strings.Contains(got, "When should we celebrate the opening?") {
		t.Errorf("the question after the pasted text is not found: %s", got)
	}
	again := h.ok(t, token, "POST", "/api/chat-history/recall", `{"query":"What bakery does the user want to open?","minScore":0,"maxTokens":2000}`).json(t)["content"].(string)
	if n := strings.Count(again, "Golden Crust"); n != 1 {
		t.Errorf("the next recall returns the passage %d times: %s", n, again)
	}

	for _, text := range []string{"[1] memory: Is allergic to hazelnuts", "- “Is allergic to hazelnuts”", "Memories\n[1] memory: Is allergic to hazelnuts"} {
		got := h.ok(t, token, "POST", "/api/v2/memory", body(map[string]string{"text": text})).json(t)
		if got["isDuplicate"] != true || got["memoryId"] != memory {
			t.Errorf("%q was stored: %v, want a duplicate of %s", text, got, memory)
		}
	}
	if got := h.ok(t, token, "POST", "/api/v2/memory", `{"text":"2020-01-01 Is allergic to hazelnuts"}`).json(t); got["isDuplicate"] != nil {
		t.Errorf("a statement of another day is a duplicate: %v", got)
	}
}
