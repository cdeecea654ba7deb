package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// protocols are the supported MCP versions.
var protocols = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}

// assistant is a connected MCP client.
type assistant struct{ *sdk.ClientSession }

// withToken adds a token to every request.
type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(r)
}

// assistant connects as a user with a protocol version.
func (h *testServer) assistant(t *testing.T, token, version string) assistant {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + h.addr + "/mcp", HTTPClient: &http.Client{Transport: withToken(token)},
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return assistant{session}
}

// call calls a tool, validates the result against its schema, and reports whether
// it is an error.
func (a assistant) call(t *testing.T, name, arguments string) (text string, failed bool) {
	t.Helper()
	got, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	if len(got.Content) != 1 {
		t.Fatalf("%s %s: %d contents", name, arguments, len(got.Content))
	}
	content, ok := got.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("%s %s: %T", name, arguments, got.Content[0])
	}
	if got.IsError {
		return content.Text, true
	}
	structured, err := json.Marshal(got.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var asText, asStructure any
	if json.Unmarshal([]byte(content.Text), &asText) != nil || json.Unmarshal(structured, &asStructure) != nil ||
		fmt.Sprint(asText) != fmt.Sprint(asStructure) {
		t.Errorf("%s %s: the text %s is not the structure %s", name, arguments, content.Text, structured)
	}
	return content.Text, false
}

// ok is call that requires success and decodes the result.
func (a assistant) ok(t *testing.T, name, arguments string) map[string]any {
	t.Helper()
	text, failed := a.call(t, name, arguments)
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); failed || err != nil {
		t.Fatalf("%s %s: %s", name, arguments, text)
	}
	return out
}

// refused is call that requires an error containing a text.
func (a assistant) refused(t *testing.T, name, arguments, says string) {
	t.Helper()
	if text, failed := a.call(t, name, arguments); !failed || !strings.Contains(text, says) {
		t.Errorf("%s %s: failed %t: %s; want %q", name, arguments, failed, text, says)
	}
}

// Tools have names, descriptions, hints and schemas.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, version := range protocols {
		a := h.assistant(t, h.alice, version)
		if got := a.InitializeResult(); got.ServerInfo.Name != "mnemo" || !strings.Contains(got.Instructions, "YYYY-MM-DD") {
			t.Errorf("%s: initialized with %+v", version, got)
		}
		list, err := a.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		for _, tool := range list.Tools {
			a := tool.Annotations
			names[tool.Name] = fmt.Sprintf("reads %t, destroys %t, repeatable %t, open %t", a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint)
			if tool.Title == "" || a.Title != tool.Title || len(tool.Description) < 80 {
				t.Errorf("%s: title %q, description %q", tool.Name, tool.Title, tool.Description)
			}
			describes(t, tool.Name, tool.InputSchema)
			if schema(t, tool.OutputSchema).Type != "object" {
				t.Errorf("%s: output schema %v", tool.Name, tool.OutputSchema)
			}
		}
		const reads, writes, edits = "reads true, destroys false, repeatable true, open false", "reads false, destroys false, repeatable false, open false",
			"reads false, destroys false, repeatable true, open false"
		want := map[string]string{"store_memory": writes, "search_memories": reads, "get_memories_and_buckets": reads, "list_buckets": reads,
			"create_bucket": writes, "update_or_move_memories": edits, "recall_chat_history": reads, "search_chat_history": reads, "get_full_conversation": reads}
		if fmt.Sprint(names) != fmt.Sprint(want) {
			t.Errorf("%s: tools %v, want %v", version, names, want)
		}
	}
}

func schema(t *testing.T, v any) *jsonschema.Schema {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// describes fails unless every argument has a description and a type that all
// clients support.
func describes(t *testing.T, tool string, v any) {
	t.Helper()
	for name, p := range schema(t, v).Properties {
		if p.Description == "" || p.Type == "" {
			t.Errorf("%s: argument %s: type %q, description %q", tool, name, p.Type, p.Description)
		}
	}
}

// Every tool returns results that match its schema, in every protocol version.
func TestMCPCalls(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			token := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "versions", User: tenant.UserID(100 + slices.Index(protocols, version))}})
			h.usesEveryTool(t, h.assistant(t, token, version), token)
		})
	}
}

