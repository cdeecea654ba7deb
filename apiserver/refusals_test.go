package apiserver

import (
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// requests contains a valid request of every route.
var requests = []struct{ method, path, body string }{
	{"POST", "/api/memory", `{"text":"a"}`},
	{"POST", "/api/v2/memory", `{"text":"a"}`},
	{"GET", "/api/memory", ""},
	{"GET", "/api/v2/memory", ""},
	{"POST", "/api/v2/memory/update", `{"memoryId":"x","text":"a"}`},
	{"GET", "/api/memories/x", ""},
	{"GET", "/api/memories/x/versions", ""},
	{"POST", "/api/memories/x/merge", `{"memoryIds":["y"]}`},
	{"POST", "/api/memories/x/unmerge", `{"memoryIds":["y"]}`},
	{"DELETE", "/api/memories/x", ""},
	{"POST", "/api/memories/bulk-delete", `{"memoryIds":["x"]}`},
	{"GET", "/api/buckets", ""},
	{"POST", "/api/buckets", `{"name":"a"}`},
	{"PATCH", "/api/buckets/1", `{"name":"a"}`},
	{"DELETE", "/api/buckets/1", ""},
	{"GET", "/api/chat-history/conversation?conversationId=x", ""},
	{"GET", "/api/chat-history/count", ""},
	{"GET", "/api/chat-history/chats", ""},
	{"PATCH", "/api/chat-history/chats", `{"ids":["x"],"excluded":true}`},
	{"DELETE", "/api/chat-history/chats", `{"ids":["x"]}`},
	{"POST", "/api/search", `{"query":"a"}`},
	{"POST", "/api/chat-history/search", `{"query":"a"}`},
	{"POST", "/api/chat-history/inject", `{"query":"a"}`},
	{"POST", "/api/chat-history/recall", `{"queries":[{"query":"a"}]}`},
	{"POST", "/api/chat-history/ingest/custom-online", ingestText},
	{"POST", "/api/chat-history/import", ""}, // its bodies are in imports_test.go
	{"GET", "/api/chat-history/imports", ""},
	{"GET", "/api/chat-history/imports/x", ""},
	{"GET", "/api/chat-history/imports/x/events", ""},
	{"GET", "/api/export", ""},
	{"GET", "/api/audit", ""},
	{"DELETE", "/api/account", `{"confirm":"delete everything"}`},
	{"GET", "/api/tokens", ""},
	{"POST", "/api/tokens", `{"name":"a"}`},
	{"DELETE", "/api/tokens/x", ""},
	{"GET", "/api/users", ""},
	{"GET", "/api/users/x", ""},
	{"DELETE", "/api/users/x", ""},
}

// The list of requests covers the route table.
func TestRequestsCoverEveryRoute(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	covered := map[string]bool{}
	for _, r := range requests {
		op := h.operation(r.method, r.path)
		if op == nil {
			t.Fatalf("%s %s is not a route", r.method, r.path)
		}
		covered[op.OperationID] = true
	}
	for path, item := range h.api.OpenAPI().Paths {
		for _, op := range httpx.Operations(item) {
			if len(op.Security) > 0 && !covered[op.OperationID] {
				t.Errorf("%s %s is in no test", op.Method, path)
			}
			if op.Security == nil && strings.HasPrefix(path, "/api") {
				t.Errorf("%s %s needs no token", op.Method, path)
			}
		}
	}
}

func TestEveryRouteRequiresAToken(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	unknown, err := tenant.NewToken(0, seed(99))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tenant.NewToken(7, seed(99))
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{
		"missing": "", "unknown": "Bearer " + unknown, "of another database": "Bearer " + foreign, "another scheme": "Basic " + h.alice, "no scheme": h.alice,
		"empty": "Bearer ", "cut": "Bearer " + h.alice[:len(h.alice)-1], "changed": "Bearer " + flipped(h.alice),
		"two": "Bearer " + h.alice + " " + h.alice, "noise": "Bearer \xfe\xff",
	}
	for _, r := range requests {
		for name, header := range headers {
			got := h.call(t, "", r.method, r.path, r.body, "Authorization", header)
			if got.status != 401 {
				t.Errorf("%s %s with a token that is %s: status = %d, want 401", r.method, r.path, name, got.status)
			}
			if got.json(t)["error"] != unauthorized(nil).Error() {
				t.Errorf("%s %s with a token that is %s: error = %v, want %v", r.method, r.path, name, got.json(t)["error"], unauthorized(nil).Error())
			}
			if got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf(`%s %s with a token that is %s: WWW-Authenticate = %q, want "Bearer"`, r.method, r.path, name, got.header.Get("WWW-Authenticate"))
			}
		}
		got := h.call(t, h.suspended, r.method, r.path, r.body)
		if got.status != 403 || !strings.Contains(got.body, "suspended") {
			t.Errorf("%s %s of a suspended tenant: %d %s", r.method, r.path, got.status, got.body)
		}
	}
	if strings.Contains(h.log.String(), h.alice) {
		t.Error("a token is in the log")
	}
}

