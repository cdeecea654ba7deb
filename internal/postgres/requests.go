package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// answerOnce does a request and keeps what it put into answer, in the caller's
// transaction; for one that was done before, it only fills in the answer.
// Conflict when that one had another body. The answer is written as JSON and
// must hold ids and numbers only, never text. It comes before any lock: who
// sends a request twice at once waits here for the first.
func answerOnce[A any](ctx context.Context, q *db.Queries, scope tenant.Scope, r tenant.Request, answer *A, do func() error) error {
	if r == (tenant.Request{}) {
		return do()
	}
	known, err := answered(ctx, q, scope, r, answer)
	if err != nil || known {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	err = q.FinishRequest(ctx, db.FinishRequestParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Route: r.Route, Key: r.Key[:], Answer: text,
	})
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// answered notes the request, or fills in the answer of one that was done
// before and reports that.
func answered(ctx context.Context, q *db.Queries, scope tenant.Scope, r tenant.Request, answer any) (bool, error) {
	p := db.BeginRequestParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Route: r.Route, Key: r.Key[:], Body: r.Body[:]}
	n, err := q.BeginRequest(ctx, p)
	if err != nil {
		return false, fmt.Errorf("note request: %w", err)
	}
	if n > 0 {
		if err := q.ExpireRequests(ctx, db.ExpireRequestsParams{TenantID: p.TenantID, UserID: p.UserID}); err != nil {
			return false, fmt.Errorf("expire requests: %w", err)
		}
		return false, nil
	}
	row, err := q.RequestAnswer(ctx, db.RequestAnswerParams{TenantID: p.TenantID, UserID: p.UserID, Route: p.Route, Key: p.Key})
	if err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	if tenant.Hash(row.Body) != r.Body {
		return false, fault.New(fault.Conflict, "this idempotency key was used for another request within the last 24 hours; use a new key for a new request")
	}
	if err := json.Unmarshal(row.Answer, answer); err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	return true, nil
}

// ingestAnswer is what is kept of a request that sent a conversation. Its title
// is text, and comes from the request.
type ingestAnswer struct {
	ImportID     string    `json:"import"`
	Conversation string    `json:"conversation"`
	Messages     int       `json:"messages"`
	Tokens       int       `json:"tokens"`
	Added        int       `json:"added"`
	Replaced     int       `json:"replaced"`
	CreatedAt    time.Time `json:"created"`
	UpdatedAt    time.Time `json:"updated"`
}

// ingestOnce is answerOnce for conversations sent online. The state of one that
// was sent before is not told: it may have changed.
func ingestOnce(ctx context.Context, q *db.Queries, scope tenant.Scope, u chat.Upsert, do func() (chat.Outcome, error)) (chat.Outcome, error) {
	var a ingestAnswer
	var out chat.Outcome
	done := false
	err := answerOnce(ctx, q, scope, u.Request, &a, func() error {
		var err error
		done = true
		out, err = do()
		c := out.Conversation
		a = ingestAnswer{ImportID: out.ImportID, Conversation: c.ID, Messages: c.MessageCount, Tokens: c.TokenCount,
			Added: out.Added, Replaced: out.Replaced, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}
		return err
	})
	if err != nil || done {
		return out, err
	}
	title := u.Title
	if title == "" { // the one it had then
		now, err := lockConversation(ctx, q, scope, u)
		if err != nil {
			return chat.Outcome{}, err
		}
		title = now.Title
	}
	return chat.Outcome{ImportID: a.ImportID, Added: a.Added, Replaced: a.Replaced, Conversation: chat.Conversation{
		ID: a.Conversation, ExternalID: u.ExternalID, Platform: u.Platform, PlatformName: u.PlatformName, Title: title,
		MessageCount: a.Messages, TokenCount: a.Tokens, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}}, nil
}
