package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Upsert implements chat.Store.
func (c Conversations) Upsert(ctx context.Context, scope tenant.Scope, u chat.Upsert) (chat.Outcome, error) {
	var out chat.Outcome
	err := retryInserts(func() error {
		return c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
			var err error
			out, err = ingestOnce(ctx, q, scope, u, func() (chat.Outcome, error) {
				w := &conversationWriter{db: c.DB, tx: tx, q: q, scope: scope}
				return w.upsert(ctx, u)
			})
			return err
		})
	})
	if errors.Is(err, errConcurrentInsert) {
		err = errChanged
	}
	if err != nil {
		return chat.Outcome{}, fmt.Errorf("store conversation: %w", err)
	}
	return out, nil
}

// upsert locks the usage row before it writes anything. A conversation that is written before that lock deadlocks with
// the erasure of its user, which holds the lock while it deletes the user.
func (w *conversationWriter) upsert(ctx context.Context, u chat.Upsert) (chat.Outcome, error) {
	w.q.Later().AwaitUsage(string(w.scope.Tenant))
	if err := requireUser(ctx, w.q, w.scope); err != nil {
		return chat.Outcome{}, err
	}
	change, err := w.plan(ctx, u)
	if err != nil {
		return chat.Outcome{}, err
	}
	if change.TooLarge() {
		return chat.Outcome{}, chat.ErrTooLarge
	}
	result := importer.ResultOf(importer.Entry{Name: u.ExternalID}, change)
	if w.importID, err = insertImport(w.q, w.scope, u.Platform, result); err != nil {
		return chat.Outcome{}, err
	}
	if change.Changed() {
		if change.After, err = w.writeOne(ctx, change); err != nil {
			return chat.Outcome{}, err
		}
		appendAudit(ctx, w.q, w.scope, audit.ConversationStore, change.After.ID)
	}
	return chat.Outcome{
		ImportID: w.importID, Conversation: change.After, Added: len(change.Added), Replaced: len(change.Replaced),
	}, nil
}

// plan returns the change that an upsert makes to the stored conversation, which
// it locks.
func (w *conversationWriter) plan(ctx context.Context, u chat.Upsert) (chat.Change, error) {
	stored, err := w.lock(ctx, u.Key())
	if err != nil {
		return chat.Change{}, err
	}
	before := stored[u.Key()]
	var messages map[string][]chat.Message
	if before.ID != "" {
		if err := tenant.ReserveMemory(ctx, before.Bytes); err != nil {
			return chat.Change{}, err
		}
		if messages, err = listMessages(ctx, w.q, w.scope, before.ID); err != nil {
			return chat.Change{}, err
		}
	}
	id, err := newID()
	if err != nil {
		return chat.Change{}, err
	}
	return chat.Plan(before, messages[before.ID], u, id), nil
}

// writeOne writes a change. It returns the conversation with its state.
func (w *conversationWriter) writeOne(ctx context.Context, change chat.Change) (chat.Conversation, error) {
	var counts chat.StatusCounts
	if change.Created() { // nothing else changes the number of active conversations
		b, err := getBalance(ctx, w.q, w.scope)
		if err != nil {
			return chat.Conversation{}, err
		}
		change.After.Status = b.stateOfNew()
		counts.Move("", change.After.Status)
	}
	w.charge(change.Storage(), counts)
	if err := w.write(ctx, change); err != nil {
		return chat.Conversation{}, err
	}
	units, err := w.writeUnits(ctx, change)
	if err != nil {
		return chat.Conversation{}, err
	}
	return change.After, w.db.insertSync(ctx, w.tx, w.q, w.scope.Tenant, units)
}
