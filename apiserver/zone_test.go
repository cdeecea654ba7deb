package apiserver

import (
	"context"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// queries is a search that finds nothing and sends the queries.
type queries chan retrieve.Query

func (s queries) Search(_ context.Context, _ tenant.Scope, _ placement.Location, q retrieve.Query) (retrieve.Result, error) {
	s <- q
	return retrieve.Result{}, nil
}

// Times in queries and in other fields are in the time zone of the request.
func TestTimesAreInTheZoneOfTheRequest(t *testing.T) {
	t.Parallel()
	sent := make(queries, 1)
	h := newTestServer(t, func(c *Config) {
		config := c.Chats.Config
		config.Searcher = sent
		c.Chats = chat.NewService(config)
	})
	a := h.assistant(t, h.alice, protocols[0])
	call := func(path, body string) { h.ok(t, h.alice, "POST", path, body) }
	tool := func(name, body string) { a.ok(t, name, body) }
	const query = `{"query":"Which seat did I like on 9 May 2025?","timeZone":"Asia/Tokyo"`
	const searched = query + `,"dateFrom":"2025-05-09","dateTo":"2025-05-09","asOf":"2025-05-09"}`
	const recalled = query + `,"after":"2025-05-09","before":"2025-05-10"}`
	start := time.Date(2025, time.May, 8, 15, 0, 0, 0, time.UTC)
	end := start.Add(24 * time.Hour)
	for name, send := range map[string]func(){
		"search":              func() { call("/api/chat-history/search", searched) },
		"recall":              func() { call("/api/chat-history/recall", recalled) },
		"unified search":      func() { call("/api/search", query+`,"include":["chats"],"asOf":"2025-05-09"}`) },
		"search_chat_history": func() { tool("search_chat_history", searched) },
		"recall_chat_history": func() { tool("recall_chat_history", recalled) },
	} {
		send()
		q := <-sent
		if !q.Window.From.Equal(start) || !q.Window.To.Equal(end) {
			t.Errorf("%s: the query is about %v, want %v to %v", name, q.Window, start, end)
		}
		if !q.Before.Equal(end) {
			t.Errorf("%s: messages before %v, want %v", name, q.Before, end)
		}
		if !q.From.IsZero() && (!q.From.Equal(start) || !q.To.Equal(end)) {
			t.Errorf("%s: conversations from %v to %v, want %v to %v", name, q.From, q.To, start, end)
		}
		if !q.After.IsZero() && !q.After.Equal(start) {
			t.Errorf("%s: messages after %v, want %v", name, q.After, start)
		}
	}
}
