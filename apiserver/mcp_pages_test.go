package apiserver

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// limits is a search that finds nothing and sends the number of results that it is asked for.
type limits chan int

func (l limits) Search(_ context.Context, _ tenant.Scope, _ placement.Location, q retrieve.Query) (retrieve.Result, error) {
	l <- q.Limit
	return retrieve.Result{}, nil
}

// All pages of a search come from the same ranking: it depends on its depth.
func TestMCPPagesHaveOneDepth(t *testing.T) {
	t.Parallel()
	asked := make(limits, 1)
	h := newTestServer(t, func(c *Config) {
		config := c.Chats.Config
		config.Searcher = asked
		c.Chats = chat.NewService(config)
	})
	a := h.assistant(t, h.alice, protocols[0])
	var got []int
	for _, page := range [][2]int{{5, 0}, {5, 5}, {20, 10}, {1, 99}} {
		a.ok(t, "search_chat_history", fmt.Sprintf(`{"query":"window","limit":%d,"skip":%d}`, page[0], page[1]))
		got = append(got, <-asked)
	}
	if d := cmp.Diff([]int{chat.MaxResults, chat.MaxResults, chat.MaxResults, chat.MaxResults}, got); d != "" {
		t.Errorf("depths (-want +got):\n%s", d)
	}
}