// flipped returns a token with a wrong checksum.
func flipped(token string) string {
	b := []byte(token)
	b[5]++
	return string(b)
}

// Every route with a body rejects invalid bodies.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	tests := map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"invalid JSON":    {`{"text":`, nil, 400, "invalid JSON at byte 8"},
		"noise":           {"\x00\x01", nil, 400, "invalid JSON"},
		"two JSON values": {`{} {}`, nil, 400, "invalid JSON"},
		"array":           {`[]`, nil, 400, "the body must be an object, not an array"},
		"string":          {`"x"`, nil, 400, "the body must be an object, not a string"},
		"null":            {`null`, nil, 400, "required"},
		"nothing":         {`{}`, nil, 400, "required"},
		"not UTF-8":       {"{\"text\":\"\xff\"}", nil, 400, "the body must be valid UTF-8"},
		"deep":            {strings.Repeat("[", 20000), nil, 400, "the body must not be nested more than 64 levels deep"},
		"empty":           {"", []string{"Content-Type", "application/json"}, 400, "body is required"},
		"form":            {"text=a", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "application/json"},
		"text":            {"{}", []string{"Content-Type", "text/plain"}, 415, "application/json"},
		"latin1":          {"{}", []string{"Content-Type", "application/json; charset=iso-8859-1"}, 415, "application/json"},
		"bad type":        {"{}", []string{"Content-Type", ";;"}, 415, "application/json"},
		"compressed":      {"{}", []string{"Content-Encoding", "gzip"}, 415, "not compressed"},
		"JSON variant":    {"{}", []string{"Content-Type", "application/merge-patch+json; charset=UTF-8"}, 400, "required"},
	}
	for _, r := range requests {
		if r.body == "" {
			continue
		}
		for name, tc := range tests {
			if tc.says == "required" && strings.HasSuffix(r.path, "/unmerge") {
				continue // an empty object means all
			}
			got := h.call(t, h.alice, r.method, r.path, tc.body, tc.headers...)
			message, _ := got.json(t)["error"].(string)
			// Routes that take a list say how long it must be.
			said := strings.Contains(message, tc.says) || tc.says == "required" && strings.Contains(message, "must contain")
			if got.status != tc.status || !said {
				t.Errorf("%s %s, body is %s: %d %s, want %d saying %q", r.method, r.path, name, got.status, got.body, tc.status, tc.says)
			}
		}
	}
}

// Each field of each route rejects invalid values, by its name.
func TestBadFields(t *testing.T) {
	t.Parallel()
	newTestServer(t).rejectsBadFields(t)
}

