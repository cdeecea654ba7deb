package apiserver

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	for name, tc := range map[string]struct {
		send            func()
		from, to, after time.Time
	}{
		"search":              {func() { call("/api/chat-history/search", searched) }, start, end, time.Time{}},
		"recall":              {func() { call("/api/chat-history/recall", recalled) }, time.Time{}, time.Time{}, start},
		"unified search":      {func() { call("/api/search", query+`,"include":["chats"],"asOf":"2025-05-09"}`) }, time.Time{}, time.Time{}, time.Time{}},
		"search_chat_history": {func() { tool("search_chat_history", searched) }, start, end, time.Time{}},
		"recall_chat_history": {func() { tool("recall_chat_history", recalled) }, time.Time{}, time.Time{}, start},
	} {
		tc.send()
		if len(sent) == 0 {
			t.Fatalf("%s: no search", name)
		}
		q := <-sent
		got := []time.Time{q.Window.From, q.Window.To, q.From, q.To, q.After, q.Before}
		want := []time.Time{start, end, tc.from, tc.to, tc.after, end}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: bounds of the window, conversations and messages (-want +got):\n%s", name, diff)
		}
	}
}
