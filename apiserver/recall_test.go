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
	h.findsNothing(t, token)
	many, _ := ask(`{"queries":[{"query":"train 300"},{"query":"train 400","maxTokens":40}]}`)["results"].([]any)
	if len(many) != 2 {
		t.Errorf("two questions: %v", many)
	}
	search := `{"query":"Which night train did I take to Vienna in July 2025?","limit":1,"contextChunks":0}`
	if got := h.ok(t, token, "POST", "/api/chat-history/search", search); !strings.Contains(got.body, `"timestamp":"2025-07`) {
		t.Errorf("search for July: %s", got.body)
	}
}

// findsNothing: no route returns noise for a query that matches nothing, unless
// minScore asks for it.
func (h *testServer) findsNothing(t *testing.T, token string) {
	t.Helper()
	for _, text := range []string{"2026-01-02 I am allergic to peanuts.", "2026-01-03 The spare key is under the blue pot.", "2026-01-04 My knee hurts after running."} {
		h.ok(t, token, "POST", "/api/memory", fmt.Sprintf(`{"text":%q}`, text))
	}
	const nothing = `{"query":"kjqwx vbnzzt"`
	for _, test := range []struct{ method, path, body, empty string }{
		{"POST", "/api/chat-history/recall", nothing + `}`, `"content":""`},
		{"POST", "/api/chat-history/search", nothing + `}`, `"results":[]`},
		{"GET", "/api/v2/memory?query=kjqwx+vbnzzt", "", `"memories":[]`},
	} {
		if got := h.ok(t, token, test.method, test.path, test.body); !strings.Contains(got.body, test.empty) {
			t.Errorf("%s finds %s", test.path, got.body)
		}
	}
	for _, test := range []struct{ method, path, body, empty string }{
		{"POST", "/api/chat-history/recall", nothing + `,"minScore":0}`, `"content":""`},
		{"POST", "/api/chat-history/search", nothing + `,"minScore":0}`, `"results":[]`},
		{"GET", "/api/v2/memory?minScore=0&query=kjqwx+vbnzzt", "", `"memories":[]`},
	} {
		if got := h.ok(t, token, test.method, test.path, test.body); strings.Contains(got.body, test.empty) {
			t.Errorf("%s with minScore 0 finds %s", test.path, got.body)
		}
	}
	h.searchesBoth(t, token)
	h.findsNames(t, token)
	allergy := h.ok(t, token, "GET", "/api/v2/memory?query=what+am+I+allergic+to%3F", "").json(t)
	list, _ := allergy["memories"].([]any)
	if len(list) == 0 {
		t.Fatal("the allergy is not found")
	}
	first, _ := list[0].(map[string]any)
	if text, _ := first["text"].(string); !strings.Contains(text, "peanuts") {
		t.Errorf("first = %v, want the allergy", first)
	}
	if score, _ := first["score"].(float64); score < 0.5 {
		t.Errorf("score of the allergy = %v, want at least 0.5", first["score"])
	}
}

// findsNames: the words of a conversation's title and of a bucket's name find what contains none of them.
func (h *testServer) findsNames(t *testing.T, token string) {
	t.Helper()
	h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online", `{"conversation":{"id":"named","title":"Zanzibar itinerary","createdAt":"2025-02-01T00:00:00Z","messages":[`+
		`{"id":"1","role":"user","content":"Which vaccinations are necessary?","createdAt":"2025-02-01T10:00:00Z"},`+
		`{"id":"2","role":"assistant","content":"Hepatitis A and typhoid.","createdAt":"2025-02-01T10:00:01Z"}]}}`)
	got := h.ok(t, token, "POST", "/api/chat-history/recall", `{"query":"my Zanzibar itinerary"}`)
	if content, _ := got.json(t)["content"].(string); !strings.HasPrefix(content, "Zanzibar itinerary (2025-02-01)") {
		t.Errorf("recall by the title: %s", got.body)
	}
	bucket, _ := h.ok(t, token, "POST", "/api/buckets", `{"name":"Packing list"}`).json(t)["id"].(string)
	h.ok(t, token, "POST", "/api/memory", fmt.Sprintf(`{"text":"2026-01-05 A head torch and three pairs of wool socks.","bucketId":%q}`, bucket))
	got = h.ok(t, token, "GET", "/api/v2/memory?query=my+packing+list", "")
	list, _ := got.json(t)["memories"].([]any)
	if len(list) == 0 {
		t.Fatal("the memory in the bucket is not found by the name of the bucket")
	}
	first, _ := list[0].(map[string]any)
	if metadata, _ := first["metadata"].(map[string]any); metadata["bucketName"] != "Packing list" {
		t.Errorf("search by the name of a bucket: %s", got.body)
	}
}

// searchesBoth: one ranking has memories and messages, and recall includes memories on
// request.
func (h *testServer) searchesBoth(t *testing.T, token string) {
	t.Helper()
	first := func(body string) (kind string) {
		results, _ := h.ok(t, token, "POST", "/api/search", body).json(t)["results"].([]any)
		if len(results) == 0 {
			return ""
		}
		r, _ := results[0].(map[string]any)
		kind, _ = r["type"].(string)
		return kind
	}
	for body, want := range map[string]string{
		`{"query":"what am I allergic to?"}`:                           "memory",
		`{"query":"what am I allergic to?","include":["memories"]}`:    "memory",
		`{"query":"which night train to Vienna?"}`:                     "chat",
		`{"query":"kjqwx vbnzzt"}`:                                     "",
		`{"query":"which night train to Vienna?","include":["chats"]}`: "chat",
		`{"query":"kjqwx vbnzzt","minScore":0,"include":["memories"]}`: "memory",
	} {
		if got := first(body); got != want {
			t.Errorf("first result of %s is of type %q, want %q", body, got, want)
		}
	}
	for include, want := range map[string]bool{`["memories"]`: true, `["memories","chats"]`: true, `["chats"]`: false, `[]`: false} {
		got := h.ok(t, token, "POST", "/api/chat-history/recall", `{"query":"what am I allergic to?","include":`+include+`}`)
		if strings.Contains(got.body, "peanuts") != want || strings.Contains(got.body, `"memoryId":"`) != want {
			t.Errorf("recall from %s: memory included %v, want %v: %s", include, !want, want, got.body)
		}
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
