package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// answerOnce runs do once per idempotency key and stores answer in the same
// transaction. For a repeated request it only loads the stored answer. It returns
// Conflict if the earlier request had a different body. The answer is stored as
// JSON and must contain ids and numbers only, never text. It must run before any
// lock is acquired: a concurrent duplicate waits here for the first request.
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
		return fmt.Errorf("encode answer: %w", err)
	}
	err = q.FinishRequest(ctx, db.FinishRequestParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Route: r.Route, Key: r.Key[:], Answer: text,
	})
	if err != nil {
		return fmt.Errorf("store answer: %w", err)
	}
	return nil
}

// answered records the request, or loads the answer of an earlier one and reports
// true.
func answered(ctx context.Context, q *db.Queries, scope tenant.Scope, r tenant.Request, answer any) (bool, error) {
	p := db.BeginRequestParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Route: r.Route, Key: r.Key[:], Body: r.Body[:]}
	n, err := q.BeginRequest(ctx, p)
	if err != nil {
		return false, fmt.Errorf("record request: %w", err)
	}
	if n > 0 {
		if err := q.ExpireRequests(ctx, db.ExpireRequestsParams{TenantID: p.TenantID, UserID: p.UserID}); err != nil {
			return false, fmt.Errorf("delete expired requests: %w", err)
		}
		return false, nil
	}
	row, err := q.RequestAnswer(ctx, db.RequestAnswerParams{TenantID: p.TenantID, UserID: p.UserID, Route: p.Route, Key: p.Key})
	if err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	if tenant.Hash(row.Body) != r.Body {
		return false, tenant.ErrKeyReused
	}
	if err := json.Unmarshal(row.Answer, answer); err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	return true, nil
}

// ingestAnswer is the stored answer of a request that ingested a conversation. It
// has no title, because titles are text: the title comes from the request.
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

// ingestOnce is answerOnce for an online ingest. A repeated request does not return
// the conversation's status, which may have changed.
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
	if title == "" { // keep the stored title
		stored, err := (&conversationWriter{q: q, scope: scope}).lock(ctx, u.Key())
		if err != nil {
			return chat.Outcome{}, err
		}
		title = stored[u.Key()].Title
	}
	return chat.Outcome{ImportID: a.ImportID, Added: a.Added, Replaced: a.Replaced, Conversation: chat.Conversation{
		ID: a.Conversation, ExternalID: u.ExternalID, Platform: u.Platform, PlatformName: u.PlatformName, Title: title,
		MessageCount: a.Messages, TokenCount: a.Tokens, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}}, nil
}