// usesEveryTool calls every tool as a user with an empty account.
func (h *testServer) usesEveryTool(t *testing.T, a assistant, token string) {
	t.Helper()
	bucket := a.ok(t, "create_bucket", `{"name":"Travel","description":"Trips"}`)["bucketId"].(string)
	memory := a.ok(t, "store_memory", `{"text":"2025-05-09 Prefers the window seat on trains <&>","bucketId":"`+bucket+`"}`)["memoryId"].(string)
	again := a.ok(t, "store_memory", `{"text":"2025-05-09 Prefers the window seat on trains <&>","bucketId":`+bucket+`}`)
	if diff := cmp.Diff(map[string]any{"memoryId": memory, "isDuplicate": true}, again); diff != "" {
		t.Errorf("store_memory of the same text (-want +got):\n%s", diff)
	}
	found := fmt.Sprint(a.ok(t, "search_memories", `{"query":"where to sit on a train?"}`))
	if !strings.Contains(found, memory) || !strings.Contains(found, "window seat on trains <&>") || !strings.Contains(found, "bucketName:Travel") {
		t.Errorf("search_memories: %s", found)
	}
	all := fmt.Sprint(a.ok(t, "get_memories_and_buckets", `{"bucketId":`+bucket+`}`))
	if !strings.Contains(all, memory) || !strings.Contains(all, "memoryCount:1 name:Travel") {
		t.Errorf("get_memories_and_buckets: %s", all)
	}
	if got := a.ok(t, "update_or_move_memories", `{"memoryId":"`+memory+`","text":"2025-05-09 Prefers the aisle","bucketName":"general"}`); got["version"] != 2.0 {
		t.Errorf("update_or_move_memories: %v", got)
	}
	if got := a.ok(t, "update_or_move_memories", `{"memoryIds":["`+memory+`"],"bucketId":"`+bucket+`"}`); fmt.Sprint(got["memoryIds"]) != "["+memory+"]" {
		t.Errorf("update_or_move_memories: %v", got)
	}
	if got := fmt.Sprint(a.ok(t, "list_buckets", `{}`)); !strings.Contains(got, "bucketId:"+bucket) || !strings.Contains(got, "name:General") {
		t.Errorf("list_buckets: %s", got)
	}
	if got := h.ok(t, token, "GET", "/api/memories/"+memory, "").json(t); got["text"] != "2025-05-09 Prefers the aisle" || !strings.HasPrefix(got["source"].(string), "mcp") {
		t.Errorf("over HTTP: %v", got)
	}

	chatID := h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", ingestText).json(t)["conversationId"].(string)
	recalled := a.ok(t, "recall_chat_history", `{"query":"by the window or not?","maxTokens":300}`)
	if !strings.Contains(recalled["content"].(string), "By the window.") || !strings.Contains(fmt.Sprint(recalled["sources"]), chatID) {
		t.Errorf("recall_chat_history: %v", recalled)
	}
	several := a.ok(t, "recall_chat_history", `{"queries":[{"query":"by the window or not?","maxTokens":300},{"query":"which seat?"}],"maxTokens":100}`)
	if results, _ := several["results"].([]any); len(results) != 2 || !strings.Contains(fmt.Sprint(results[0]), "By the window.") || !strings.Contains(fmt.Sprint(results[1]), "query:which seat?") || several["content"] != "" {
		t.Errorf("recall_chat_history of two questions: %v", several)
	}
	for _, call := range [][2]string{{"search_memories", `{"query":"aisle","limit":1}`}, {"get_memories_and_buckets", `{"limit":1}`}, {"search_chat_history", `{"query":"window?","count":1}`}} {
		got := a.ok(t, call[0], call[1])
		list, _ := got["memories"].([]any)
		if results, ok := got["results"].([]any); ok {
			list = results
		}
		if len(list) != 1 {
			t.Errorf("%s %s: %v", call[0], call[1], got)
		}
	}
	passages := fmt.Sprint(a.ok(t, "search_chat_history", `{"query":"by the window or not?","contextMessages":2,"dateTo":"2099-01-01"}`))
	if !strings.Contains(passages, chatID) || !strings.Contains(passages, "By the window.") || !strings.Contains(passages, "context:[map[") {
		t.Errorf("search_chat_history: %s", passages)
	}
	for arguments, want := range map[string]bool{`{"query":"window?","limit":1}`: true, `{"query":"window?","limit":1,"contextMessages":0}`: false} {
		first, _ := a.ok(t, "search_chat_history", arguments)["results"].([]any)[0].(map[string]any)
		if context, _ := first["context"].([]any); (len(context) == 1) != want {
			t.Errorf("search_chat_history %s: %d messages beside", arguments, len(context))
		}
	}
	read := a.ok(t, "get_full_conversation", `{"conversationId":"`+chatID+`","fromMessage":1}`)
	if read["messageCount"] != 2.0 || !strings.Contains(fmt.Sprint(read["messages"]), "index:1") || strings.Contains(fmt.Sprint(read["messages"]), "index:0") {
		t.Errorf("get_full_conversation: %v", read)
	}
	h.readsResources(t, a, chatID)
}