// badFields lists the invalid values of each field and the errors.
var badFields = []struct {
	method, path string
	body         []string // bodies or, for routes without one, query strings
	status       int
	says         string
}{
	{"POST", "/api/memory", []string{`{"text":7}`, `{"text":[]}`, `{"text":{}}`, `{"text":true}`}, 400, "text must be a string, not a"},
	{"POST", "/api/memory", []string{`{"text":""}`, `{"text":" \n"}`, `{"text":null}`, `{"bucketId":1}`}, 400, "text is required"},
	{"POST", "/api/memory", []string{`{"text":"a\u0000"}`}, 400, "text must not contain the character U+0000"},
	{"POST", "/api/memory", []string{`{"text":"` + strings.Repeat("x", 32769) + `"}`}, 400, "text must be at most 32768 bytes"},
	{"POST", "/api/memory", []string{`{"text":"a","bucketId":"x"}`, `{"text":"a","bucketId":1.5}`, `{"text":"a","bucketId":true}`, `{"text":"a","bucketId":[1]}`, `{"text":"a","bucketId":""}`, `{"text":"a","bucketId":{}}`}, 400, "bucketId must be an integer or a string that contains one"},
	{"POST", "/api/memory", []string{`{"text":"a","bucketId":999}`, `{"text":"a","bucketId":"999"}`, `{"text":"a","bucketId":0}`, `{"text":"a","bucketId":-1}`, `{"text":"a","bucketId":99999999999999999999}`, `{"text":"a","bucketId":1e30}`}, 404, "bucket not found"},
	{"POST", "/api/memory", []string{`{"text":"a","source":7}`}, 400, "source must be a string, not a number"},
	{"POST", "/api/memory", []string{`{"text":"","bucketId":"x"}`}, 400, "bucketId must be an integer or a string that contains one; text is required"},
	{"POST", "/api/memory", []string{`{"text":"a","customMetadata":"x"}`, `{"text":"a","customMetadata":[]}`}, 400, "customMetadata must be an object, not a"},
	{"POST", "/api/memory", []string{`{"text":"a","customMetadata":{"x":"` + strings.Repeat("x", 4096) + `"}}`}, 400, "customMetadata must be at most 4096 bytes of JSON, not 4104"},
	{"POST", "/api/memory", []string{`{"text":"a","agentId":"` + strings.Repeat("x", 257) + `"}`}, 400, "agentId must be at most 256 bytes, not 257"},
	{"POST", "/api/memory", []string{`{"text":"a","runId":7}`}, 400, "runId must be a string, not a number"},
	{"POST", "/api/memory", []string{`{"text":"a","tags":"x"}`}, 400, "tags must be an array, not a string"},
	{"POST", "/api/memory", []string{`{"text":"a","tags":["a",""]}`}, 400, "tags[1] must be 1 to 64 characters and not blank"},
	{"POST", "/api/memory", []string{`{"text":"a","customMetadata":{"n":1,"list":[{"x":1e400}]}}`}, 400, "customMetadata.list[0].x must be a number of at most 40 characters"},
	{"POST", "/api/memory", []string{`{"text":"a","customMetadata":{"":1}}`}, 400, "customMetadata must not have an empty key"},
	{"GET", "/api/v2/memory", []string{"filter=x", "filter=[]", "filter=%ff"}, 400, "filter must be a JSON object"},
	{"GET", "/api/v2/memory", []string{"filter={\"color\":1}", "query=a&filter={\"color\":1}"}, 400, "filter.color is not a field; the fields are metadata.<key>, agentId"},
	{"GET", "/api/v2/memory", []string{"filter={\"metadata.a\":{\"gt\":true}}"}, 400, "filter.metadata.a.gt must be a string or a number"},
	{"POST", "/api/search", []string{`{"query":"a","filter":"x"}`}, 400, "filter must be an object, not a string"},
	{"POST", "/api/search", []string{`{"query":"a","filter":{"tags":7}}`}, 400, "filter.tags must be a string that is not empty"},
	{"POST", "/api/search", []string{`{"query":"a","include":["chats"],"filter":{"tags":"x"}}`}, 400, "include must not contain chats with a filter"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":["x"],"agentId":"a","bucketId":1}`}, 400, "agentId, runId, tags and customMetadata require memoryId"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","tags":[" "]}`}, 400, "tags[0] must be 1 to 64 characters"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","customMetadata":{"x":"\u0000"}}`}, 400, "customMetadata.x must not contain the character U+0000"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","customMetadata":7}`}, 400, "customMetadata must be an object, not a number"},
	{"GET", "/api/v2/memory", []string{"count=abc", "count=0", "count=-1", "count=1.5"}, 400, "count must be an integer of at least 1"},
	{"GET", "/api/v2/memory", []string{"skip=-1", "skip=x"}, 400, "skip must be an integer of at least 0"},
	{"GET", "/api/v2/memory", []string{"all=maybe", "all=2"}, 400, "all must be true, false, 1 or 0"},
	{"GET", "/api/v2/memory", []string{"latest=yes"}, 400, "latest must be true, false, 1 or 0"},
	{"GET", "/api/v2/memory", []string{"bucketId=x", "bucketId=1.5"}, 400, "bucketId must be an integer"},
	{"GET", "/api/v2/memory", []string{"bucketId=999", "bucketId=0", "bucketId=-4", "bucketId=99999999999999999999"}, 404, "bucket not found"},
	{"GET", "/api/v2/memory", []string{"query=a%00", "query=%ff"}, 400, "query must"},
	{"GET", "/api/v2/memory", []string{"count=x&skip=x"}, 400, "count must be an integer of at least 1; skip must be"},
	{"POST", "/api/v2/memory/update", []string{`{}`, `{"text":"a"}`, `{"memoryId":null,"memoryIds":null,"text":"a"}`}, 400, "memoryId or memoryIds is required"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":7}`}, 400, "memoryId must be a string, not a number"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":"x"}`}, 400, "memoryIds must be an array, not a string"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","memoryIds":["x"],"bucketId":1}`}, 400, "memoryId and memoryIds must not be used together"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":["x"],"text":"a","bucketId":1}`}, 400, "text requires memoryId"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x"}`, `{"memoryId":"x","text":null}`, `{"memoryId":"x","bucketName":""}`}, 400, "text, bucketId, bucketName, agentId, runId, tags or customMetadata is required"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","text":" "}`, `{"memoryId":"x","text":""}`}, 400, "text is required and must not be blank"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","text":7}`}, 400, "text must be a string"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","text":"a\u0000"}`}, 400, "text must not contain the character U+0000"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","text":"` + strings.Repeat("x", 32769) + `"}`}, 400, "text must be at most 32768 bytes"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","bucketId":"y"}`, `{"memoryIds":["x"],"bucketId":1.5}`}, 400, "bucketId must be an integer or a string that contains one"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","bucketName":7}`}, 400, "bucketName must be a string"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","bucketName":" "}`, `{"memoryIds":["x"],"bucketName":"\t"}`, `{"memoryId":"x","bucketName":"\u200b"}`}, 400, "bucketName must not be blank"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","bucketName":"a\u0000"}`}, 400, "bucketName must not contain the character U+0000"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":["x"]}`}, 400, "bucketId or bucketName is required"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":[],"bucketId":1}`}, 400, "memoryIds must contain 1 to 100 ids, not 0"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":["` + strings.Repeat(`","`, 100) + `"],"bucketId":1}`}, 400, "memoryIds must contain 1 to 100 ids, not 101"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryId":"x","text":"a"}`, `{"memoryId":"","bucketId":1}`, `{"memoryId":"a\u0000","bucketId":1}`}, 404, "memory not found"},
	{"POST", "/api/v2/memory/update", []string{`{"memoryIds":["x","y"],"bucketId":1}`, `{"memoryIds":["","a\u0000"],"bucketName":"General"}`}, 404, "2 of the memories were not found; nothing was moved"},
	{"GET", "/api/memories/x/versions", []string{"count=0", "count=x"}, 400, "count must be an integer of at least 1"},
	{"GET", "/api/memories/x/versions", []string{"skip=-1"}, 400, "skip must be an integer of at least 0"},
	{"GET", "/api/memories/x/versions", []string{""}, 404, "memory not found"},
	{"POST", "/api/memories/x/merge", []string{`{"memoryIds":"y"}`}, 400, "memoryIds must be an array, not a string"},
	{"POST", "/api/memories/x/merge", []string{`{"memoryIds":[1]}`}, 400, "memoryIds[0] must be a string, not a number"},
	{"POST", "/api/memories/x/merge", []string{`{}`, `{"memoryIds":[]}`, `{"memoryIds":null}`}, 400, "memoryIds must contain 1 to 100 ids, not 0"},
	{"POST", "/api/memories/x/merge", []string{`{"memoryIds":["` + strings.Repeat(`","`, 100) + `"]}`}, 400, "memoryIds must contain 1 to 100 ids, not 101"},
	{"POST", "/api/memories/x/merge", []string{`{"memoryIds":["y","x"]}`, `{"memoryIds":["X"]}`}, 400, "memoryIds must not contain the memory that is kept"},
	{"POST", "/api/memories/x/merge", []string{`{"memoryIds":["y"]}`}, 404, "memory not found"},
	{"POST", "/api/memories/x/unmerge", []string{`{"memoryIds":7}`}, 400, "memoryIds must be an array, not a number"},
	{"POST", "/api/memories/x/unmerge", []string{`{"memoryIds":["` + strings.Repeat(`","`, 100) + `"]}`}, 400, "memoryIds must contain at most 100 ids, not 101"},
	{"POST", "/api/memories/x/unmerge", []string{`{}`, `{"memoryIds":["y"]}`, `{"memoryIds":null}`}, 404, "memory not found"},
	{"PATCH", "/api/buckets/1", []string{`{}`, `{"name":null}`}, 400, "name or description is required"},
	{"PATCH", "/api/buckets/1", []string{`{"name":7}`}, 400, "name must be a string"},
	{"PATCH", "/api/buckets/1", []string{`{"name":" "}`}, 400, "name is required and must not be blank"},
	{"PATCH", "/api/buckets/1", []string{`{"name":"2025"}`}, 400, "name must not be digits only"},
	{"PATCH", "/api/buckets/1", []string{`{"description":"` + strings.Repeat("x", 1001) + `"}`}, 400, "description must be at most 1000 characters"},
	{"PATCH", "/api/buckets/999", []string{`{"name":"a"}`}, 404, "bucket not found"},
	{"PATCH", "/api/buckets/x", []string{`{"name":"a"}`}, 404, "bucket not found"},
	{"DELETE", "/api/buckets/999", []string{""}, 404, "bucket not found"},
	{"DELETE", "/api/buckets/%00", []string{""}, 404, "bucket not found"},
	{"DELETE", "/api/buckets/99999999999999999999", []string{""}, 404, "bucket not found"},
	{"POST", "/api/memories/bulk-delete", []string{`{"memoryIds":"x"}`, `{"memoryIds":{}}`}, 400, "memoryIds must be an array, not a"},
	{"POST", "/api/memories/bulk-delete", []string{`{"memoryIds":[1]}`}, 400, "memoryIds[0] must be a string, not a number"},
	{"POST", "/api/memories/bulk-delete", []string{`{"memoryIds":["a","[{,\\\"",{}]}`}, 400, "memoryIds[2] must be a string, not an object"},
	{"POST", "/api/memories/bulk-delete", []string{`{"memoryIds":[]}`, `{"memoryIds":null}`}, 400, "memoryIds must contain 1 to 10000 ids"},
	{"POST", "/api/memories/bulk-delete", []string{`{"memoryIds":["` + strings.Repeat(`","`, 10000) + `"]}`}, 400, "memoryIds must contain 1 to 10000 ids, not 10001"},
	{"POST", "/api/buckets", []string{`{"name":7}`}, 400, "name must be a string, not a number"},
	{"POST", "/api/buckets", []string{`{"name":"  "}`, `{"description":"a"}`}, 400, "name is required"},
	{"POST", "/api/buckets", []string{`{"name":"2025"}`}, 400, "name must not be digits only"},
	{"POST", "/api/buckets", []string{`{"name":"` + strings.Repeat("x", 101) + `"}`}, 400, "name must be at most 100 characters"},
	{"POST", "/api/buckets", []string{`{"name":"a","description":7}`}, 400, "description must be a string"},
	{"POST", "/api/buckets", []string{`{"name":"GENERAL"}`}, 409, "default bucket"},
	{"GET", "/api/chat-history/conversation", []string{"", "conversationId="}, 400, "conversationId is required"},
	{"GET", "/api/chat-history/conversation", []string{"conversationId=x", "conversationId=%00", "conversationId=%ff"}, 404, "conversation not found"},
	{"GET", "/api/chat-history/chats", []string{"page=0", "page=x"}, 400, "page must be an integer of at least 1"},
	{"GET", "/api/chat-history/chats", []string{"pageSize=x", "pageSize=0"}, 400, "pageSize must be an integer of at least 1"},
	{"GET", "/api/chat-history/chats", []string{"pageSize=101"}, 400, "pageSize must be 1 to 100"},
	{"GET", "/api/chat-history/chats", []string{"dateFrom=soon"}, 400, "dateFrom must be an ISO 8601 date"},
	{"GET", "/api/chat-history/chats", []string{"dateTo=soon"}, 400, "dateTo must be an ISO 8601 date"},
	{"GET", "/api/chat-history/chats", []string{"pinnedOnly=x"}, 400, "pinnedOnly must be true"},
	{"GET", "/api/chat-history/chats", []string{"status=gone"}, 400, "status must be"},
	{"PATCH", "/api/chat-history/chats", []string{`{"ids":"x","pinned":true}`}, 400, "ids must be an array, not a string"},
	{"PATCH", "/api/chat-history/chats", []string{`{"ids":[],"pinned":true}`, `{"excluded":true}`}, 400, "ids must contain 1 to 10000 ids"},
	{"PATCH", "/api/chat-history/chats", []string{`{"ids":["x"]}`, `{"ids":["x"],"excluded":null}`}, 400, "excluded or pinned is required and must be true or false"},
	{"PATCH", "/api/chat-history/chats", []string{`{"ids":["x"],"excluded":1}`, `{"ids":["x"],"excluded":0}`}, 400, "excluded must be true or false, not a number"},
	{"PATCH", "/api/chat-history/chats", []string{`{"ids":["x"],"pinned":"true"}`}, 400, "pinned must be true or false, not a string"},
	{"DELETE", "/api/chat-history/chats", []string{`{"ids":"x"}`}, 400, "ids must be an array, not a string"},
	{"DELETE", "/api/chat-history/chats", []string{`{"ids":[]}`}, 400, "ids must contain 1 to 10000 ids"},
	{"POST", "/api/search", []string{`{"query":7}`}, 400, "query must be a string"},
	{"POST", "/api/search", []string{`{"query":" "}`}, 400, "query is required"},
	{"POST", "/api/search", []string{`{"query":"a","include":["chats","files"]}`}, 400, "include[1] must be memories or chats, not \"files\""},
	{"POST", "/api/search", []string{`{"query":"a","include":"chats"}`}, 400, "include must be"},
	{"POST", "/api/search", []string{`{"query":"a","limit":0}`}, 400, "limit must be 1 to 100"},
	{"POST", "/api/search", []string{`{"query":"a","minScore":2}`}, 400, "minScore must be 0 to 1"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","include":["chats","files"]}`}, 400, "include[1] must be memories or chats, not \"files\""},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","minScore":-1}`}, 400, "minScore must be 0 to 1"},
	{"GET", "/api/v2/memory?query=a&minScore=2", []string{""}, 400, "minScore must be a number from 0 to 1"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","minScore":"x"}`}, 400, "minScore must be a number"},
	{"POST", "/api/chat-history/search", []string{`{"query":7}`}, 400, "query must be a string"},
	{"POST", "/api/chat-history/search", []string{`{"query":" "}`}, 400, "query is required"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","limit":0}`, `{"query":"a","limit":101}`}, 400, "limit must be 1 to 100"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","limit":"x"}`, `{"query":"a","limit":1.5}`}, 400, "limit must be an integer, not a"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","minScore":2}`, `{"query":"a","minScore":-1}`}, 400, "minScore must be 0 to 1"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","contextChunks":21}`, `{"query":"a","contextChunks":-1}`}, 400, "contextChunks must be 0 to 20"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","provider":7}`}, 400, "provider must be a string"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","skipRerank":"x"}`}, 400, "skipRerank must be true or false, not a string"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","ranking":"AAA"}`}, 400, "ranking must be fused, lexical or dense"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","dateFrom":"x"}`}, 400, "dateFrom must be an ISO 8601"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","timeZone":"CEST"}`, `{"query":"a","timeZone":"Local"}`}, 400, "timeZone must be the name of an IANA time zone, such as Europe/Berlin"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","timeZone":"../UTC"}`}, 400, "timeZone must be the name of an IANA time zone"},
	{"POST", "/api/search", []string{`{"query":"a","timeZone":"+02:00"}`}, 400, "timeZone must be the name of an IANA time zone"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","dateTo":7}`}, 400, "dateTo must be a string"},
	{"POST", "/api/chat-history/inject", []string{`{"query":7}`}, 400, "query must be a string"},
	{"POST", "/api/chat-history/inject", []string{`{"query":" "}`, `{"queries":[]}`}, 400, "query is required"},
	{"POST", "/api/chat-history/inject", []string{`{"query":"a\u0000"}`}, 400, "query must not contain the character U+0000"},
	{"POST", "/api/chat-history/inject", []string{`{"query":"a","queries":[{"query":"b"}]}`}, 400, "query and queries must not be used together"},
	{"POST", "/api/chat-history/recall", []string{`{"queries":"a"}`}, 400, "queries must be an array, not a string"},
	{"POST", "/api/chat-history/recall", []string{`{"queries":[{"query":"a"},{"maxTokens":5}]}`}, 400, "queries[1].query is required"},
	{"POST", "/api/chat-history/recall", []string{`{"queries":[` + strings.Repeat(`{"query":"a"},`, 15) + `{"query":"a"}]}`}, 400, "queries must contain 1 to 15 questions, not 16"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","maxTokens":"5"}`, `{"query":"a","maxTokens":[]}`, `{"query":"a","maxTokens":true}`}, 400, "maxTokens must be a number"},
	{"POST", "/api/chat-history/recall", []string{`{"queries":[{"query":"a","maxTokens":{}}]}`}, 400, "queries[0].maxTokens must be a number"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","platform":7}`}, 400, "platform must be a string"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","conversationContext":7}`}, 400, "conversationContext must be a string"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","conversationHistory":{}}`}, 400, "conversationHistory must be an array, not an object"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","conversationHistory":[{"role":"user","content":7}]}`}, 400, "conversationHistory[0].content must be a string"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","before":"soon"}`}, 400, "before must be an ISO 8601 date"},
	{"POST", "/api/chat-history/recall", []string{`{"query":"a","after":"soon"}`}, 400, "after must be an ISO 8601 date"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{`{"conversation":7}`}, 400, "conversation must be an object, not a number"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{`{"platform":"custom"}`}, 400, "conversation is required"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{`{"conversation":{}}`}, 400, "conversation.id is required and must be a string; conversation.title is required"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{strings.Replace(ingestText, `"bot"`, `"pope"`, 1)}, 400, "conversation.messages[1].role must be human"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{strings.Replace(ingestText, `"By the window."`, `["a"]`, 1)}, 400, "conversation.messages[1].content must be a string, not an array"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{strings.Replace(ingestText, `"2025-05-09T12:00:00Z"`, `"soon"`, 1)}, 400, "conversation.createdAt must be an ISO 8601 time"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{`{"platform":"a b",` + ingestText[1:]}, 400, "platform must be 1 to 100 of"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{`{"platformDisplayName":"` + strings.Repeat("x", 201) + `",` + ingestText[1:]}, 400, "platformDisplayName must be at most 200"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{`{"platform":"all",` + ingestText[1:]}, 400, "platform must not be all"},
	{"POST", "/api/memory", []string{`{"text":"a\ud800"}`, `{"text":"\udc00"}`, `{"text":"\ud83d\ud83d\ude00"}`, `{"text":"\\\ud800\\udc00"}`}, 400, "text must not contain"},
	{"POST", "/api/chat-history/ingest/custom-online", []string{strings.Replace(ingestText, "By the window.", `\udfff`, 1)}, 400, `conversation.messages[1].content must not contain the unpaired surrogate \udfff`},
	{"POST", "/api/memory", []string{`{"text":"a","x":{"\ud800":1}}`}, 400, `must not contain the unpaired surrogate \ud800`},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","limit":101.0}`, `{"query":"a","limit":1e3}`}, 400, "limit must be 1 to 100"},
	{"POST", "/api/chat-history/search", []string{`{"query":"a","limit":1e300}`, `{"query":"a","limit":1.5,"contextChunks":1.0}`}, 400, "limit must be an integer, not a number"},
	{"POST", "/api/buckets", []string{`{"name":"a\nb"}`, `{"name":"a\u2028b"}`, `{"name":"a\u0007"}`, `{"name":"a\u0085b"}`}, 400, "name must not contain line breaks or control characters"},
	{"POST", "/api/buckets", []string{`{"name":"\u200b"}`, `{"name":"\u200d \ufeff"}`, `{"name":"\u3164"}`, `{"name":"\u2060\ufe0f"}`}, 400, "name is required and must not be blank"},
	{"PATCH", "/api/buckets/1", []string{`{"name":"a\tb"}`}, 400, "name must not contain line breaks or control characters"},
	{"GET", "/api/chat-history/imports", []string{"page=0", "page=x"}, 400, "page must be an integer of at least 1"},
	{"GET", "/api/chat-history/imports", []string{"pageSize=x", "pageSize=0"}, 400, "pageSize must be an integer of at least 1"},
	{"DELETE", "/api/account", []string{`{"confirm":7}`, `{"confirm":true}`}, 400, "confirm must be a string"},
	{"DELETE", "/api/account", []string{`{"confirm":null}`, `{"confirmed":"delete everything"}`}, 400, `confirm is required and must be "delete everything"`},
	{"DELETE", "/api/account", []string{`{"confirm":""}`, `{"confirm":"Delete everything"}`}, 400, `confirm must be "delete everything"; nothing was deleted`},
	{"GET", "/api/memories/%00", []string{""}, 404, "memory not found"},
	{"DELETE", "/api/memories/%ff", []string{""}, 404, "memory not found"},
}

