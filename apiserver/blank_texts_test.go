package apiserver

import (
	"encoding/json"
	"strings"
	"testing"
)

// requiredTexts are requests with a required text in place of TEXT, by the field that the refusal names.
var requiredTexts = []struct{ method, path, body, field string }{
	{"POST", "/api/memory", `{"text":TEXT}`, "text"},
	{"POST", "/api/v2/memory", `{"text":TEXT}`, "text"},
	{"POST", "/api/memory", `{"text":"a","tags":[TEXT]}`, "tags[0]"},
	{"POST", "/api/v2/memory/update", `{"memoryId":"x","text":TEXT}`, "text"},
	{"POST", "/api/v2/memory/update", `{"memoryId":"x","bucketName":TEXT}`, "bucketName"},
	{"POST", "/api/buckets", `{"name":TEXT}`, "name"},
	{"PATCH", "/api/buckets/1", `{"name":TEXT}`, "name"},
	{"POST", "/api/tokens", `{"name":TEXT}`, "name"},
	{"POST", "/api/search", `{"query":TEXT}`, "query"},
	{"POST", "/api/chat-history/search", `{"query":TEXT}`, "query"},
	{"POST", "/api/chat-history/inject", `{"query":TEXT}`, "query"},
	{"POST", "/api/chat-history/recall", `{"query":TEXT}`, "query"},
	{"POST", "/api/chat-history/recall", `{"queries":[{"query":"a"},{"query":TEXT}]}`, "queries[1].query"},
	{"POST", "/api/chat-history/ingest/custom-online", `{"conversation":{"id":TEXT,"title":"","createdAt":"2025-01-01","messages":[]}}`, "conversation.id"},
	{"POST", "/mem0/v3/memories/add/", `{"messages":TEXT}`, "messages"},
	{"POST", "/mem0/v3/memories/add/", `{"messages":[{"role":"user","content":TEXT}]}`, "messages"},
	{"POST", "/mem0/v3/memories/search/", `{"query":TEXT}`, "query"},
	{"POST", pathMCP, callOf("store_memory", `{"text":TEXT}`), "text"},
	{"POST", pathMCP, callOf("search_memories", `{"query":TEXT}`), "query"},
	{"POST", pathMCP, callOf("search_chat_history", `{"query":TEXT}`), "query"},
	{"POST", pathMCP, callOf("recall_chat_history", `{"query":TEXT}`), "query"},
	{"POST", pathMCP, callOf("create_bucket", `{"name":TEXT}`), "name"},
}

func callOf(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// A text of which a reader sees nothing is blank wherever a text is required.
func TestInvisibleTextsAreRefused(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, r := range requiredTexts {
		for _, text := range []string{" \n", "\u200b", "\ufeff", "\u2800", "\u00ad\u3164 \u2060", "\u202e", "\ufe0f"} {
			encoded, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			got := h.call(t, h.alice, r.method, r.path, strings.ReplaceAll(r.body, "TEXT", string(encoded)))
			refused := got.status == 400 || r.path == pathMCP && strings.Contains(got.body, `"isError":true`)
			if !refused || !strings.Contains(got.body, r.field) || !strings.Contains(got.body, "blank") && !strings.Contains(got.body, "non-empty") {
				t.Errorf("%s %s %s with %+q: %d %s", r.method, r.path, r.body, text, got.status, got.body)
			}
		}
	}
}

// Names are shown within other texts, which they must not change.
func TestNamesDoNotChangeTheDirectionOfText(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, r := range requiredTexts {
		if r.field != "name" {
			continue
		}
		for _, name := range []string{`"a\u202eb"`, `"\u2066a\u2069"`, `"a\u200f"`} {
			got := h.call(t, h.alice, r.method, r.path, strings.ReplaceAll(r.body, "TEXT", name))
			if !strings.Contains(got.body, "name must not contain characters that change the direction of text") {
				t.Errorf("%s %s with %s: %d %s", r.method, r.path, name, got.status, got.body)
			}
		}
	}
}