// readsResources lists and reads conversations as resources.
func (h *testServer) readsResources(t *testing.T, a assistant, chatID string) {
	t.Helper()
	list, err := a.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatalf("resources: %v", err)
	}
	if len(list.Resources) != 1 {
		t.Fatalf("resources: len(list.Resources) = %d, want 1", len(list.Resources))
	}
	if list.Resources[0].URI != "mnemo://conversations/"+chatID {
		t.Fatalf("resources: list.Resources[0].URI = %v, want %v", list.Resources[0].URI, "mnemo://conversations/"+chatID)
	}
	if list.Resources[0].Name != "Trains" {
		t.Fatalf(`resources: list.Resources[0].Name = %q, want "Trains"`, list.Resources[0].Name)
	}
	read, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: list.Resources[0].URI})
	if err != nil || !strings.HasPrefix(read.Contents[0].Text, "# Trains\n") || !strings.Contains(read.Contents[0].Text, "By the window.") {
		t.Errorf("read resource: %+v, %v", read, err)
	}
	templates, err := a.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatalf("resource templates: %v", err)
	}
	if len(templates.ResourceTemplates) != 2 {
		t.Fatalf("resource templates: len(templates.ResourceTemplates) = %d, want 2", len(templates.ResourceTemplates))
	}
	if templates.ResourceTemplates[0].URITemplate != "mnemo://conversations/{id}" {
		t.Errorf(`resource templates: templates.ResourceTemplates[0].URITemplate = %q, want "mnemo://conversations/{id}"`, templates.ResourceTemplates[0].URITemplate)
	}
	for _, uri := range []string{"mnemo://conversations/nobodys", "mnemo://memories/x", "mnemo://conversations/" + chatID + "?cursor=x"} {
		if got, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("read %s: %+v", uri, got)
		}
	}
}

