package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// messageBatch is the number of messages or units one statement writes.
const messageBatch = 1000

// merged is a conversation's messages after new ones came in.
type merged struct {
	all             []chat.Message
	added, replaced []int // indexes into all, in order
}

// merge replaces messages whose id is known and appends the others; those that
// did not come in stay. Of several with one id the last one counts.
func merge(before, in []chat.Message) merged {
	out := merged{all: slices.Clone(before)}
	place := make(map[string]int, len(before)+len(in))
	for i, m := range before {
		place[m.ExternalID] = i
	}
	replaced := map[int]bool{}
	for _, m := range in {
		m.CreatedAt = storedTime(m.CreatedAt)
		i, known := place[m.ExternalID]
		if !known {
			i = len(out.all)
			place[m.ExternalID] = i
			out.all = append(out.all, chat.Message{})
		}
		m.Index = i
		if i < len(before) {
			if old := before[i]; m.Sender == old.Sender && m.Text == old.Text && m.CreatedAt.Equal(old.CreatedAt) {
				m = old
				delete(replaced, i)
			} else {
				replaced[i] = true
			}
		}
		out.all[i] = m
	}
	for i := range out.all {
		switch {
		case i >= len(before):
			out.added = append(out.added, i)
		case replaced[i]:
			out.replaced = append(out.replaced, i)
		}
	}
	return out
}

// touched returns the indexes of the messages whose units are to be made: of
// the changed ones and of their neighbours, in order.
func (m merged) touched() []int {
	marked := make([]bool, len(m.all))
	for _, list := range [][]int{m.added, m.replaced} {
		for _, i := range list {
			for j := max(0, i-retrieve.Neighbours); j <= min(len(m.all)-1, i+retrieve.Neighbours); j++ {
				marked[j] = true
			}
		}
	}
	var out []int
	for i, yes := range marked {
		if yes {
			out = append(out, i)
		}
	}
	return out
}

func writeMessages(ctx context.Context, q *db.Queries, scope tenant.Scope, conversation string, m merged) error {
	for batch := range slices.Chunk(m.added, messageBatch) {
		if err := q.InsertMessages(ctx, messageColumns(scope, conversation, m.all, batch)); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(m.replaced, messageBatch) {
		p := messageColumns(scope, conversation, m.all, batch)
		err := q.ReplaceMessages(ctx, db.ReplaceMessagesParams{
			TenantID: p.TenantID, UserID: p.UserID, ConversationID: p.ConversationID, Seqs: p.Seqs, Senders: p.Senders,
			Texts: p.Texts, Tokens: p.Tokens, Times: p.Times,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func messageColumns(scope tenant.Scope, conversation string, all []chat.Message, indexes []int) db.InsertMessagesParams {
	p := db.InsertMessagesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ConversationID: conversation}
	for _, i := range indexes {
		m := all[i]
		p.Seqs = append(p.Seqs, int32(i))
		p.ExternalIds = append(p.ExternalIds, m.ExternalID)
		p.Senders = append(p.Senders, string(m.Sender))
		p.Texts = append(p.Texts, m.Text)
		p.Tokens = append(p.Tokens, int32(m.Tokens))
		p.Times = append(p.Times, m.CreatedAt)
	}
	return p
}

func insertChatUnits(
	ctx context.Context, q *db.Queries, scope tenant.Scope, conversation string, active bool, units []retrieve.Unit,
) ([]retrieve.UnitID, error) {
	var out []retrieve.UnitID
	for batch := range slices.Chunk(units, messageBatch) {
		p := db.InsertChatUnitsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ConversationID: conversation, Active: active,
		}
		for _, u := range batch {
			p.Groups = append(p.Groups, u.Group)
			p.Seqs = append(p.Seqs, int32(u.Seq))
			p.Starts = append(p.Starts, int32(u.Start))
			p.Ends = append(p.Ends, int32(u.End))
			p.Lexicals = append(p.Lexicals, u.Lexical)
			p.Embeddings = append(p.Embeddings, encodeHalf(u.Vector))
		}
		ids, err := q.InsertChatUnits(ctx, p)
		if err != nil {
			return nil, err
		}
		out = append(out, unitIDs(ids)...)
	}
	return out, nil
}

func readMessages(ctx context.Context, q *db.Queries, scope tenant.Scope, conversation string) ([]chat.Message, error) {
	rows, err := q.ListMessages(ctx, db.ListMessagesParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ConversationID: conversation,
	})
	return collect(rows, toMessage), err
}

func toMessage(r db.ListMessagesRow) chat.Message {
	return chat.Message{
		Index: int(r.Seq), ExternalID: r.ExternalID, Sender: chat.Sender(r.Sender), Text: r.Text,
		Tokens: int(r.Tokens), CreatedAt: r.CreatedAt.UTC(),
	}
}

// Count implements chat.PassageStore.
func (d *DB) Count(ctx context.Context, scope tenant.Scope) (int64, error) {
	var n int64
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		n, err = q.ActiveConversations(ctx, db.ActiveConversationsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		return orUnknown(err, scope.Tenant)
	})
	if err != nil {
		return 0, fmt.Errorf("count conversations: %w", err)
	}
	return n, nil
}

// Passages implements chat.PassageStore. Places of conversations that are no
// longer active are gone too.
func (d *DB) Passages(ctx context.Context, scope tenant.Scope, places []chat.Place, around int) ([]chat.Passage, error) {
	p := db.PassagesParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Around: int32(around)}
	for _, place := range places {
		if id, ok := parseID(place.Conversation); ok {
			p.Ids, p.Seqs = append(p.Ids, id), append(p.Seqs, int32(place.Index))
		}
	}
	var rows []db.PassagesRow
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
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
		if p, ok := toPassage(rows[:n]); ok {
			out = append(out, p)
		}
		rows = rows[n:]
	}
	return out, nil
}

// toPassage makes a passage of the rows of one place; false when the message
// itself is not among them.
func toPassage(rows []db.PassagesRow) (chat.Passage, bool) {
	out, found := chat.Passage{Conversation: toConversation(rows[0].Conversation), Context: []chat.Message{}}, false
	for _, r := range rows {
		m := toMessage(db.ListMessagesRow{
			Seq: r.Seq, ExternalID: r.ExternalID, Sender: r.Sender, Text: r.Text, Tokens: r.Tokens, CreatedAt: r.CreatedAt,
		})
		if r.Seq == r.PlaceSeq {
			out.Message, found = m, true
		} else {
			out.Context = append(out.Context, m)
		}
	}
	return out, found
}

func int32s(in []int) []int32 { return collect(in, func(i int) int32 { return int32(i) }) }
