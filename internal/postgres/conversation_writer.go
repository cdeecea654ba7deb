package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// errConcurrentInsert is returned when another transaction inserted one of the
// new conversations first. The caller retries in a new transaction, which finds
// the conversation stored.
var errConcurrentInsert = errors.New("a conversation was inserted concurrently")

// retryInserts runs store again after errConcurrentInsert, which it returns if all attempts fail.
func retryInserts(store func() error) error {
	var err error
	for range attempts {
		if err = store(); !errors.Is(err, errConcurrentInsert) {
			break
		}
	}
	return err
}

// conversationWriter writes changes of one user's conversations in a
// transaction. Every write of messages, whether one conversation sent online or
// a batch of an import, uses it.
//
// The caller decides when to call charge, which locks the tenant's usage row.
// Short transactions of online requests lock that row first, before any
// conversation. The long transactions of imports lock it last, so that online
// requests do not wait for them. If both lock the same conversation, PostgreSQL
// detects the deadlock and transact retries the transaction it aborts.
type conversationWriter struct {
	db       *DB
	tx       pgx.Tx
	q        *db.Queries
	scope    tenant.Scope
	importID string // recorded with the conversations that change
}

// lock locks stored conversations and returns them by key.
func (w *conversationWriter) lock(ctx context.Context, keys ...chat.Key) (map[chat.Key]chat.Conversation, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	p := db.LockConversationsParams{TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User)}
	for _, k := range keys {
		p.Platforms, p.ExternalIds = append(p.Platforms, k.Platform), append(p.ExternalIds, k.ExternalID)
	}
	rows, err := w.q.LockConversations(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("lock conversations: %w", err)
	}
	out := make(map[chat.Key]chat.Conversation, len(rows))
	for _, r := range rows {
		c := toConversation(db.LiveConversation(r))
		out[c.Key()] = c
	}
	return out, nil
}

// charge adds the storage and the new conversations of changes to the tenant's
// usage. The transaction fails with Forbidden when that exceeds the storage quota.
func (w *conversationWriter) charge(storage int64, counts chat.StatusCounts) {
	reserve(w.q, w.scope, 0, storage, 0)
	addConversations(w.q, w.scope, counts)
}

// write writes the conversations and messages of changes.
func (w *conversationWriter) write(ctx context.Context, changes ...chat.Change) error {
	var inserts []chat.Conversation
	for _, c := range changes {
		if c.Created() {
			inserts = append(inserts, c.After)
		} else {
			w.update(c.After)
		}
	}
	if err := w.insert(ctx, inserts); err != nil {
		return err
	}
	w.writeMessages(changes)
	return nil
}

func (w *conversationWriter) update(c chat.Conversation) {
	w.q.Later().UpdateConversation(db.UpdateConversationParams{
		TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User), ID: c.ID, PlatformName: c.PlatformName, Title: c.Title,
		MessageCount: integer(c.MessageCount), TokenCount: int64(c.TokenCount), Bytes: c.Bytes, ImportID: w.importID,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, ExportedAt: optionalTime(c.ExportedAt),
	})
}

func (w *conversationWriter) insert(ctx context.Context, list []chat.Conversation) error {
	if len(list) == 0 {
		return nil
	}
	p := db.InsertConversationsParams{TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User), ImportID: w.importID}
	for _, c := range list {
		p.Ids = append(p.Ids, c.ID)
		p.ExternalIds = append(p.ExternalIds, c.ExternalID)
		p.Platforms = append(p.Platforms, c.Platform)
		p.PlatformNames = append(p.PlatformNames, c.PlatformName)
		p.Titles = append(p.Titles, c.Title)
		p.Statuses = append(p.Statuses, string(c.Status))
		p.Pinned = append(p.Pinned, c.Pinned)
		p.MessageCounts = append(p.MessageCounts, integer(c.MessageCount))
		p.TokenCounts = append(p.TokenCounts, int64(c.TokenCount))
		p.Bytes = append(p.Bytes, c.Bytes)
		p.Created = append(p.Created, c.CreatedAt)
		p.Updated = append(p.Updated, c.UpdatedAt)
		p.Exported = append(p.Exported, c.ExportedAt)
	}
	n, err := w.q.InsertConversations(ctx, p)
	if err != nil {
		return fmt.Errorf("insert conversations: %w", err)
	}
	if n < int64(len(list)) {
		return errConcurrentInsert
	}
	return nil
}
