package apiserver

import (
	"strings"
	"testing"
)

// namingRequests contains every request with an id: $m is a memory, $c a
// conversation, $b a bucket, $i an import.
var namingRequests = []struct{ method, path, body string }{
	{"GET", "/api/memories/$m", ""},
	{"GET", "/api/memories/$m/versions", ""},
	{"POST", "/api/v2/memory/update", `{"memoryId":"$m","text":"b"}`},
	{"POST", "/api/v2/memory/update", `{"memoryId":"$m","bucketName":"General"}`},
	{"POST", "/api/v2/memory/update", `{"memoryIds":["$m"],"bucketName":"General"}`},
	{"POST", "/api/v2/memory/update", `{"memoryIds":["$m"],"bucketId":$b}`},
	{"PATCH", "/api/buckets/$b", `{"description":"b"}`},
	{"DELETE", "/api/buckets/$b", ""},
	{"POST", "/api/memories/$m/merge", `{"memoryIds":["0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e08"]}`},
	{"POST", "/api/memories/$m/unmerge", `{}`},
	{"DELETE", "/api/memories/$m", ""},
	{"POST", "/api/memories/bulk-delete", `{"memoryIds":["$m"]}`},
	{"POST", "/api/memory", `{"text":"a","bucketId":$b}`},
	{"POST", "/api/v2/memory", `{"text":"a","bucketId":"$b"}`},
	{"GET", "/api/memory?bucketId=$b", ""},
	{"GET", "/api/v2/memory?bucketId=$b&query=seat", ""},
	{"GET", "/api/chat-history/conversation?conversationId=$c", ""},
	{"GET", "/api/chat-history/chats?importId=$i&status=all", ""},
	{"GET", "/api/chat-history/imports/$i", ""},
	{"GET", "/api/chat-history/imports/$i/events", ""},
	{"PATCH", "/api/chat-history/chats", `{"ids":["$c"],"excluded":true,"pinned":true}`},
	{"DELETE", "/api/chat-history/chats", `{"ids":["$c"]}`},
}

// nobodys are well-formed ids that do not exist.
var nobodys = strings.NewReplacer("$m", "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07", "$c", "0196b2f5-0a77-7d21-b1c4-94e2f7a83d15",
	"$b", "987654321", "$i", "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60")

// fill creates one object of each type and returns the ids.
func (h *testServer) fill(t *testing.T, token string) *strings.Replacer {
	t.Helper()
	created := h.call(t, token, "POST", "/api/buckets", `{"name":"Travel"}`)
	bucket := strings.TrimPrefix(created.header.Get("Location"), "/api/buckets/")
	memory := h.ok(t, token, "POST", "/api/memory", `{"text":"window seat","bucketId":`+bucket+`}`).json(t)["memoryId"].(string)
	chat := h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", ingestText).json(t)
	return strings.NewReplacer("$m", memory, "$c", chat["conversationId"].(string), "$b", bucket, "$i", chat["importId"].(string))
}

// seesNothing fails if a user with an empty account sees any data.
func (h *testServer) seesNothing(t *testing.T, token, name string) {
	t.Helper()
	for path, want := range map[string]string{
		"/api/memory?all=1":                    `"memories":[]`,
		"/api/memory?query=window+seat":        `"memories":[]`,
		"/api/chat-history/count":              `{"count":0}`,
		"/api/chat-history/chats?status=all":   `"items":[]`,
		"/api/chat-history/chats?title=Trains": `"total":0`,
		"/api/chat-history/imports":            `"items":[],"page":1,"pageSize":25,"total":0`,
	} {
		if got := h.ok(t, token, "GET", path, ""); !strings.Contains(got.body, want) {
			t.Errorf("%s: GET %s: %s", name, path, got.body)
		}
	}
	if got := h.ok(t, token, "POST", "/api/chat-history/search", `{"query":"window seat"}`); !strings.Contains(got.body, `"results":[]`) {
		t.Errorf("%s: search: %s", name, got.body)
	}
	if got := h.ok(t, token, "POST", "/api/chat-history/recall", `{"query":"window seat"}`); !strings.Contains(got.body, `"content":"","sources":[]`) {
		t.Errorf("%s: recall: %s", name, got.body)
	}
	for file, text := range files(t, h.export(t, token)) {
		if text != "" && file != "manifest.json" && (file != "buckets.jsonl" || strings.Contains(text, "Travel")) {
			t.Errorf("%s: the export's %s: %s", name, file, text)
		}
	}
	if got := h.ok(t, token, "GET", "/api/buckets", ""); strings.Contains(got.body, "Travel") {
		t.Errorf("%s: buckets: %s", name, got.body)
	}
}

// seesAll fails if any object created by fill is missing.
func (h *testServer) seesAll(t *testing.T, token string, ids *strings.Replacer) {
	t.Helper()
	for path, want := range map[string]string{
		"/api/memories/$m":                                 `"id":"$m"`,
		"/api/memory?bucketId=$b":                          `"id":"$m"`,
		"/api/chat-history/count":                          `{"count":1}`,
		"/api/chat-history/chats":                          `"pinned":false,"status":"active"`,
		"/api/chat-history/chats?title=train":              `"id":"$c"`,
		"/api/buckets":                                     `"id":"$b"`,
		"/api/chat-history/imports/$i":                     `"importId":"$i","platform":"custom","status":"done","total":1,"imported":1`,
		"/api/chat-history/conversation?conversationId=$c": `"total":2`,
	} {
		if got := h.ok(t, token, "GET", ids.Replace(path), ""); !strings.Contains(got.body, ids.Replace(want)) {
			t.Errorf("the owner: GET %s: %s", path, got.body)
		}
	}
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	newTestServer(t).isolates(t)
}

// Ids of other tenants and users behave like ids that do not exist: same status,
// same body, no changes.
func (h *testServer) isolates(t *testing.T) {
	t.Helper()
	ids := h.fill(t, h.alice)
	for name, token := range map[string]string{"another user": h.bob, "another tenant": h.carol} {
		for _, r := range namingRequests {
			got := h.call(t, token, r.method, ids.Replace(r.path), ids.Replace(r.body))
			want := h.call(t, token, r.method, nobodys.Replace(r.path), nobodys.Replace(r.body))
			// An answer may name the ids it was asked about.
			if got.status != want.status || strings.ReplaceAll(got.body, ids.Replace("$m"), nobodys.Replace("$m")) != want.body {
				t.Errorf("%s: %s %s: %d %s, but %d %s for an id nobody has", name, r.method, r.path, got.status, got.body, want.status, want.body)
			}
		}
		h.seesNothing(t, token, name)
	}
	h.seesAll(t, h.alice, ids)
}
