package apiserver

import (
	"regexp"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
)

const ingestText = `{"conversation":{"id":"x-1","title":"Trains","createdAt":"2025-05-09T12:00:00Z","messages":[` +
	`{"id":"1","role":"user","content":"Which seat?","createdAt":"2025-05-09T12:00:00Z"},` +
	`{"id":"2","role":"bot","content":"By the window.","createdAt":"2025-05-09T12:00:01.5Z"}]}}`

// step is a request with its exact response. $m and $c are the ids of the memory
// and the conversation created before.
type step struct {
	method, path, body string
	want               string
}

const (
	wantMemory = `{"id":"$m","text":"2025-05-09 window seat","metadata":{"text":"2025-05-09 window seat","createdAt":"2025-05-09T12:00:00.123Z","bucketId":1,"bucketName":"General"}}`
	wantBucket = `{"id":"1","name":"General","description":"","memoryCount":1}`
	wantItem   = `{"id":"$c","title":"Trains","platform":"custom","messageCount":2,"tokenCount":7,"createdAt":"2025-05-09T12:00:00.000Z","updatedAt":"2025-05-09T12:00:00.123Z","pinned":false,"status":"active"}`
)

const wantNoon = `"metadata":{"text":"aisle seat","createdAt":"2025-05-09T12:00:00.123Z","bucketId":1,"bucketName":"General"}`

// Sources of a recall: the two messages of the conversation.
const wantSources = `{"conversationId":"$c","conversationTitle":"Trains","messageId":"1","date":"2025-05-09T12:00:00.000Z","relevanceScore":0.5},` +
	`{"conversationId":"$c","conversationTitle":"Trains","messageId":"2","date":"2025-05-09T12:00:01.500Z","relevanceScore":0.5}`

