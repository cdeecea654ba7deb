package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// stored is a conversation as it is or will be stored; ID is "" before it is.
type stored struct {
	chat.Conversation
	bytes int64 // of its messages' texts
}

// Upsert implements chat.Store.
func (c Conversations) Upsert(ctx context.Context, scope tenant.Scope, u chat.Upsert, build chat.UnitBuilder) (chat.Outcome, error) {
	var out chat.Outcome
	err := c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		var err error
		out, err = ingestOnce(ctx, q, scope, u, func() (chat.Outcome, error) {
			// Before the conversation, as every writer does.
			if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
				return chat.Outcome{}, orUnknown(err, scope.Tenant)
			}
			x := upsert{db: c.DB, tx: tx, q: q, scope: scope, in: u, build: build}
			return x.run(ctx)
		})
		return err
	})
	if err != nil {
		return chat.Outcome{}, fmt.Errorf("store conversation: %w", err)
	}
	return out, nil
}

// upsert is one conversation being stored in a transaction that holds the
// usage row's lock.
type upsert struct {
	db    *DB
	tx    pgx.Tx
	q     *db.Queries
	scope tenant.Scope
	in    chat.Upsert
	build chat.UnitBuilder
}

func (x upsert) run(ctx context.Context) (chat.Outcome, error) {
	before, err := lockConversation(ctx, x.q, x.scope, x.in)
	if err != nil {
		return chat.Outcome{}, err
	}
	isNew := before.ID == ""
	var messages []chat.Message
	if !isNew {
		if messages, err = readMessages(ctx, x.q, x.scope, before.ID); err != nil {
			return chat.Outcome{}, fmt.Errorf("read messages: %w", err)
		}
	}
	m := merge(messages, x.in.Messages)
	after, err := describe(before, x.in, m.all)
	if err != nil {
		return chat.Outcome{}, err
	}
	changed := !same(before, after) || len(m.added)+len(m.replaced) > 0
	importID, err := insertImport(ctx, x.q, x.scope, x.in, importResult{conversation: after.ID, added: isNew, updated: changed})
	if err != nil {
		return chat.Outcome{}, err
	}
	out := chat.Outcome{ImportID: importID, Conversation: after.Conversation, Added: len(m.added), Replaced: len(m.replaced)}
	if !changed {
		return out, nil
	}
	if err := reserve(ctx, x.q, x.scope, 0, after.bytes-before.bytes); err != nil {
		return chat.Outcome{}, err
	}
	if err := x.writeConversation(ctx, importID, isNew, after); err != nil {
		return chat.Outcome{}, fmt.Errorf("write conversation: %w", err)
	}
	if err := writeMessages(ctx, x.q, x.scope, after.ID, m); err != nil {
		return chat.Outcome{}, fmt.Errorf("write messages: %w", err)
	}
	if err := x.db.grantRoom(ctx, x.tx, x.q, x.scope.Tenant); err != nil {
		return chat.Outcome{}, err
	}
	// With the state the re-balance gave it, which is that of its units.
	if after, err = lockConversation(ctx, x.q, x.scope, x.in); err != nil {
		return chat.Outcome{}, err
	}
	out.Conversation = after.Conversation
	units, err := x.writeUnits(ctx, isNew, after, m)
	if err != nil {
		return chat.Outcome{}, fmt.Errorf("write units: %w", err)
	}
	return out, x.db.insertSync(ctx, x.tx, x.scope.Tenant, units)
}

func (x upsert) writeConversation(ctx context.Context, importID string, isNew bool, c stored) error {
	if !isNew {
		return x.q.UpdateConversation(ctx, db.UpdateConversationParams{
			TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), ID: c.ID, PlatformName: c.PlatformName, Title: c.Title,
			MessageCount: int32(c.MessageCount), TokenCount: int64(c.TokenCount), Bytes: c.bytes, ImportID: importID,
			CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
		})
	}
	err := x.q.InsertConversation(ctx, db.InsertConversationParams{
		TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), ID: c.ID, ExternalID: c.ExternalID, Platform: c.Platform,
		PlatformName: c.PlatformName, Title: c.Title, Status: string(c.Status), MessageCount: int32(c.MessageCount),
		TokenCount: int64(c.TokenCount), Bytes: c.bytes, ImportID: importID, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	})
	if err != nil {
		return err
	}
	return x.q.AddConversationUsage(ctx, db.AddConversationUsageParams{TenantID: string(x.scope.Tenant), Blocked: 1})
}

// writeUnits puts new units in the place of those that changed and returns the
// ids whose place in the index changed. Units of a conversation that is not
// active are left out of the index until it becomes so.
func (x upsert) writeUnits(ctx context.Context, isNew bool, c stored, m merged) ([]retrieve.UnitID, error) {
	indexes := m.touched()
	var changed []retrieve.UnitID
	if !isNew {
		old, err := x.q.DeleteMessageUnits(ctx, db.DeleteMessageUnitsParams{
			TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), ConversationID: &c.ID, Seqs: int32s(indexes),
		})
		if err != nil {
			return nil, err
		}
		changed = unitIDs(old)
	}
	active := c.Status == chat.Active
	made, err := insertChatUnits(ctx, x.q, x.scope, c.ID, active, x.build(c.Conversation, m.all, indexes))
	if active {
		changed = append(changed, made...)
	}
	return changed, err
}

// lockConversation returns the conversation that the upsert is about, with ID
// "" when there is none yet.
func lockConversation(ctx context.Context, q *db.Queries, scope tenant.Scope, u chat.Upsert) (stored, error) {
	row, err := q.LockConversation(ctx, db.LockConversationParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Platform: u.Platform, ExternalID: u.ExternalID,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, fmt.Errorf("lock conversation: %w", err)
	}
	return stored{toConversation(row), row.Bytes}, nil
}

// describe returns the conversation as it is after the upsert, whose messages
// are all then.
func describe(before stored, u chat.Upsert, all []chat.Message) (stored, error) {
	c := newConversation(u)
	if before.ID != "" {
		c.ID, c.Status, c.Pinned = before.ID, before.Status, before.Pinned
		c.Title = cmp.Or(c.Title, before.Title)
		c.PlatformName = cmp.Or(c.PlatformName, before.PlatformName)
		if c.CreatedAt.IsZero() {
			c.CreatedAt = before.CreatedAt
		}
	} else {
		var err error
		if c.ID, err = newID(); err != nil {
			return stored{}, fmt.Errorf("make id: %w", err)
		}
	}
	c.MessageCount = len(all)
	for _, m := range all {
		c.TokenCount += m.Tokens
		c.bytes += int64(len(m.Text))
		if u.UpdatedAt.IsZero() && m.CreatedAt.After(c.UpdatedAt) {
			c.UpdatedAt = m.CreatedAt
		}
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = c.CreatedAt
	}
	return c, nil
}

// newConversation returns a conversation as it lands, without messages.
func newConversation(u chat.Upsert) stored {
	return stored{Conversation: chat.Conversation{
		ExternalID: u.ExternalID, Platform: u.Platform, PlatformName: u.PlatformName, Title: u.Title, Status: chat.Blocked,
		CreatedAt: storedTime(u.CreatedAt), UpdatedAt: storedTime(u.UpdatedAt),
	}}
}

// same reports whether two are stored alike.
func same(a, b stored) bool {
	created, updated := a.CreatedAt.Equal(b.CreatedAt), a.UpdatedAt.Equal(b.UpdatedAt)
	a.CreatedAt, a.UpdatedAt = b.CreatedAt, b.UpdatedAt
	return created && updated && a == b
}

// storedTime returns a time as it comes back from the database.
func storedTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}