func (h *testServer) rejectsBadFields(t *testing.T) {
	t.Helper()
	for _, tc := range badFields {
		for _, input := range tc.body {
			path, body := tc.path, input
			if h.operation(tc.method, tc.path).RequestBody == nil {
				path, body = tc.path+"?"+input, ""
			}
			got := h.call(t, h.alice, tc.method, path, body)
			message, _ := got.json(t)["error"].(string)
			if got.status != tc.status || !strings.Contains(message, tc.says) {
				t.Errorf("%s %.80s %.80s: %d %.200s, want %d saying %q", tc.method, path, body, got.status, got.body, tc.status, tc.says)
			}
		}
	}
}

// The server is as lenient as the contract says.
func TestLenientInput(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.ok(t, h.alice, "GET", "/api/v2/memory?count=&skip=&all=&bucketId=&latest=TRUE&count2=x&client=x&v=9&count=99999999999999999999", "")
	h.ok(t, h.alice, "GET", "/api/v2/memory?skip=99999999999999999999", "")
	h.ok(t, h.alice, "GET", "/api/chat-history/chats?page=99999999999999999999", "")
	for _, id := range []string{`1`, `"1"`, `" 1 "`, `1.0`, `null`} {
		h.ok(t, h.alice, "POST", "/api/memory", `{"text":"a","bucketId":`+id+`,"nested":{"text":7}}`)
	}
	h.ok(t, h.alice, "POST", "/api/memory", `{"text":"`+strings.Repeat("x", 32768)+`"}`)
	h.ok(t, h.alice, "POST", "/api/chat-history/search", `{"query":"a \ud83d\ude00 \\ud800","limit":1.0,"contextChunks":1e1}`)
	got := h.call(t, h.alice, "GET", "/api/buckets", "", "Authorization", "bearer  "+h.alice)
	if got.status != 200 {
		t.Errorf("a lower-case scheme and two spaces: %d %s", got.status, got.body)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	if got := h.call(t, h.alice, "GET", "/api/nothing", ""); got.status != 404 || !strings.Contains(got.body, `{"error":"not found: GET /api/nothing is not a route`) {
		t.Errorf("unknown path: %d %s", got.status, got.body)
	}
	got := h.call(t, h.alice, "PUT", "/api/memory", "{}")
	if got.status != 405 || !strings.Contains(got.header.Get("Allow"), "POST") || !strings.Contains(got.body, `{"error":`) {
		t.Errorf("unknown method: %d %s, Allow %q", got.status, got.body, got.header.Get("Allow"))
	}
	got = h.call(t, h.alice, "GET", "/api/memory?query="+strings.Repeat("x", 20000), "")
	if got.status != 431 || !strings.Contains(got.body, `{"error":`) {
		t.Errorf("a huge address: %d %s", got.status, got.body)
	}
}