var story = []step{
	{"POST", "/api/memory", `{"text":"2025-05-09 window seat","bucketId":null,"source":"cli","unknown":1}`, `{"done":"ok","memoryId":"$m"}`},
	{"POST", "/api/v2/memory", `{"text":"2025-05-09 window seat"}`, `{"done":"ok","memoryId":"$m","isDuplicate":true}`},
	{"POST", "/api/v2/memory/update", `{"memoryId":"$m","agentId":"a","runId":"r","tags":["z","b","z"],"customMetadata":{"z":1e2,"a":[null,"<"]}}`, `{"message":"Memory updated","memoryId":"$m","version":1}`},
	{"GET", "/api/memories/$m", "", `{"id":"$m","text":"2025-05-09 window seat","metadata":{"text":"2025-05-09 window seat","createdAt":"2025-05-09T12:00:00.123Z","bucketId":1,"bucketName":"General"},"agentId":"a","runId":"r","tags":["b","z"],"customMetadata":{"a":[null,"<"],"z":100},"version":1,"source":"cli","updatedAt":"2025-05-09T12:00:00.123Z"}`},
	{"POST", "/api/v2/memory/update", `{"memoryId":"$m","agentId":"","runId":"","tags":[],"customMetadata":{}}`, `{"message":"Memory updated","memoryId":"$m","version":1}`},
	{"GET", "/api/memory", "", `{"memories":[` + wantMemory + `],"buckets":[` + wantBucket + `]}`},
	{"GET", "/api/v2/memory?query=seat&bucketId=1&count=5000&all=1&latest=false&skip=0&source=x&contentType=text&includeIds=true&client=y", "", `{"memories":[` + strings.TrimSuffix(wantMemory, "}") + `,"score":0.5}],"buckets":[` + wantBucket + `]}`},
	{"GET", "/api/memories/$m", "", `{"id":"$m","text":"2025-05-09 window seat","metadata":{"text":"2025-05-09 window seat","createdAt":"2025-05-09T12:00:00.123Z","bucketId":1,"bucketName":"General"},"version":1,"source":"cli","updatedAt":"2025-05-09T12:00:00.123Z"}`},
	{"GET", "/api/buckets?v=2&source=x", "", `[` + wantBucket + `]`},
	{"POST", "/api/v2/memory/update", `{"memoryId":"$m","bucketName":"general","bucketId":"1"}`, `{"message":"Memory updated","memoryId":"$m","version":1}`},
	{"POST", "/api/v2/memory/update", `{"memoryIds":["$m","$m"],"bucketId":1,"memoryId":null}`, `{"message":"Memories moved","movedCount":1,"memoryIds":["$m"]}`},
	{"GET", "/api/memories/$m/versions?count=5000&skip=0", "", `{"memoryId":"$m","versions":[{"version":1,"text":"2025-05-09 window seat","createdAt":"2025-05-09T12:00:00.123Z"}]}`},
	{"POST", "/api/buckets", `{"name":"Travel","description":"Trips","source":"x"}`, `{"message":"Bucket created successfully","id":"3"}`},
	{"POST", "/api/memories/bulk-delete", `{"memoryIds":["never"]}`, `{"message":"Memories deleted","deletedCount":0,"errors":[]}`},
	{"DELETE", "/api/memories/$m", "", `{"message":"Memory deleted"}`},
	{"GET", "/api/v2/memory", "", `{"memories":[],"buckets":[{"id":"1","name":"General","description":"","memoryCount":1},{"id":"3","name":"Travel","description":"Trips","memoryCount":0}]}`},
	{"POST", "/api/chat-history/ingest/custom-online", ingestText, `{"queued":true,"importId":"i-1","conversationId":"$c","platform":"custom","conversation":{"id":"$c","platformConversationId":"x-1","title":"Trains","updatedAt":"2025-05-09T12:00:00.123Z","messageCount":2,"status":"queued"}}`},
	{"GET", "/api/chat-history/imports/i-1", "", `{"importId":"i-1","platform":"custom","status":"done","total":1,"imported":1,"updated":0,"skipped":0,"blocked":0,"failed":0,"errors":[],"startedAt":"2025-05-09T12:00:00.123Z","finishedAt":"2025-05-09T12:00:00.123Z","unchanged":0,"indexed":1,"warnings":[],"file":""}`},
	{"GET", "/api/chat-history/imports?page=2&pageSize=1", "", `{"items":[],"page":2,"pageSize":1,"total":0,"totalPages":0}`},
	{"GET", "/api/chat-history/conversation?conversationId=$c", "", `{"id":"$c","title":"Trains","messages":[{"message_index":0,"sender":"human","text":"Which seat?","timestamp":"2025-05-09T12:00:00.000Z"},{"message_index":1,"sender":"assistant","text":"By the window.","timestamp":"2025-05-09T12:00:01.500Z"}],"total":2,"platformConversationId":"x-1","sourceId":"custom","tokenCount":7,"status":"active","createdAt":"2025-05-09T12:00:00.000Z","updatedAt":"2025-05-09T12:00:00.123Z"}`},
	{"PATCH", "/api/buckets/3", `{"name":"Journeys","description":null}`, `{"message":"Bucket updated"}`},
	{"DELETE", "/api/buckets/3", "", `{"message":"Bucket deleted","movedCount":0}`},
	{"GET", "/api/chat-history/count", "", `{"count":1}`},
	{"GET", "/api/chat-history/chats", "", `{"items":[` + wantItem + `],"page":1,"pageSize":25,"total":1,"totalPages":1}`},
	{"GET", "/api/chat-history/chats?page=2&pageSize=1&provider=all&title=tr&dateFrom=2025-01-01&dateTo=2025-12-31&pinnedOnly=0&importId=&status=all", "", `{"items":[],"page":2,"pageSize":1,"total":1,"totalPages":1}`},
	{"POST", "/api/chat-history/search", `{"query":"seat","limit":1,"provider":"all","contextChunks":4,"skipRerank":false}`, `{"results":[{"conversationId":"$c","title":"Trains","text":"Which seat?","score":0.5,"timestamp":"2025-05-09T12:00:00.000Z","sender":"human","messageIndex":0,"context":[{"text":"By the window.","sender":"assistant","timestamp":"2025-05-09T12:00:01.500Z"}]}],"totalResults":1,"query":"seat","provider":"all","processingTime":0}`},
	{"POST", "/api/search", `{"query":"seat","limit":1,"contextChunks":0}`, `{"results":[{"type":"chat","score":0.5,"passage":{"conversationId":"$c","title":"Trains","text":"Which seat?","score":0.5,"timestamp":"2025-05-09T12:00:00.000Z","sender":"human","messageIndex":0,"context":[]}}],"totalResults":1,"query":"seat","processingTime":0}`},
	{"POST", "/api/chat-history/inject", `{"query":"seat","maxTokens":1e9,"platform":"all","conversationContext":"x","conversationHistory":[{"role":"user","content":"x"}]}`, `{"content":"Trains (2025-05-09)\n[1] human: Which seat?\n[2] assistant: By the window.","sources":[` + wantSources + `],"tokenCount":27,"processingTime":0,"platform":"all","model":"extractive"}`},
	{"POST", "/api/chat-history/recall", `{"queries":[{"query":"seat","maxTokens":-5},{"query":"window"}],"maxTokens":600.5}`, `{"results":[{"query":"seat","content":"","sources":[],"tokenCount":0,"processingTime":0,"platform":"all","model":"extractive"},{"query":"window","content":"Trains (2025-05-09)\n[1] human: Which seat?\n[2] assistant: By the window.","sources":[` + wantSources + `],"tokenCount":27,"processingTime":0,"platform":"all","model":"extractive"}],"processingTime":0}`},
	{"POST", "/api/chat-history/recall", `{"query":"seat","platform":"chatgpt"}`, `{"content":"Trains (2025-05-09)\n[1] human: Which seat?\n[2] assistant: By the window.","sources":[` + wantSources + `],"tokenCount":27,"processingTime":0,"platform":"all","model":"extractive"}`},
	{"PATCH", "/api/chat-history/chats", `{"ids":["never","$c","$c"],"pinned":true}`, `{"updated":["$c"],"count":1}`},
	{"PATCH", "/api/chat-history/chats", `{"ids":["never"],"excluded":true}`, `{"updated":[],"count":0}`},
	{"DELETE", "/api/chat-history/chats", `{"ids":["$c","never"]}`, `{"deleted":["$c"],"count":1}`},
	{"DELETE", "/api/chat-history/chats", `{"ids":["$c"]}`, `{"deleted":[],"count":0}`},
	{"POST", "/api/chat-history/search", `{"query":"seat","provider":"chatgpt"}`, `{"results":[],"totalResults":0,"query":"seat","provider":"chatgpt","processingTime":0}`},
	{"POST", "/api/tokens", `{"name":" Laptop ","expiresAt":"2126-05-09"}`, `{"id":"t-5","name":"Laptop","scopes":["read","write"],"fingerprint":"$f","createdAt":"2025-05-09T12:00:00.123Z","expiresAt":"2126-05-09T00:00:00.000Z","token":"mn_$f"}`},
	{"GET", "/api/tokens", "", `{"tokens":[{"id":"t-5","name":"Laptop","scopes":["read","write"],"fingerprint":"$f","createdAt":"2025-05-09T12:00:00.123Z","expiresAt":"2126-05-09T00:00:00.000Z"}]}`},
	{"DELETE", "/api/tokens/t-5", "", `{"message":"Token revoked"}`},
	{"GET", "/api/tokens", "", `{"tokens":[]}`},
	{"POST", "/api/memory", `{"text":"aisle seat"}`, `{"done":"ok","memoryId":"m-6"}`},
	{"POST", "/api/memory", `{"text":"an aisle seat"}`, `{"done":"ok","memoryId":"m-7"}`},
	{"POST", "/api/memories/m-6/merge", `{"memoryIds":["m-7"]}`, `{"message":"Memories merged","memoryId":"m-6","mergedCount":1,"memoryIds":["m-7"]}`},
	{"GET", "/api/memories/m-6", "", `{"id":"m-6","text":"aisle seat",` + wantNoon + `,"version":1,"source":"","updatedAt":"2025-05-09T12:00:00.123Z","mergedCount":1,"merged":[{"memoryId":"m-7","text":"an aisle seat","createdAt":"2025-05-09T12:00:00.123Z","mergedAt":"2025-05-09T12:00:00.123Z"}]}`},
	{"GET", "/api/memories/m-7", "", `{"id":"m-7","text":"an aisle seat",` + strings.Replace(wantNoon, "aisle", "an aisle", 1) + `,"version":1,"source":"","updatedAt":"2025-05-09T12:00:00.123Z","mergedInto":"m-6"}`},
	{"GET", "/api/memory", "", `{"memories":[{"id":"m-6","text":"aisle seat",` + wantNoon + `,"mergedCount":1}],"buckets":[` + strings.Replace(wantBucket, `"memoryCount":1`, `"memoryCount":3`, 1) + `]}`},
	{"POST", "/api/memories/m-6/unmerge", `{"memoryIds":["m-7"]}`, `{"message":"Memories restored","restoredCount":1,"memoryIds":["m-7"]}`},
	{"POST", "/api/memories/m-6/unmerge", `{}`, `{"message":"Memories restored","restoredCount":0,"memoryIds":[]}`},
	{"GET", "/healthz", "", `{"status":"ok"}`},
	{"GET", "/readyz", "", `{"status":"ok"}`},
}

