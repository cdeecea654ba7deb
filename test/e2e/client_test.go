package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
)

var httpClient = &http.Client{Timeout: time.Minute}

// user calls an API server as one user, through the public client package.
type user struct{ *client.Client }

// connect returns the user of a token, connected to the platform's API server.
func connect(t *testing.T, token string) user {
	t.Helper()
	return connectTo(t, platform.env["MNEMO_URL"], token)
}

func connectTo(t *testing.T, url, token string) user {
	t.Helper()
	c, err := client.New(url, token, client.WithHTTPClient(httpClient))
	if err != nil {
		t.Fatal(err)
	}
	return user{c}
}

func (u user) remember(t *testing.T, text string) string {
	t.Helper()
	out, err := u.CreateMemory(t.Context(), nil, client.CreateMemoryRequest{Text: text})
	if err != nil {
		t.Fatalf("remember %q: %v", text, err)
	}
	return out.Body.MemoryID
}

func (u user) forget(t *testing.T, id string) {
	t.Helper()
	if _, err := u.DeleteMemory(t.Context(), id); err != nil {
		t.Fatalf("forget %s: %v", id, err)
	}
}

// memories lists all of the user's memories, oldest first.
func (u user) memories(t *testing.T) []string {
	t.Helper()
	out, err := u.ListMemories(t.Context(), &client.ListMemoriesParams{All: new(true)})
	if err != nil {
		t.Fatalf("list memories: %v", err)
	}
	return idsOf(out.Body)
}

// recall searches memories. degraded reports that the search did not use the vector store.
func (u user) recall(t *testing.T, query string) (found []string, degraded bool) {
	t.Helper()
	return u.search(t, &client.ListMemoriesParams{Query: &query})
}

func (u user) search(t *testing.T, params *client.ListMemoriesParams) (found []string, degraded bool) {
	t.Helper()
	out, err := u.ListMemories(t.Context(), params)
	if err != nil {
		t.Fatalf("search memories: %v", err)
	}
	return idsOf(out.Body), out.Degraded()
}

func idsOf(list client.MemoryList) []string {
	ids := make([]string, len(list.Memories))
	for i, m := range list.Memories {
		ids[i] = m.ID
	}
	return ids
}

// conversation returns a conversation of alternating messages, a minute apart.
func conversation(id, title string, at time.Time, texts ...string) client.IngestRequest {
	out := client.IngestRequest{Conversation: client.IngestConversation{ID: id, Title: title, CreatedAt: at}}
	for i, text := range texts {
		role := client.IngestMessageRoleUser
		if i%2 == 1 {
			role = client.IngestMessageRoleAssistant
		}
		out.Conversation.Messages = append(out.Conversation.Messages, client.IngestMessage{
			ID: fmt.Sprintf("%s-%d", id, i), Role: role, Content: text, CreatedAt: at.Add(time.Duration(i) * time.Minute)})
	}
	return out
}

func (u user) ingest(t *testing.T, id, title string, at time.Time, texts ...string) string {
	t.Helper()
	out, err := u.IngestConversation(t.Context(), nil, conversation(id, title, at, texts...))
	if err != nil {
		t.Fatalf("ingest %q: %v", title, err)
	}
	return out.Body.ConversationID
}

func (u user) count(t *testing.T) int64 {
	t.Helper()
	out, err := u.CountConversations(t.Context())
	if err != nil {
		t.Fatalf("count conversations: %v", err)
	}
	return out.Body.Count
}

// passages searches conversations and returns the ids of the results.
func (u user) passages(t *testing.T, query string) []string {
	t.Helper()
	out, err := u.SearchConversations(t.Context(), client.SearchRequest{Query: query})
	if err != nil {
		t.Fatalf("search conversations: %v", err)
	}
	ids := make([]string, len(out.Body.Results))
	for i, r := range out.Body.Results {
		ids[i] = r.ConversationID
	}
	return ids
}

// wantStatus fails the test unless err is a response with the status.
func wantStatus(t *testing.T, what string, err error, status int) {
	t.Helper()
	if client.StatusOf(err) != status {
		t.Errorf("%s: %v, want status %d", what, err, status)
	}
}
