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

// respondOnce runs do once per idempotency key and stores response in the same
// transaction. For a repeated request it only loads the stored response. It returns
// Conflict if the earlier request had a different body. The response is stored as
// JSON and must contain ids and numbers only, never text. It must run before any
// lock is acquired: a concurrent duplicate waits here for the first request.
func respondOnce[A any](ctx context.Context, q *db.Queries, scope tenant.Scope, r tenant.Request, response *A, do func() error) error {
	if r == (tenant.Request{}) {
		return do()
	}
	known, err := findResponse(ctx, q, scope, r, response)
	if err != nil || known {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	text, err := json.Marshal(response)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	q.Later().FinishRequest(db.FinishRequestParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Route: r.Route, Key: r.Key[:], Answer: text,
	})
	return nil
}

// findResponse records the request, or loads the response of an earlier one and
// reports true.
func findResponse(ctx context.Context, q *db.Queries, scope tenant.Scope, r tenant.Request, response any) (bool, error) {
	p := db.BeginRequestParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Route: r.Route, Key: r.Key[:], Body: r.Body[:]}
	n, err := q.BeginRequest(ctx, p)
	if err != nil {
		return false, fmt.Errorf("record request: %w", err)
	}
	if n > 0 {
		q.Later().ExpireRequests(db.ExpireRequestsParams{TenantID: p.TenantID, UserID: p.UserID})
		return false, nil
	}
	row, err := q.RequestAnswer(ctx, db.RequestAnswerParams{TenantID: p.TenantID, UserID: p.UserID, Route: p.Route, Key: p.Key})
	if err != nil {
		return false, fmt.Errorf("read response: %w", err)
	}
	if tenant.Hash(row.Body) != r.Body {
		return false, tenant.ErrKeyReused
	}
	if err := json.Unmarshal(row.Answer, response); err != nil {
		return false, fmt.Errorf("read response: %w", err)
	}
	return true, nil
}

// ingestResponse is the stored response of a request that ingested a conversation. It
// has no title, because titles are text: the title comes from the request.
type ingestResponse struct {
	ImportID     string    `json:"import"`
	Conversation string    `json:"conversation"`
	Messages     int       `json:"messages"`
	Tokens       int       `json:"tokens"`
	Added        int       `json:"added"`
	Replaced     int       `json:"replaced"`
	Failed       bool      `json:"failed,omitempty"`
	CreatedAt    time.Time `json:"created"`
	UpdatedAt    time.Time `json:"updated"`
}

// ingestOnce is respondOnce for an online ingest. A repeated request does not return
// the conversation's status, which may have changed.
func ingestOnce(ctx context.Context, q *db.Queries, scope tenant.Scope, u chat.Upsert, do func() (chat.Outcome, error)) (chat.Outcome, error) {
	var a ingestResponse
	var out chat.Outcome
	done := false
	err := respondOnce(ctx, q, scope, u.Request, &a, func() error {
		var err error
		done = true
		out, err = do()
		c := out.Conversation
		a = ingestResponse{ImportID: out.ImportID, Conversation: c.ID, Messages: c.MessageCount, Tokens: c.TokenCount,
			Added: out.Added, Replaced: out.Replaced, Failed: out.Failed, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}
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
	return chat.Outcome{ImportID: a.ImportID, Added: a.Added, Replaced: a.Replaced, Failed: a.Failed, Conversation: chat.Conversation{
		ID: a.Conversation, ExternalID: u.ExternalID, Platform: u.Platform, PlatformName: u.PlatformName, Title: title,
		MessageCount: a.Messages, TokenCount: a.Tokens, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}}, nil
}
