package apiserver

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var memberName = regexp.MustCompile(`"(\w+)":`)

// A request whose members have another case is the same as one without them.
func TestMembersOfAnotherCaseAreNeverApplied(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, r := range requests {
		if r.body == "" {
			continue
		}
		body := memberName.ReplaceAllStringFunc(r.body, strings.ToUpper)
		want, got := h.call(t, h.alice, r.method, r.path, `{}`), h.call(t, h.alice, r.method, r.path, body)
		if got.status != want.status || got.body != want.body {
			t.Errorf("%s %s %s: %d %s, want %d %s", r.method, r.path, body, got.status, got.body, want.status, want.body)
		}
	}
	for _, path := range []string{"/v3/memories/add/", "/v3/memories/search/"} {
		if got := h.call(t, h.alice, "POST", pathMem0+path, `{"QUERY":"a","MESSAGES":"a"}`); got.status != 400 || !strings.Contains(got.body, "is required") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	a := h.assistant(t, h.alice, protocols[0])
	a.refused(t, "search_memories", `{"QUERY":"a"}`, "unknown arguments: QUERY")
	a.refused(t, "recall_chat_history", `{"queries":[{"QUERY":"a"}]}`, "is required and must not be blank")
}

// A document is refused if another parser may read it differently.
func TestRepeatedMembersAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, r := range requests {
		if r.body == "" {
			continue
		}
		got := h.call(t, h.alice, r.method, r.path, `{"x":{"y":[{"z":1,"z":2}]}}`)
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "x.y[0].z must not occur twice") {
			t.Errorf("%s %s: %d %s", r.method, r.path, got.status, got.body)
		}
	}
	for path, body := range map[string]string{
		pathMem0 + "/v3/memories/search/": `{"query":"a","user_id":"me","user_id":"victim"}`,
		pathMem0 + "/v3/memories/add/":    `{"messages":[{"role":"user","content":"a","content":"b"}]}`,
		pathMCP:                           `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`,
	} {
		if got := h.call(t, h.alice, "POST", path, body); got.status != http.StatusBadRequest || !strings.Contains(got.body, "must not occur twice") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for path, says := range map[string]string{
		"/api/memory?filter=%7B%22tags%22:%22a%22,%22tags%22:%22b%22%7D": "filter must not contain a member twice",
	} {
		if got := h.call(t, h.alice, "GET", path, ""); got.status != http.StatusBadRequest || !strings.Contains(got.body, says) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	a := h.assistant(t, h.alice, protocols[0])
	a.refused(t, "store_memory", `{"text":"a","customMetadata":"{\"a\":1,\"a\":2}"}`, "customMetadata must not contain a member twice")
	a.refused(t, "search_memories", `{"query":"a","filter":"{\"tags\":\"a\",\"tags\":\"b\"}"}`, "filter must not contain a member twice")
}

// The arguments of a tool are not decoded if they are nested too deep.
func TestMCPDepth(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	const levels = 64
	deep := strings.Repeat(`{"NOT":`, levels) + `{}` + strings.Repeat(`}`, levels)
	got := h.call(t, h.alice, "POST", pathMCP, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_memories","arguments":{"query":"a","filter":`+deep+`}}}`)
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "nested more than 64 levels deep") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
