package apiserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// envelopeTokens is the size of the members of a result that are not in its lists.
const envelopeTokens = 160

// TestMCPResultsAreWithinMaxTokens calls every tool that returns texts in an account with the largest items. The result
// must have at most the requested number of tokens, however few, and must say what is truncated.
func TestMCPResultsAreWithinMaxTokens(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	a := h.assistant(t, h.alice, protocols[0])
	conversation := h.fillLarge(t)
	for _, s := range []struct {
		name, arguments string
		most            int
		cut             bool
	}{
		{"search_memories", `{"query":"window","count":100,"maxTokens":200}`, 200, true},
		{"search_memories", `{"query":"window","count":100}`, 4000, true},
		{"search_memories", `{"query":"window","count":100,"skip":1,"maxTokens":1000}`, 1000, false},
		{"get_memories_and_buckets", `{"count":100,"maxTokens":200}`, 200, true},
		{"get_memories_and_buckets", `{"count":100}`, 4000, true},
		{"get_memories_and_buckets", `{"count":100,"skip":1,"maxTokens":1000}`, 1000, false},
		{"list_buckets", `{}`, 8000, false},
		{"search_chat_history", `{"query":"window","limit":100,"contextMessages":20,"maxTokens":200}`, 200, true},
		{"search_chat_history", `{"query":"window","limit":100,"contextMessages":20}`, 4000, true},
		{"get_full_conversation", `{"conversationId":"` + conversation + `","maxTokens":200}`, 200, true},
		{"get_full_conversation", `{"conversationId":"` + conversation + `","fromMessage":1}`, 8000, false},
		{"recall_chat_history", `{"query":"window","maxTokens":300}`, 1500, false},
		{"store_memory", `{"text":"2025-05-09 likes the window"}`, 4000, false},
	} {
		text, failed := a.call(t, s.name, s.arguments)
		if n := tokens.Count(text); failed || n > s.most+envelopeTokens {
			t.Errorf("%s %s: %d tokens in %d bytes, want at most %d: %.200s", s.name, s.arguments, n, len(text), s.most, text)
		}
		if cut := strings.Contains(text, `"cut":true`); cut != s.cut {
			t.Errorf("%s %s: says that a text is truncated: %t, want %t", s.name, s.arguments, cut, s.cut)
		}
	}
}

// fillLarge adds the largest items to the account of alice and returns the id of a conversation.
func (h *testServer) fillLarge(t *testing.T) (conversation string) {
	t.Helper()
	line := strings.Repeat("The window of the train is by the \\\"sea\\\".\\n", 1000)
	for i := range 50 {
		h.ok(t, h.alice, "POST", "/api/buckets", fmt.Sprintf(`{"name":"b%d","description":"%s"}`, i, strings.Repeat("äö 猫 ", 200)))
	}
	for i := range 50 {
		h.ok(t, h.alice, "POST", "/api/memory", fmt.Sprintf(`{"text":"2025-05-09 %d","tags":["travel"]}`, i))
	}
	h.ok(t, h.alice, "POST", "/api/memory", `{"text":"`+line[:memory.MaxText*9/10]+`","customMetadata":{"k":"`+strings.Repeat("k ", 2000)+`"}}`)
	messages := []map[string]any{{"id": "long", "role": "user", "content": strings.Repeat("by the window ", 3000), "createdAt": noon}}
	for i := range 3000 {
		messages = append(messages, map[string]any{"id": fmt.Sprint(i), "role": "user", "content": "ok", "createdAt": noon})
	}
	raw, err := json.Marshal(map[string]any{"conversation": map[string]any{"id": "x", "title": strings.Repeat("猫 ", 1000), "createdAt": noon, "messages": messages}})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(h.ok(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", string(raw)).json(t)["conversationId"])
}
