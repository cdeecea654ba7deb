package retrievalbench

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/api/client"
)

// The server accepts a conversation that it does not store, or only in part. Its questions must not be measured.
func TestLoadRefusesWhatIsNotStored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int // of reading the conversation
		stored client.Conversation
		want   string // in the error; none if empty
	}{
		"all messages": {200, conversationOf("active", "one", "two"), ""},
		"none":         {404, client.Conversation{}, "session_2 of h cannot be measured: read what is stored: conversation not found"},
		"one of two":   {200, conversationOf("active", "one"), "session_2 of h cannot be measured: 1 messages are stored, 2 were sent"},
		"another text": {200, conversationOf("active", "two", "one"), "session_2 of h cannot be measured: message a is stored with another text"},
		"excluded":     {200, conversationOf("excluded", "one", "two"), "session_2 of h cannot be measured: its status is excluded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := time.Date(2024, 3, 15, 0, 0, 0, 0, time.UTC)
			c := conversation{id: "session_2", at: at}
			c.add("a", "human", "one", at)
			c.add("b", "assistant", "two", at.AddDate(0, 0, 2))
			u, sent := fakeServer(t, tc.status, tc.stored)
			s, err := u.load(t.Context(), history{id: "h", chats: []conversation{{id: "session_1", at: at}, c}})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(map[position]string{{"stored", 0}: "a", {"stored", 1}: "b"}, s.at); d != "" {
				t.Errorf("positions: -want +got\n%s", d)
			}
			var times []time.Time
			for _, m := range sent.Conversation.Messages {
				times = append(times, m.CreatedAt)
			}
			if d := cmp.Diff([]time.Time{at, at.AddDate(0, 0, 2).Add(time.Second)}, times); d != "" {
				t.Errorf("times: -want +got\n%s", d)
			}
		})
	}
}

func conversationOf(status client.ConversationStatus, texts ...string) client.Conversation {
	c := client.Conversation{ID: "stored", Status: status}
	for i, text := range texts {
		c.Messages = append(c.Messages, client.ChatMessage{MessageIndex: int64(i), Text: text})
	}
	return c
}

// fakeServer accepts every conversation and returns what it received, and a fixed conversation to readers.
func fakeServer(t *testing.T, status int, stored client.Conversation) (user, *client.IngestRequest) {
	t.Helper()
	var received client.IngestRequest
	reply := func(w http.ResponseWriter, status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/chat-history/ingest/custom-online", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&received); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusOK, client.Ingested{ConversationID: "stored"})
	})
	mux.HandleFunc("POST /api/chat-history/search", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, client.SearchResults{})
	})
	mux.HandleFunc("GET /api/chat-history/conversation", func(w http.ResponseWriter, _ *http.Request) {
		if status != http.StatusOK {
			reply(w, status, map[string]string{"error": "conversation not found"})
			return
		}
		reply(w, status, stored)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return connect(t, server.URL, "token"), &received
}
