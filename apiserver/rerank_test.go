package apiserver

import (
	"context"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tokens"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// unreranked finds results without its reranker, unless the query skips it.
type unreranked struct {
	fakeMemories
	degraded bool // the vector store is unavailable as well
}

func (u unreranked) Search(ctx context.Context, scope tenant.Scope, p placement.Location, q retrieve.Query) (retrieve.Result, error) {
	if !q.SkipRerank {
		trace.Degrade(ctx, trace.Rerank)
	}
	r, err := u.fakeMemories.Search(ctx, scope, p, q)
	r.Degraded = u.degraded
	return r, err
}

// A response that the reranker did not sort says so; one that must not be sorted does not.
func TestUnrerankedResponses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body     string
		degraded bool
		want     string
	}{
		"Rerank":  {`{"query":"window"}`, false, "rerank"},
		"Skipped": {`{"query":"window","skipRerank":true}`, false, ""},
		"Both":    {`{"query":"window"}`, true, "vector, rerank"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := newFakeStores()
			h := newTestServer(t, func(c *Config) {
				chats := fakeChats{stores}
				c.Chats = chat.NewService(chat.Config{Store: chats, Passages: chats, Searcher: unreranked{fakeMemories{stores}, tc.degraded},
					Index: fakeIndex{}, Embedders: retrieve.Embedders{0: fakeEmbedder{}}, CountTokens: tokens.CountUpTo})
			})
			got := h.ok(t, h.alice, "POST", "/api/chat-history/search", tc.body)
			if header := got.header.Get("X-Degraded"); header != tc.want {
				t.Errorf("X-Degraded: %q, want %q", header, tc.want)
			}
		})
	}
}