// Errors tell the assistant how to fix the call.
func TestMCPErrors(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	a := h.assistant(t, h.alice, protocols[0])
	long := strings.Repeat("x", 33000)
	for _, tc := range [][3]string{
		{"store_memory", `{}`, "text is required and must not be blank"},
		{"store_memory", `{"text":" "}`, "text is required and must not be blank"},
		{"store_memory", `{"text":"` + long + `"}`, "text must be at most 32768 bytes of UTF-8, not 33000"},
		{"store_memory", `{"text":"a\u0000b"}`, "text must not contain the character U+0000"},
		{"store_memory", `{"text":1}`, "text must be a string"},
		{"store_memory", `{"text":"a","bucketId":"999"}`, "bucket not found"},
		{"store_memory", `{"text":"a","bucketId":"Travel"}`, "bucketId must be a bucket id"},
		{"store_memory", `{"text":"a","bucket":"1"}`, "unknown arguments: bucket; store_memory accepts text, bucketId"},
		{"search_memories", `{}`, "query is required"},
		{"search_memories", `{"query":"a","count":"many"}`, "count must be an integer"},
		{"search_memories", `{"query":"a","count":-1}`, "count must be"},
		{"search_memories", `{"query":"a","skip":-1}`, "skip must be at least 0"},
		{"get_memories_and_buckets", `{"bucketId":999}`, "bucket not found"},
		{"get_memories_and_buckets", `{"oldestFirst":"yes"}`, "oldestFirst must be true or false"},
		{"list_buckets", `{"skip":-1}`, "skip must be at least 0"},
		{"create_bucket", `{"name":"12"}`, "name must not be digits only"},
		{"create_bucket", `{"name":"general"}`, "default bucket"},
		{"update_or_move_memories", `{}`, "memoryId or memoryIds is required"},
		{"update_or_move_memories", `{"memoryId":"x"}`, "there is nothing to change"},
		{"update_or_move_memories", `{"memoryId":"x","text":"a"}`, "memory not found"},
		{"update_or_move_memories", `{"memoryIds":["x","y"],"bucketName":"General"}`, "nothing was moved: x, y"},
		{"update_or_move_memories", `{"memoryIds":["x"],"text":"a"}`, "text requires memoryId"},
		{"update_or_move_memories", `{"memoryIds":"x"}`, "memoryIds must be an array"},
		{"recall_chat_history", `{"query":""}`, "query is required and must not be blank"},
		{"recall_chat_history", `{"query":"a","after":"yesterday"}`, "after must be an ISO 8601 date or time"},
		{"recall_chat_history", `{"query":"a","queries":[{"query":"b"}]}`, "query and queries must not be used together"},
		{"recall_chat_history", `{"queries":[{"query":"a"},{}]}`, "queries[1].query is required"},
		{"recall_chat_history", `{"queries":["a"]}`, "queries[0] must be an object"},
		{"search_memories", `{"query":"a","limit":1,"count":2}`, "limit is another name of count: use one of them"},
		{"search_memories", `{"query":"a","limit":-1}`, "count must be"},
		{"search_chat_history", `{"query":"a","limit":-1}`, "limit must be 1 to 100"},
		{"search_chat_history", `{"query":"a","contextMessages":21}`, "contextMessages must be 0 to 20"},
		{"search_chat_history", `{"query":"a","skip":100}`, "skip must be 0 to 99"},
		{"search_chat_history", `{"query":"a","timeZone":"CEST"}`, "timeZone must be the name of an IANA time zone, such as Europe/Berlin"},
		{"recall_chat_history", `{"query":"a","timeZone":"Local"}`, "timeZone must be the name of an IANA time zone, such as Europe/Berlin"},
		{"get_full_conversation", `{}`, "conversationId is required"},
		{"get_full_conversation", `{"conversationId":"x"}`, "conversation not found"},
		{"get_full_conversation", `{"conversationId":"x","cursor":"-1"}`, "cursor must be the nextCursor"},
	} {
		a.refused(t, tc[0], tc[1], tc[2])
	}
	if _, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "delete_everything"}); err == nil {
		t.Error("a tool that is not there was called")
	}
	h.stores.fail(fault.New(fault.Forbidden, "memory quota exceeded (limit 10); delete some or ask for more"))
	h.Cache.Clear()
	h.stores.fail(nil)
	a.ok(t, "list_buckets", `{}`) // the identity is cached again
	for err, says := range map[error]string{
		fault.New(fault.Forbidden, "memory quota exceeded (limit 10)"):                                         "memory quota exceeded (limit 10)",
		&fault.Error{Kind: fault.Unavailable, Message: "the database is unavailable", RetryAfter: time.Second}: "the database is unavailable (retry in 1 s)",
		fmt.Errorf("secret detail"): "internal error; details are logged",
	} {
		h.stores.fail(err)
		a.refused(t, "list_buckets", `{}`, says)
		if text, _ := a.call(t, "list_buckets", `{}`); strings.Contains(text, "secret") {
			t.Errorf("the error reveals an internal detail: %s", text)
		}
	}
}

