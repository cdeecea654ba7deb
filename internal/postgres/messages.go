package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// insertRows and insertBytes limit a statement that writes messages or units.
	insertRows  = 1000
	insertBytes = 1 << 20
)

var _ chat.PassageStore = (*DB)(nil)

// listMessages returns the messages of conversations, in order, by the ids of
// the conversations.
func listMessages(ctx context.Context, q *db.Queries, scope tenant.Scope, ids ...string) (map[string][]chat.Message, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := q.ListMessages(ctx, db.ListMessagesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	out := make(map[string][]chat.Message, len(ids))
	for _, r := range rows {
		out[r.Conversation] = append(out[r.Conversation], toMessage(r))
	}
	return out, nil
}

// writeMessages deletes the messages that changes cut, and writes the added and
// replaced ones.
func (w *conversationWriter) writeMessages(changes []chat.Change) {
	inserts := messageRows{write: w.q.Later().InsertMessages}
	updates := messageRows{write: func(p db.InsertMessagesParams) {
		w.q.Later().ReplaceMessages(db.ReplaceMessagesParams(p))
	}}
	for _, c := range changes {
		if c.Cuts() {
			w.q.Later().CutMessages(db.CutMessagesParams{
				TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User), ConversationID: c.After.ID, Kept: integer(c.Kept),
			})
		}
		inserts.add(w.scope, c, c.Added)
		updates.add(w.scope, c, c.Replaced)
	}
	inserts.flush()
	updates.flush()
}

// messageRows collects messages of several conversations for one statement.
type messageRows struct {
	write func(db.InsertMessagesParams)
	p     db.InsertMessagesParams
	bytes int
}

func (r *messageRows) add(scope tenant.Scope, c chat.Change, indexes []int) {
	r.p.TenantID, r.p.UserID = string(scope.Tenant), int64(scope.User)
	for _, i := range indexes {
		m := c.Messages[i]
		r.p.ConversationIds = append(r.p.ConversationIds, c.After.ID)
		r.p.Seqs = append(r.p.Seqs, integer(i))
		r.p.ExternalIds = append(r.p.ExternalIds, m.ExternalID)
		r.p.Senders = append(r.p.Senders, string(m.Sender))
		r.p.Texts = append(r.p.Texts, m.Text)
		r.p.Tokens = append(r.p.Tokens, integer(m.Tokens))
		r.p.Times = append(r.p.Times, m.CreatedAt)
		r.p.Exported = append(r.p.Exported, m.Exported)
		if r.bytes += len(m.Text); r.bytes >= insertBytes || len(r.p.Seqs) >= insertRows {
			r.flush()
		}
	}
}

func (r *messageRows) flush() {
	if len(r.p.Seqs) == 0 {
		return
	}
	p := r.p
	r.p, r.bytes = db.InsertMessagesParams{TenantID: p.TenantID, UserID: p.UserID}, 0
	r.write(p)
}

func toMessage(r db.ListMessagesRow) chat.Message {
	return chat.Message{
		Index: int(r.Seq), ExternalID: r.ExternalID, Sender: chat.Sender(r.Sender), Text: r.Text,
		Tokens: int(r.Tokens), CreatedAt: r.CreatedAt.UTC(), Exported: r.Exported,
	}
}

// Count implements chat.PassageStore.
func (d *DB) Count(ctx context.Context, scope tenant.Scope) (int64, error) {
	var n int64
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		var err error
		n, err = q.CountActiveConversations(ctx, db.CountActiveConversationsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count conversations: %w", err)
	}
	return n, nil
}

// HasPlatform implements chat.PassageStore.
func (d *DB) HasPlatform(ctx context.Context, scope tenant.Scope, names []string) (bool, error) {
	var known bool
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		var err error
		known, err = q.HasPlatform(ctx, db.HasPlatformParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Names: names})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read platforms: %w", err)
	}
	return known, nil
}

// Passages implements chat.PassageStore. It omits positions in conversations
// that are not active.
func (d *DB) Passages(ctx context.Context, scope tenant.Scope, positions []chat.Position, around int) ([]chat.Passage, error) {
	p := db.PassagesParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), Around: integer(around), Most: integer(2*around + 1),
		Bytes: chat.MaxContext(len(positions)),
	}
	var known []chat.Position
	for _, at := range positions {
		if id, ok := parseID(at.Conversation); ok && at.Start >= 0 && at.Start < at.End {
			known = append(known, at)
			p.Ids, p.Seqs = append(p.Ids, id), append(p.Seqs, integer(at.Index))
			p.Starts, p.Ends = append(p.Starts, integer(at.Start)), append(p.Ends, integer(at.End))
			p.Units = append(p.Units, int64(at.Unit))
		}
	}
	var rows []db.PassagesRow
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		var err error
		rows, err = q.Passages(ctx, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read passages: %w", err)
	}
	out := []chat.Passage{}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].N == rows[0].N {
			n++
		}
		if p, ok := toPassage(known[rows[0].N-1], rows[:n]); ok {
			out = append(out, p)
		}
		rows = rows[n:]
	}
	return out, nil
}

// Openings implements chat.PassageStore.
func (d *DB) Openings(ctx context.Context, scope tenant.Scope, ids []string) (map[string]string, error) {
	out := map[string]string{}
	err := d.readScope(ctx, scope, func(_ db.DBTX, q *db.Queries) error {
		rows, err := q.Openings(ctx, db.OpeningsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: parseIDs(ids)})
		for _, r := range rows {
			out[r.ConversationID] = r.Text
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read first messages: %w", err)
	}
	return out, nil
}

// toPassage returns the passage of the rows of one position, and false if they
// do not include a piece of a message there. The piece ends with a character even if the message was replaced.
func toPassage(at chat.Position, rows []db.PassagesRow) (chat.Passage, bool) {
	out := chat.Passage{Position: at, Conversation: toConversation(rows[0].LiveConversation), Context: []chat.Message{}}
	for _, r := range rows {
		m := toMessage(db.ListMessagesRow{
			Seq: r.Seq, ExternalID: r.ExternalID, Sender: r.Sender, Text: r.Text, Tokens: r.Tokens, CreatedAt: r.CreatedAt,
		})
		if r.Seq == r.PositionSeq {
			m.Text = strings.ToValidUTF8(string(r.Piece), "")
			out.Message, out.Length = m, int(r.Length)
		} else {
			out.Context = append(out.Context, m)
		}
	}
	return out, out.Message.Text != ""
}

func int32s(in []int) []int32 { return collect(in, integer[int]) }
