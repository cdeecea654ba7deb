package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Conversations is the database as the domain of chat history uses it.
type Conversations struct{ *DB }

var (
	_ chat.Store        = Conversations{}
	_ chat.PassageStore = (*DB)(nil)
)

// Conversations returns the store of conversations and their messages.
func (d *DB) Conversations() Conversations { return Conversations{d} }

// Get implements chat.Store.
func (c Conversations) Get(ctx context.Context, scope tenant.Scope, id string) (chat.Conversation, []chat.Message, error) {
	var out chat.Conversation
	var messages []chat.Message
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		key, ok := parseID(id)
		if !ok {
			return unknownConversation(id)
		}
		row, err := q.GetConversation(ctx, db.GetConversationParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: key})
		if errors.Is(err, pgx.ErrNoRows) {
			return unknownConversation(id)
		}
		if err != nil {
			return err
		}
		out = toConversation(row)
		messages, err = readMessages(ctx, q, scope, key)
		return err
	})
	if err != nil {
		return chat.Conversation{}, nil, fmt.Errorf("read conversation: %w", err)
	}
	return out, messages, nil
}

// List implements chat.Store.
func (c Conversations) List(ctx context.Context, scope tenant.Scope, f chat.ConversationFilter) ([]chat.Conversation, int, error) {
	p := db.ListConversationsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Platform: f.Platform, Title: literalPattern(f.Title),
		FromTime: optionalTime(f.From), ToTime: optionalTime(f.To), PinnedOnly: f.PinnedOnly, Status: string(f.Status),
		Skip: int32(f.Offset), Page: int32(f.Limit),
	}
	if f.ImportID != "" {
		id, ok := parseID(f.ImportID)
		if !ok {
			return []chat.Conversation{}, 0, nil
		}
		p.ImportID = &id
	}
	var rows []db.Conversation
	var total int64
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		if rows, err = q.ListConversations(ctx, p); err != nil {
			return err
		}
		total, err = q.CountListed(ctx, db.CountListedParams{
			TenantID: p.TenantID, UserID: p.UserID, Platform: p.Platform, Title: p.Title, FromTime: p.FromTime,
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
		return c.remove(ctx, tx, q, scope, parseIDs(ids), &out)
	})
	if err != nil {
		return chat.Deleted{}, fmt.Errorf("delete conversations: %w", err)
	}
	return out, nil
}

// remove removes conversations and adds what they were to out, in a
// transaction that holds the usage row's lock.
func (c Conversations) remove(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope, ids []string, out *chat.Deleted) error {
	var freed freed
	for batch := range slices.Chunk(ids, deleteBatch) {
		if err := deleteConversations(ctx, q, scope, batch, out, &freed); err != nil {
			return err
		}
	}
	if len(out.IDs) == 0 {
		return nil
	}
	if err := freed.release(ctx, q, scope); err != nil {
		return err
	}
	if err := c.DB.insertSync(ctx, tx, scope.Tenant, out.Units); err != nil {
		return err
	}
	return c.DB.grantRoom(ctx, tx, q, scope.Tenant)
}

// freed is what deleted conversations held.
type freed struct{ active, blocked, bytes int64 }

// release takes it off what the tenant and the user hold.
func (f freed) release(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	if err := reserve(ctx, q, scope, 0, -f.bytes); err != nil {
		return err
	}
	err := q.AddConversationUsage(ctx, db.AddConversationUsageParams{TenantID: string(scope.Tenant), Active: -f.active, Blocked: -f.blocked})
	if err != nil {
		return err
	}
	return q.AddUserConversations(ctx, db.AddUserConversationsParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Active: -f.active,
	})
}

// deleteConversations removes a batch and adds what it was and held to out and f.
func deleteConversations(ctx context.Context, q *db.Queries, scope tenant.Scope, ids []string, out *chat.Deleted, f *freed) error {
	p := db.DeleteConversationsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids}
	units, err := q.DeleteConversationUnits(ctx, db.DeleteConversationUnitsParams(p))
	if err != nil {
		return err
	}
	gone, err := q.DeleteConversations(ctx, p)
	if err != nil {
		return err
	}
	out.Units = append(out.Units, unitIDs(units)...)
	for _, g := range gone {
		out.IDs = append(out.IDs, g.ID)
		f.bytes += g.Bytes
		switch chat.Status(g.Status) {
		case chat.Active:
			f.active++
		case chat.Blocked:
			f.blocked++
		}
	}
	return nil
}

// grantRoom re-balances at once what fits a transaction and leaves the rest to
// a job.
func (d *DB) grantRoom(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID) error {
	n, err := d.rebalance(ctx, tx, q, id)
	if err != nil || n < rebalanceBatch {
		return err
	}
	return d.insertJob(ctx, tx, tenant.RebalanceArgs{Tenant: id})
}

// RecordFailure implements chat.Store. The conversation of the outcome is the
// one stored before, or one with an id that nothing has.
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
	stored, err := lockConversation(ctx, q, scope, u)
	if err != nil {
		return chat.Outcome{}, err
	}
	if stored.ID == "" {
		stored = newConversation(u)
		if stored.ID, err = newID(); err != nil {
			return chat.Outcome{}, err
		}
	}
	id, err := insertImport(ctx, q, scope, u, importResult{failure: reason})
	return chat.Outcome{ImportID: id, Conversation: stored.Conversation}, err
}

// importResult is what became of the one conversation of an import.
type importResult struct {
	conversation   string // its id; "" when it failed
	added, updated bool   // neither: it was as stored already
	failure        string // "" unless it failed
}

// insertImport notes an import of one that is over and returns its id.
func insertImport(ctx context.Context, q *db.Queries, scope tenant.Scope, u chat.Upsert, r importResult) (string, error) {
	id, err := newID()
	if err != nil {
		return "", fmt.Errorf("make id: %w", err)
	}
	p := db.InsertImportParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Platform: u.Platform, Status: "done", Errors: []byte("[]"),
	}
	outcome := chat.EntryUnchanged
	switch {
	case r.failure != "":
		if p.Errors, err = json.Marshal([]chat.ImportError{{Conversation: u.ExternalID, Error: r.failure}}); err != nil {
			return "", err
		}
		p.Status, p.Failed, p.Indexed, outcome = "failed", 1, 1, chat.EntryFailed
	case r.added:
		p.Imported, outcome = 1, chat.EntryImported
	case r.updated:
		p.Updated, outcome = 1, chat.EntryUpdated
	default:
		p.Skipped, p.Unchanged, p.Indexed = 1, 1, 1
	}
	if err := q.InsertImport(ctx, p); err != nil {
		return "", fmt.Errorf("record import: %w", err)
	}
	err = q.InsertLedger(ctx, db.InsertLedgerParams{
		TenantID: p.TenantID, UserID: p.UserID, ImportID: id, Ordinals: []int32{0}, Outcomes: []string{string(outcome)},
		ConversationIds: []string{r.conversation}, Reasons: []string{r.failure},
	})
	if err != nil {
		return "", fmt.Errorf("write ledger: %w", err)
	}
	return id, nil
}

func toConversation(r db.Conversation) chat.Conversation {
	return chat.Conversation{
		ID: r.ID, ExternalID: r.ExternalID, Platform: r.Platform, PlatformName: r.PlatformName, Title: r.Title,
		Status: chat.Status(r.Status), Pinned: r.Pinned, MessageCount: int(r.MessageCount), TokenCount: int(r.TokenCount),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

func unknownConversation(id string) error {
	return fault.New(fault.NotFound, "there is no conversation %q", id)
}

// literalPattern makes a text match itself with ilike.
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