var (
	processingTime = regexp.MustCompile(`"processingTime":("[0-9.]+ms"|[0-9.]+)`)
	randomToken    = regexp.MustCompile(`("fingerprint":"|"token":"mn_)\w+`)
)

// Every response matches the contract byte for byte.
func TestShapes(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	ids := strings.NewReplacer("$m", "m-2", "$c", "c-4")
	for _, s := range story {
		got := h.ok(t, h.alice, s.method, ids.Replace(s.path), ids.Replace(s.body))
		text := processingTime.ReplaceAllString(strings.TrimSpace(got.body), `"processingTime":0`)
		text = randomToken.ReplaceAllString(text, "${1}$$f")
		if diff := cmp.Diff(ids.Replace(s.want), text); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", s.method, s.path, diff)
		}
		if ct := got.header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("%s %s: Content-Type %q", s.method, s.path, ct)
		}
		if got.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: no X-Request-Id", s.method, s.path)
		}
	}
}

// operation returns the operation of a path with ids and a query.
func (h *testServer) operation(method, path string) *huma.Operation {
	path, _, _ = strings.Cut(path, "?")
	for pattern, item := range h.api.OpenAPI().Paths {
		form := "^" + pathParameter.ReplaceAllString(pattern, "[^/]+") + "$"
		if !regexp.MustCompile(form).MatchString(path) {
			continue
		}
		for _, op := range httpx.Operations(item) {
			if op.Method == method {
				return op
			}
		}
	}
	return nil
}
