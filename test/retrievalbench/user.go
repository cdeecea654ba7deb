package retrievalbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

const (
	platform = "retrieval-bench"
	// mostResults is the number of passages to ask for.
	mostResults = 100
)

// user calls the API as one user.
type user struct{ *client.Client }

// retry calls f again while the server asks for a pause.
func retry[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for {
		out, err := f()
		refused, ok := errors.AsType[*client.StatusError](err)
		if !ok || refused.Status != http.StatusTooManyRequests {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(max(refused.RetryAfter, time.Second)):
		}
	}
}

// position is where a message is stored.
type position struct {
	conversation string
	index        int
}

// stored is a history in the user's account.
type stored struct {
	chats   []string            // the conversations' ids
	at      map[position]string // the id of each message in the dataset
	session map[string]string   // the conversation of each message
}

// load stores the conversations of a history and waits until all have vectors.
func (u user) load(ctx context.Context, h history) (stored, error) {
	out := stored{at: map[position]string{}, session: map[string]string{}}
	sent := slices.DeleteFunc(slices.Clone(h.chats), func(c conversation) bool { return len(c.messages) == 0 })
	for _, c := range sent {
		id, err := u.send(ctx, h.id, c)
		if err != nil {
			return out, fmt.Errorf("store %s of %s: %w", c.id, h.id, err)
		}
		out.chats = append(out.chats, id)
		for i, m := range c.messages {
			out.at[position{id, i}] = m.id
			out.session[m.id] = id
		}
	}
	if err := u.indexed(ctx); err != nil {
		return out, err
	}
	for i, c := range sent {
		if err := u.confirm(ctx, out.chats[i], c); err != nil {
			return out, fmt.Errorf("%s of %s cannot be measured: %w", c.id, h.id, err)
		}
	}
	return out, nil
}

// send stores a conversation and returns its id.
func (u user) send(ctx context.Context, history string, c conversation) (string, error) {
	in := client.IngestRequest{Platform: new(platform), Conversation: client.IngestConversation{
		ID: history + "/" + c.id, Title: c.id, CreatedAt: c.at,
	}}
	for _, m := range c.messages {
		in.Conversation.Messages = append(in.Conversation.Messages, client.IngestMessage{
			ID: m.id, Role: client.IngestMessageRole(m.role), Content: m.text, CreatedAt: m.at,
		})
	}
	answer, err := retry(ctx, func() (*client.Response[client.Ingested], error) { return u.IngestConversation(ctx, nil, in) })
	if err != nil {
		return "", err
	}
	return answer.Body.ConversationID, nil
}

// confirm fails unless exactly the messages of a conversation are stored and searched. The server accepts a
// conversation that is too long or exceeds the quota.
func (u user) confirm(ctx context.Context, id string, c conversation) error {
	answer, err := retry(ctx, func() (*client.Response[client.Conversation], error) {
		return u.GetConversation(ctx, &client.GetConversationParams{ConversationID: id})
	})
	if err != nil {
		return fmt.Errorf("read what is stored: %w", err)
	}
	if got := answer.Body.Status; got != client.ConversationStatusActive {
		return fmt.Errorf("its status is %s", got)
	}
	got := answer.Body.Messages
	if len(got) != len(c.messages) {
		return fmt.Errorf("%d messages are stored, %d were sent", len(got), len(c.messages))
	}
	for i, m := range c.messages {
		if got[i].Text != m.text {
			return fmt.Errorf("message %s is stored with another text", m.id)
		}
	}
	return nil
}

// indexed waits until searches are complete.
func (u user) indexed(ctx context.Context) error {
	for {
		answer, err := retry(ctx, func() (*client.Response[client.SearchResults], error) {
			return u.SearchConversations(ctx, client.SearchRequest{Query: "hello"})
		})
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		if !answer.Degraded() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// ask searches for a question.
func (u user) ask(ctx context.Context, s stored, q question, ranking client.SearchRequestRanking) (answer, error) {
	out := answer{question: q, sessions: s.session}
	in := client.SearchRequest{Query: q.text, Limit: new(int64(mostResults)), ContextChunks: new(int64(0)), Ranking: &ranking, MinScore: new(float64(0))}
	found, err := retry(ctx, func() (*client.Response[client.SearchResults], error) {
		began := time.Now()
		defer func() { out.took = time.Since(began) }()
		return u.SearchConversations(ctx, in)
	})
	if err != nil {
		return out, fmt.Errorf("ask %q: %w", q.text, err)
	}
	for _, r := range found.Body.Results {
		out.passages = append(out.passages, passage{
			id: s.at[position{r.ConversationID, int(r.MessageIndex)}], conversation: r.ConversationID, tokens: tokens.Count(r.Text), score: r.Score,
		})
	}
	return out, nil
}

// clear deletes the history.
func (u user) clear(ctx context.Context, s stored) error {
	_, err := retry(ctx, func() (*client.Response[client.DeletedConversations], error) {
		return u.DeleteConversations(ctx, client.DeleteConversationsRequest{Ids: s.chats})
	})
	if err != nil {
		return fmt.Errorf("delete conversations: %w", err)
	}
	return nil
}