// Tools never return the data of another user.
func TestMCPIsolation(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	h.isolatesAssistants(t, h.alice, h.bob, h.carol)
}

func (h *testServer) isolatesAssistants(t *testing.T, owner, user, stranger string) {
	t.Helper()
	ids := h.fill(t, owner)
	for name, token := range map[string]string{"another user": user, "another tenant": stranger} {
		a := h.assistant(t, token, protocols[0])
		for _, r := range [][2]string{
			{"store_memory", `{"text":"a","bucketId":"$b"}`},
			{"search_memories", `{"query":"window seat","bucketId":"$b"}`},
			{"get_memories_and_buckets", `{"bucketId":"$b"}`},
			{"update_or_move_memories", `{"memoryId":"$m","text":"b"}`},
			{"update_or_move_memories", `{"memoryId":"$m","bucketName":"General"}`},
			{"update_or_move_memories", `{"memoryIds":["$m"],"bucketName":"General"}`},
			{"get_full_conversation", `{"conversationId":"$c"}`},
		} {
			got, failed := a.call(t, r[0], ids.Replace(r[1]))
			want, _ := a.call(t, r[0], nobodys.Replace(r[1]))
			if !failed || strings.ReplaceAll(got, ids.Replace("$m"), nobodys.Replace("$m")) != want {
				t.Errorf("%s: %s %s: %s, but %s for an id nobody has", name, r[0], r[1], got, want)
			}
		}
		for _, r := range [][3]string{
			{"search_memories", `{"query":"window seat"}`, "memories:[]"}, {"get_memories_and_buckets", `{}`, "memories:[]"},
			{"recall_chat_history", `{"query":"window seat"}`, "sources:[]"}, {"search_chat_history", `{"query":"window seat"}`, "results:[]"},
		} {
			if got := fmt.Sprint(a.ok(t, r[0], r[1])); !strings.Contains(got, r[2]) || strings.Contains(got, "Travel") {
				t.Errorf("%s: %s: %s", name, r[0], got)
			}
		}
		if list, err := a.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 0 {
			t.Errorf("%s: resources %+v, %v", name, list, err)
		}
		_, got := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: ids.Replace("mnemo://conversations/$c")})
		_, want := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: nobodys.Replace("mnemo://conversations/$c")})
		if got == nil || strings.ReplaceAll(got.Error(), ids.Replace("$c"), nobodys.Replace("$c")) != want.Error() {
			t.Errorf("%s: read resource: %v, but %v for an id nobody has", name, got, want)
		}
	}
	h.seesAll(t, owner, ids)
}

