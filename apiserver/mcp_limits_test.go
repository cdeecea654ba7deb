package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// Only messages that access the stores count toward the rate limit, and the error
// says when to retry.
func TestMCPRate(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	clock := noon.Truncate(time.Minute).Add(48500 * time.Millisecond)
	h.limiter.Now = func() time.Time { return clock }
	token := h.user(t, tenant.Identity{Scope: tenant.Scope{Tenant: "few", User: 21}, Quota: tenant.Quota{RequestsPerMinute: 3}})
	a := h.assistant(t, token, protocols[1])
	if _, err := a.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	a.ok(t, "list_buckets", `{}`)
	a.refused(t, "create_bucket", `{}`, "name is required")
	if _, err := a.ListResources(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	a.refused(t, "list_buckets", `{}`, "request rate limit exceeded (3 per minute); retry in 12 s")
	if _, err := a.ListResources(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "retry in 12 s") {
		t.Errorf("a fourth request: %v", err)
	}
	if got := h.call(t, token, "GET", "/api/buckets", ""); got.status != 429 {
		t.Errorf("over HTTP then: %d", got.status)
	}
	got := h.call(t, h.bob, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_buckets"}}`)
	if got.status != 200 {
		t.Errorf("another tenant: status = %d, want 200", got.status)
	}
	if got.header.Get("RateLimit-Limit") != "1000000" {
		t.Errorf(`another tenant: RateLimit-Limit = %q, want "1000000"`, got.header.Get("RateLimit-Limit"))
	}
	if got.header.Get("RateLimit-Remaining") != "999999" {
		t.Errorf(`another tenant: RateLimit-Remaining = %q, want "999999"`, got.header.Get("RateLimit-Remaining"))
	}
}

// Results respect the token limit, and paging returns each item exactly once.
func TestMCPBudgets(t *testing.T) {
	t.Parallel()
	h := newTestServer(t)
	a := h.assistant(t, h.alice, protocols[0])
	text := "2025-05-09 " + strings.Repeat("window seat ", 60)
	for i := range 20 {
		a.ok(t, "store_memory", fmt.Sprintf(`{"text":"%s%d"}`, text, i))
	}
	for tool, arguments := range map[string]string{
		"search_memories":          `{"query":"window","count":100,"maxTokens":500,"skip":%d}`,
		"get_memories_and_buckets": `{"oldestFirst":true,"count":100,"maxTokens":500,"skip":%d}`,
	} {
		seen := map[any]bool{}
		for skip, pages := 0.0, 0; pages == 0 || skip > 0; pages++ {
			got := a.ok(t, tool, fmt.Sprintf(arguments, int(skip)))
			page, _ := got["memories"].([]any)
			if pages > 20 || len(page) == 0 || len(page)*tokens.Count(text) > 500 {
				t.Fatalf("%s: %d memories on page %d", tool, len(page), pages)
			}
			for _, m := range page {
				seen[m.(map[string]any)["memoryId"]] = true
			}
			skip, _ = got["nextSkip"].(float64)
		}
		if len(seen) != 20 {
			t.Errorf("%s: %d of 20 memories", tool, len(seen))
		}
	}
	for i := range 60 {
		a.ok(t, "create_bucket", fmt.Sprintf(`{"name":"Bucket %d"}`, i))
	}
	first, second := a.ok(t, "list_buckets", `{}`), a.ok(t, "list_buckets", `{"skip":50}`)
	if len(first["buckets"].([]any)) != 50 || first["nextSkip"] != 50.0 || len(second["buckets"].([]any)) != 11 || second["nextSkip"] != nil {
		t.Errorf("buckets in pages: %v, %v", first["nextSkip"], second["nextSkip"])
	}
	h.readsInPages(t, a)
}

// readsInPages reads a conversation with messages larger than a page.
func (h *testServer) readsInPages(t *testing.T, a assistant) {
	t.Helper()
	texts := []string{"How so?", strings.Repeat("Because it is so, señor. ", 800), strings.Repeat("äöü", 900), strings.Repeat("x", 3000), "I see."}
	body := map[string]any{"id": "long", "title": "Long", "createdAt": noon}
	var messages []map[string]any
	for i, text := range texts {
		messages = append(messages, map[string]any{"id": fmt.Sprint(i), "role": "user", "content": text, "createdAt": noon})
	}
	body["messages"] = messages
	raw, err := json.Marshal(map[string]any{"conversation": body})
	if err != nil {
		t.Fatal(err)
	}
	id := h.ok(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", string(raw)).json(t)["conversationId"].(string)
	read := make([]string, len(texts))
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		got := a.ok(t, "get_full_conversation", fmt.Sprintf(`{"conversationId":%q,"maxTokens":500,"cursor":%q}`, id, cursor))
		total := 0
		for _, m := range got["messages"].([]any) {
			m, _ := m.(map[string]any)
			i := int(m["index"].(float64))
			read[i] += m["text"].(string)
			total += tokens.Count(m["text"].(string))
			if whole := m["cut"] == nil; whole != (m["text"] == texts[i]) {
				t.Errorf("message %d: cut %v", i, m["cut"])
			}
		}
		if total > 500 || total == 0 || pages > 50 {
			t.Fatalf("page %d has %d tokens", pages, total)
		}
		cursor, _ = got["nextCursor"].(string)
	}
	if !slices.Equal(read, texts) {
		t.Errorf("read in pages: %.200q", read)
	}
	search := fmt.Sprint(a.ok(t, "search_chat_history", `{"query":"why?","limit":5,"maxTokens":200}`))
	if !strings.Contains(search, "nextSkip:1") {
		t.Errorf("search of long messages: %.300s", search)
	}
	resource, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mnemo://conversations/" + id + "?cursor=4"})
	if err != nil || !strings.Contains(resource.Contents[0].Text, "I see.") || strings.Contains(resource.Contents[0].Text, "How so?") {
		t.Errorf("a page of a resource: %+v, %v", resource, err)
	}
}

// stuck is a search that blocks until its context ends.
type stuck struct{ began, ended chan error }

func (s stuck) Search(ctx context.Context, _ tenant.Scope, _ placement.Location, _ retrieve.Query) (retrieve.Result, error) {
	s.began <- nil
	<-ctx.Done()
	s.ended <- context.Cause(ctx)
	return retrieve.Result{}, ctx.Err()
}

func newStuckServer(t *testing.T, change ...func(*Config)) (*testServer, stuck) {
	t.Helper()
	s := stuck{make(chan error, 1), make(chan error, 1)}
	h := newTestServer(t, append(change, func(c *Config) {
		config := c.Chats.Config
		config.Searcher = s
		c.Chats = chat.NewService(config)
	})...)
	return h, s
}

// Canceling a call or disconnecting ends its work, in every protocol version.
func TestMCPCancellation(t *testing.T) {
	t.Parallel()
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h, s := newStuckServer(t)
			a := h.assistant(t, h.alice, version)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-s.began
				cancel()
			}()
			if got, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "recall_chat_history", Arguments: json.RawMessage(`{"query":"a"}`)}); err == nil {
				t.Errorf("a cancelled call answered %+v", got)
			}
			if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "the client canceled the call") {
				t.Errorf("the work ended with %v", err)
			}
			a.ok(t, "list_buckets", `{}`)
			if strings.Contains(h.log.String(), "level=ERROR") {
				t.Errorf("logged: %s", h.log)
			}
		})
	}
}

const stuckCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall_chat_history","arguments":{"query":"a"}}}`

// A cancel notification affects only calls of the same user and client, and a call
// that times out returns an error.
func TestMCPCancelledNotification(t *testing.T) {
	t.Parallel()
	h, s := newStuckServer(t)
	answered := make(chan answer, 1)
	go func() { answered <- h.call(t, h.alice, "POST", "/mcp", stuckCall, "Mcp-Session-Id", "mine") }()
	<-s.began
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	for token, session := range map[string]string{h.bob: "mine", h.alice: "another", h.carol: ""} {
		if got := h.call(t, token, "POST", "/mcp", cancelled, "Mcp-Session-Id", session); got.status != 202 {
			t.Errorf("cancelled: %d %s", got.status, got.body)
		}
	}
	select {
	case err := <-s.ended:
		t.Fatalf("somebody else's notification ended the call: %v", err)
	default:
	}
	h.call(t, h.alice, "POST", "/mcp", cancelled, "Mcp-Session-Id", "mine")
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "the client canceled the call") {
		t.Errorf("the work ended with %v", err)
	}
	if got := <-answered; !strings.Contains(got.body, `"isError":true`) {
		t.Errorf("the cancelled call answered %d %s", got.status, got.body)
	}

	h, s = newStuckServer(t, func(c *Config) { c.RequestTimeout = 300 * time.Millisecond })
	got := h.call(t, h.alice, "POST", "/mcp", stuckCall)
	<-s.began
	if err := <-s.ended; !strings.Contains(got.body, "request timed out; try again") || err == nil {
		t.Errorf("too slow: %d %s; the work ended with %v", got.status, got.body, err)
	}
}
