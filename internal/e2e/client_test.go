package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// client speaks to the API server as one user.
type client struct{ token string }

var httpClient = &http.Client{Timeout: time.Minute}

// do sends a request and decodes the answer into out, whatever its status.
func (c client) do(t *testing.T, method, path string, body, out any) *http.Response {
	t.Helper()
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		payload = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, platform.env["MNEMO_URL"]+path, payload)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatalf("%s %s: %d %s: %v", method, path, response.StatusCode, raw, err)
		}
	}
	if response.StatusCode >= 500 {
		t.Logf("%s %s: %d %s", method, path, response.StatusCode, raw)
	}
	return response
}

// want is do that fails unless the status is 200.
func (c client) want(t *testing.T, method, path string, body, out any) *http.Response {
	t.Helper()
	response := c.do(t, method, path, body, out)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d", method, path, response.StatusCode)
	}
	return response
}

func (c client) remember(t *testing.T, text string) string {
	t.Helper()
	var out struct{ Done, MemoryID string }
	c.want(t, "POST", "/api/memory", map[string]any{"text": text}, &out)
	if out.Done != "ok" || out.MemoryID == "" {
		t.Fatalf("create memory answered %+v", out)
	}
	return out.MemoryID
}

type memories struct {
	Memories []struct{ ID, Text string }
	NextSkip *int
}

func (m memories) ids() []string {
	ids := make([]string, 0, len(m.Memories))
	for _, memory := range m.Memories {
		ids = append(ids, memory.ID)
	}
	return ids
}

// recall searches memories; degraded says that the answer was made without the vector store.
func (c client) recall(t *testing.T, query string) (found memories, degraded bool) {
	t.Helper()
	response := c.want(t, "GET", "/api/v2/memory?query="+url.QueryEscape(query), nil, &found)
	return found, response.Header.Get("X-Degraded") == "vector"
}

type message struct {
	ID        string    `json:"id"`
	Role      string    `json:"role"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"createdAt"`
}

func (c client) ingest(t *testing.T, id, title string, at time.Time, texts ...string) string {
	t.Helper()
	messages := make([]message, 0, len(texts))
	for i, text := range texts {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		messages = append(messages, message{ID: id + "-" + string(rune('a'+i)), Role: role, Content: text, CreatedAt: at.Add(time.Duration(i) * time.Minute)})
	}
	var out struct {
		Queued         bool
		ConversationID string
	}
	c.want(t, "POST", "/api/chat-history/ingest/custom-online", map[string]any{
		"conversation": map[string]any{"id": id, "title": title, "createdAt": at, "messages": messages},
	}, &out)
	if !out.Queued || out.ConversationID == "" {
		t.Fatalf("ingest answered %+v", out)
	}
	return out.ConversationID
}

func (c client) count(t *testing.T) int {
	t.Helper()
	var out struct{ Count int }
	c.want(t, "GET", "/api/chat-history/count", nil, &out)
	return out.Count
}

// passages searches conversations and returns the ids of those found.
func (c client) passages(t *testing.T, query string) []string {
	t.Helper()
	var out struct {
		Results []struct{ ConversationID string }
	}
	c.want(t, "POST", "/api/chat-history/search", map[string]any{"query": query}, &out)
	ids := make([]string, 0, len(out.Results))
	for _, r := range out.Results {
		ids = append(ids, r.ConversationID)
	}
	return ids
}