// storesOnce: a call with a key is executed once, however often it is repeated.
func (h *testServer) storesOnce(t *testing.T, s realStores) {
	t.Helper()
	alice := h.assistant(t, s.tenant(t, "monce", "alice", false), protocols[0])
	bob := h.assistant(t, s.tenant(t, "monce", "bob", false), protocols[0])
	call := func(a assistant, tool, arguments string, key any) (string, bool) {
		t.Helper()
		got, err := a.CallTool(t.Context(), &sdk.CallToolParams{
			Meta: sdk.Meta{"mnemo.dev/idempotencyKey": key}, Name: tool, Arguments: json.RawMessage(arguments),
		})
		if err != nil {
			t.Fatal(err)
		}
		return got.Content[0].(*sdk.TextContent).Text, got.IsError
	}
	for _, tool := range [][3]string{
		{"store_memory", `{"text":"2025-05-09 Keeps bees"}`, `{"text":"2025-05-09 Keeps hens"}`},
		{"create_bucket", `{"name":"Bees","description":"Of them"}`, `{"name":"Hens"}`},
	} {
		first, failed := call(alice, tool[0], tool[1], "k")
		again, failedAgain := call(alice, tool[0], strings.Replace(tool[1], ":", ": ", 1), "k")
		if failed || failedAgain || again != first {
			t.Errorf("%s: %s, then %s", tool[0], first, again)
		}
		if got, failed := call(alice, tool[0], tool[2], "k"); !failed || !strings.Contains(got, "was used for another") {
			t.Errorf("%s, something else under the key: %s", tool[0], got)
		}
		if got, failed := call(bob, tool[0], tool[2], "k"); failed || got == first {
			t.Errorf("%s, another user: %s", tool[0], got)
		}
		for _, key := range []any{7, "", strings.Repeat("k", 256)} {
			if got, failed := call(alice, tool[0], tool[1], key); !failed || !strings.Contains(got, "_meta.mnemo.dev/idempotencyKey must be a string") {
				t.Errorf("%s, key %v: %s", tool[0], key, got)
			}
		}
	}
	got := fmt.Sprint(alice.ok(t, "get_memories_and_buckets", `{}`))
	if strings.Count(got, "Keeps bees") != 1 || strings.Contains(got, "hens") || strings.Contains(got, "Hens") {
		t.Errorf("there are %s", got)
	}
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// The endpoint rejects the same requests as the API, before reading the message.
func TestMCPRejectsRequests(t *testing.T) {
	t.Parallel()
	own := &url.URL{Scheme: "https", Host: "mnemo.example.com"}
	h := newTestServer(t, func(c *Config) { c.URL = own })
	unknown, err := tenant.NewToken(0, seed(99))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"missing": "", "unknown": unknown, "cut": h.alice[:20], "changed": flipped(h.alice)} {
		got := h.call(t, token, "POST", "/mcp", ping)
		if got.status != 401 || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") || got.json(t)["error"] == nil {
			t.Errorf("with a token that is %s: %d %s", name, got.status, got.body)
		}
	}
	if got := h.call(t, h.suspended, "POST", "/mcp", ping); got.status != 403 || !strings.Contains(got.body, "suspended") {
		t.Errorf("of a suspended tenant: %d %s", got.status, got.body)
	}
	call := func(body string, headers ...string) answer {
		return h.call(t, h.alice, "POST", "/mcp", body, headers...)
	}
	for name, tc := range map[string]struct {
		got    answer
		status int
		says   string
	}{
		"own origin":      {call(ping, "Origin", "https://mnemo.example.com"), 200, `"result":{}`},
		"other origin":    {call(ping, "Origin", "https://evil.example.com"), 403, "origin not allowed"},
		"null origin":     {call(ping, "Origin", "null"), 403, "origin not allowed"},
		"DNS rebinding":   {call(ping, "Origin", "http://"+h.addr), 403, "origin not allowed"},
		"batch":           {call("["+ping+"]", "Mcp-Protocol-Version", "2025-03-26"), 400, "one message per request"},
		"invalid JSON":    {call("{"), 400, "error"},
		"form":            {call("a=b", "Content-Type", "text/plain"), 415, "application/json"},
		"large":           {call(`"` + strings.Repeat("x", 1<<20) + `"`), 413, "at most 1048576 bytes"},
		"unknown version": {call(ping, "Mcp-Protocol-Version", "2020-01-01"), 400, "Unsupported protocol version"},
		"GET":             {h.call(t, h.alice, "GET", "/mcp", "", "Accept", "text/event-stream"), 405, "method"},
		"DELETE":          {h.call(t, h.alice, "DELETE", "/mcp", ""), 405, "method"},
		"wildcard Accept": {call(ping, "Accept", "*/*"), 200, `"result":{}`},
	} {
		if tc.got.status != tc.status || !strings.Contains(tc.got.body, tc.says) {
			t.Errorf("%s: %d %s, want %d %s", name, tc.got.status, tc.got.body, tc.status, tc.says)
		}
	}
	if strings.Contains(h.log.String(), h.alice) {
		t.Error("a token is in the log")
	}
}
