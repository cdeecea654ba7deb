package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/synthesize"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// recalls: the best excerpts within the token budget and the requested time range,
// preferring a time that the question mentions.
func (h *testServer) recalls(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "recall", "alice", false)
	for month := 1; month <= 9; month++ {
		body := fmt.Sprintf(`{"conversation":{"id":"%[1]d","title":"Trip %[1]d","createdAt":"2025-01-01T00:00:00Z","messages":[`+
			`{"id":"q%[1]d","role":"user","content":"Which train did I take to the city of Vienna?","createdAt":"2025-%02[1]d-05T10:00:00Z"},`+
			`{"id":"a%[1]d","role":"assistant","content":"You took night train number %[1]d00 to Vienna.","createdAt":"2025-%02[1]d-05T10:00:01Z"}]}}`, month)
		h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", body)
	}
	ask := func(body string) map[string]any {
		t.Helper()
		got := h.ok(t, token, "POST", "/api/chat-history/recall", body)
		return got.json(t)
	}
	for _, budget := range []int{1, 5, 20, 50, 150, 600, 2000} {
		got := ask(fmt.Sprintf(`{"query":"which night train to Vienna?","maxTokens":%d}`, budget))
		content, _ := got["content"].(string)
		sources, _ := got["sources"].([]any)
		if n := tokens.Count(content); n > budget || float64(n) != got["tokenCount"] || budget >= 50 && len(sources) == 0 {
			t.Errorf("within %d: %d tokens, said %v, %d sources", budget, n, got["tokenCount"], len(sources))
		}
	}
	all, _ := ask(`{"query":"night train number to Vienna","maxTokens":2000}`)["content"].(string)
	if strings.Count(all, "Which train did I take") != 1 || strings.Count(all, "night train number") != 9 {
		t.Errorf("what was asked nine times is there more than once, or an answer is missing: %s", all)
	}
	named, _ := ask(`{"query":"Which night train did I take to Vienna in May 2025?","maxTokens":600}`)["content"].(string)
	if !strings.HasPrefix(named, "Trip 5 (2025-05-05)") || !strings.Contains(named, "900") {
		t.Errorf("what the question names is not first, or the rest is hidden: %s", named)
	}
	within, _ := ask(`{"query":"night train to Vienna","maxTokens":2000,"after":"2025-03-01","before":"2025-05-05T10:00:01Z"}`)["content"].(string)
	if !strings.Contains(within, "300") || !strings.Contains(within, "400") || strings.Contains(within, "200") || strings.Contains(within, "500") {
		t.Errorf("between March and the fifth of May: %s", within)
	}
	for platform, want := range map[string]string{"typingmind": "all", "Custom": "custom", "all": "all"} {
		got := ask(fmt.Sprintf(`{"query":"night train number to Vienna","platform":%q}`, platform))
		if content, _ := got["content"].(string); content == "" || got["platform"] != want {
			t.Errorf("platform %s: searched %v, want %s; content %q", platform, got["platform"], want, content)
		}
	}
	many, _ := ask(`{"queries":[{"query":"train 300"},{"query":"train 400","maxTokens":40}]}`)["results"].([]any)
	if len(many) != 2 {
		t.Errorf("two questions: %v", many)
	}
	search := `{"query":"Which night train did I take to Vienna in July 2025?","limit":1,"contextChunks":0}`
	if got := h.ok(t, token, "POST", "/api/chat-history/search", search); !strings.Contains(got.body, `"timestamp":"2025-07`) {
		t.Errorf("search for July: %s", got.body)
	}
}

// A chat model writes the answer, and without one the excerpts are returned.
func TestRecallWithAChatModel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"Good":        {completes("By the window [2]."), `{"content":"By the window [1].","sources":[{"conversationId":"c-2","conversationTitle":"Trains","messageId":"2",`},
		"BadCitation": {completes("By the window [7]."), `"model":"extractive"`},
		"TooLong":     {completes(strings.Repeat("window ", 700) + "[1]"), `"model":"extractive"`},
		"Broken":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, `"model":"extractive"`},
		"RateLimited": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, `"model":"extractive"`},
		"Slow":        {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, `"model":"extractive"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // lets the server notice when the client disconnects
				test.handle(w, r)
			}))
			t.Cleanup(server.Close)
			model, err := synthesize.NewOpenAI(synthesize.Config{BaseURL: server.URL, Model: "small", Timeout: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			h := newTestServer(t, func(c *Config) {
				conf := c.Chats.Config
				conf.Synthesizer = model
				c.Chats = chat.NewService(conf)
			})
			h.ok(t, h.alice, "POST", "/api/chat-history/ingest/custom-online", ingestText)
			got := h.ok(t, h.alice, "POST", "/api/chat-history/inject", `{"query":"which seat?"}`)
			if !strings.Contains(got.body, test.want) || !strings.Contains(got.body, "indow") {
				t.Errorf("recalled %s, want %s", got.body, test.want)
			}
		})
	}
}

func completes(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}]}`, content)
	}
}
