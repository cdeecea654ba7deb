package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Conversations implements chat.Store.
type Conversations struct{ *DB }

var _ chat.Store = Conversations{}

// Conversations returns the store of conversations and their messages.
func (d *DB) Conversations() Conversations { return Conversations{d} }

// RecordFailure implements chat.Store.
func (c Conversations) RecordFailure(ctx context.Context, scope tenant.Scope, u chat.Upsert, reason string) (chat.Outcome, error) {
	var out chat.Outcome
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		out, err = ingestOnce(ctx, q, scope, u, func() (chat.Outcome, error) {
			return recordFailure(ctx, q, scope, u, reason)
		})
		return err
	})
	if err != nil {
		return chat.Outcome{}, fmt.Errorf("record failed import: %w", err)
	}
	return out, nil
}

func recordFailure(ctx context.Context, q *db.Queries, scope tenant.Scope, u chat.Upsert, reason string) (chat.Outcome, error) {
	stored, err := (&conversationWriter{q: q, scope: scope}).lock(ctx, u.Key())
	if err != nil {
		return chat.Outcome{}, err
	}
	id, err := newID()
	if err != nil {
		return chat.Outcome{}, err
	}
	result := importer.Rejected(importer.Entry{Name: u.ExternalID, Outcome: importer.EntryFailed, Reason: reason})
	importID, err := insertImport(q, scope, u.Platform, result)
	if err != nil {
		return chat.Outcome{}, err
	}
	out := chat.Outcome{ImportID: importID, Conversation: chat.Rejected(stored[u.Key()], u, id), Failed: true}
	appendAudit(ctx, q, scope, audit.ImportReject, importID)
	return out, nil
}

// Get implements chat.Store.
func (c Conversations) Get(ctx context.Context, scope tenant.Scope, id string) (chat.Conversation, []chat.Message, error) {
	return c.read(ctx, scope, func(q *db.Queries) (db.LiveConversation, error) {
		key, ok := parseID(id)
		if !ok {
			return db.LiveConversation{}, unknownConversation(id)
		}
		row, err := q.GetConversation(ctx, db.GetConversationParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: key})
		if errors.Is(err, pgx.ErrNoRows) {
			err = unknownConversation(id)
		}
		return row, err
	})
}

// Find implements chat.Store.
func (c Conversations) Find(ctx context.Context, scope tenant.Scope, key chat.Key) (chat.Conversation, []chat.Message, error) {
	found, messages, err := c.read(ctx, scope, func(q *db.Queries) (db.LiveConversation, error) {
		return q.FindConversation(ctx, db.FindConversationParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Platform: key.Platform, ExternalID: key.ExternalID,
		})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return chat.Conversation{}, nil, nil
	}
	return found, messages, err
}

// read returns the conversation of a row and its messages.
func (c Conversations) read(
	ctx context.Context, scope tenant.Scope, get func(*db.Queries) (db.LiveConversation, error),
) (out chat.Conversation, list []chat.Message, err error) {
	err = c.DB.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		row, err := get(q)
		if err != nil {
			return err
		}
		out = toConversation(row)
		if err := tenant.ReserveMemory(ctx, row.Bytes); err != nil {
			return err
		}
		messages, err := listMessages(ctx, q, scope, out.ID)
		list = messages[out.ID]
		return err
	})
	if err != nil {
		return chat.Conversation{}, nil, fmt.Errorf("read conversation: %w", err)
	}
	return out, list, nil
}

// List implements chat.Store.
func (c Conversations) List(ctx context.Context, scope tenant.Scope, f chat.ConversationFilter) ([]chat.Conversation, int, error) {
	p := db.ListConversationsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Platforms: chat.PlatformNames(f.Platform), Title: literalPattern(f.Title),
		FromTime: optionalTime(f.From), ToTime: optionalTime(f.To), PinnedOnly: f.PinnedOnly, Status: string(f.Status),
		Skip: integer(f.Offset), Page: integer(f.Limit),
	}
	if f.ImportID != "" {
		id, ok := parseID(f.ImportID)
		if !ok {
			return []chat.Conversation{}, 0, nil
		}
		p.ImportID = &id
	}
	var rows []db.LiveConversation
	var total int64
	err := c.DB.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		var err error
		if rows, err = q.ListConversations(ctx, p); err != nil {
			return err
		}
		total, err = q.CountConversations(ctx, db.CountConversationsParams{
			TenantID: p.TenantID, UserID: p.UserID, Platforms: p.Platforms, Title: p.Title, FromTime: p.FromTime,
			ToTime: p.ToTime, PinnedOnly: p.PinnedOnly, ImportID: p.ImportID, Status: p.Status,
		})
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list conversations: %w", err)
	}
	return collect(rows, toConversation), int(total), nil
}

// Delete implements chat.Store.
func (c Conversations) Delete(ctx context.Context, scope tenant.Scope, ids []string) (chat.Deleted, error) {
	var out chat.Deleted
	err := c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		out = chat.Deleted{}
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil {
			return orUnknown(err, scope.Tenant)
		}
		if err := c.delete(ctx, tx, q, scope, parseIDs(ids), &out); err != nil || len(out.IDs) == 0 {
			return err
		}
		appendAudit(ctx, q, scope, audit.ConversationDelete, out.IDs...)
		return nil
	})
	if err != nil {
		return chat.Deleted{}, fmt.Errorf("delete conversations: %w", err)
	}
	return out, nil
}

// delete deletes conversations, adds them to out and re-balances the quota. The
// transaction must hold the lock of the usage row.
func (c Conversations) delete(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, ids []string, out *chat.Deleted) error {
	freed, err := c.remove(ctx, tx, q, scope, ids, out)
	if err != nil || len(out.IDs) == 0 {
		return err
	}
	return c.DB.rebalanceOrEnqueue(ctx, tx, q, scope, freed)
}

// remove deletes conversations and adds them to out. It returns the number of those that were active.
func (c Conversations) remove(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, ids []string, out *chat.Deleted) (int64, error) {
	var storage int64
	var counts chat.StatusCounts
	for batch := range slices.Chunk(ids, deleteBatch) {
		p := db.DeleteConversationsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: batch}
		units, err := q.DeleteConversationUnits(ctx, db.DeleteConversationUnitsParams(p))
		if err != nil {
			return 0, fmt.Errorf("delete units: %w", err)
		}
		out.Units = append(out.Units, unitIDs(units)...)
		rows, err := q.DeleteConversations(ctx, p)
		if err != nil {
			return 0, fmt.Errorf("delete rows: %w", err)
		}
		for _, r := range rows {
			out.IDs = append(out.IDs, r.ID)
			storage -= r.Bytes
			counts.Move(chat.Status(r.Status), "")
		}
	}
	if len(out.IDs) == 0 {
		return 0, nil
	}
	reserve(q, scope, 0, storage, 0)
	addConversations(q, scope, counts)
	return -counts.Active, c.DB.insertSync(ctx, tx, q, scope.Tenant, out.Units)
}

func toConversation(r db.LiveConversation) chat.Conversation {
	c := chat.Conversation{
		ID: r.ID, ExternalID: r.ExternalID, Platform: r.Platform, PlatformName: r.PlatformName, Title: r.Title,
		Status: chat.Status(r.Status), Pinned: r.Pinned, MessageCount: int(r.MessageCount), TokenCount: int(r.TokenCount),
		Bytes: r.Bytes, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	if r.ExportedAt != nil {
		c.ExportedAt = r.ExportedAt.UTC()
	}
	return c
}

func unknownConversation(id string) error {
	return fault.New(fault.NotFound, "conversation %q not found", id)
}

// literalPattern escapes a text for ilike.
func literalPattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// optionalTime returns nil for the zero time.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orZero is the reverse of optionalTime.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
