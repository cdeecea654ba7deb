package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// unitWindow is the number of messages whose units are in memory at a time:
// units are several times the size of their messages.
const unitWindow = 100

// writeUnits replaces the units of the changed messages, which must be written, and returns the ids to
// synchronize with the index: all deleted units, and the new ones of active
// conversations. Other units are indexed when their conversation is activated.
func (w *conversationWriter) writeUnits(ctx context.Context, changes ...chat.Change) ([]retrieve.UnitID, error) {
	var out []retrieve.UnitID
	rows := unitRows{q: w.q, scope: w.scope}
	var tokens int64
	for _, c := range changes {
		indexes := c.Reindexed()
		if len(indexes) == 0 && !c.Cuts() {
			continue
		}
		if err := w.quote(ctx, &c); err != nil {
			return nil, err
		}
		var old []db.DeleteMessageUnitsRow
		if !c.Created() {
			var err error
			old, err = w.q.DeleteMessageUnits(ctx, db.DeleteMessageUnitsParams{
				TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User), ConversationID: &c.After.ID, Seqs: int32s(indexes),
				Kept: integer(c.Kept),
			})
			if err != nil {
				return nil, fmt.Errorf("delete units: %w", err)
			}
			out = append(out, collect(old, func(r db.DeleteMessageUnitsRow) retrieve.UnitID { return retrieve.UnitID(r.ID) })...)
		}
		units, known := c.Units(), vectorsOfUnchanged(c, old)
		for window := range slices.Chunk(indexes, unitWindow) {
			for _, u := range units(window) {
				vector, ok := known[pieceOf(u)]
				if !ok {
					tokens += w.db.tokensOf(u)
					vector = halfVector{encodeHalf(u.Vector), int16(u.Generation)}
				}
				if err := rows.add(ctx, c, u, vector); err != nil {
					return nil, fmt.Errorf("insert units: %w", err)
				}
			}
		}
	}
	if err := rows.flush(ctx); err != nil {
		return nil, fmt.Errorf("insert units: %w", err)
	}
	reserve(w.q, w.scope, 0, 0, tokens)
	return append(out, rows.active...), nil
}

// piece is the part of a message that a unit consists of.
type piece struct{ seq, start, end int32 }

func pieceOf(u retrieve.Unit) piece { return piece{integer(u.Seq), integer(u.Start), integer(u.End)} }

// halfVector is a vector in the format of the database, or nothing, with its generation.
type halfVector struct {
	content    []byte
	generation int16
}

// vectorsOfUnchanged returns the vectors of deleted units whose messages do not change. Their new units differ in the words of the messages around
// them, but have the same vectors.
func vectorsOfUnchanged(c chat.Change, deleted []db.DeleteMessageUnitsRow) map[piece]halfVector {
	written := c.Written()
	known := make(map[piece]halfVector, len(deleted))
	for _, r := range deleted {
		if _, changed := slices.BinarySearch(written, int(r.Seq)); !changed && r.Embedding != nil && r.GenerationID != nil {
			known[piece{r.Seq, r.SpanStart, r.SpanEnd}] = halfVector{r.Embedding, *r.GenerationID}
		}
	}
	return known
}

// unitRows collects units of several conversations for one statement.
type unitRows struct {
	q      *db.Queries
	scope  tenant.Scope
	p      db.InsertChatUnitsParams
	bytes  int
	texts  map[string]int32  // indexes into p.Texts, from 1
	active []retrieve.UnitID // inserted units of active conversations
}

func (r *unitRows) add(ctx context.Context, c chat.Change, u retrieve.Unit, vector halfVector) error {
	var parts [5]int32
	if len(u.Parts) > len(parts) {
		return fmt.Errorf("a unit has %d parts, the maximum is %d", len(u.Parts), len(parts))
	}
	// A statement has units of one state, so that its ids need no state.
	active := c.After.Status.Searched()
	if r.p.Active != active {
		if err := r.flush(ctx); err != nil {
			return err
		}
		r.p.Active = active
	}
	for i, text := range u.Parts {
		parts[i] = r.text(text)
	}
	for i, column := range []*[]int32{&r.p.Part1, &r.p.Part2, &r.p.Part3, &r.p.Part4, &r.p.Part5} {
		*column = append(*column, parts[i])
	}
	r.p.ConversationIds = append(r.p.ConversationIds, c.After.ID)
	r.p.Groups = append(r.p.Groups, u.Group)
	r.p.Seqs = append(r.p.Seqs, integer(u.Seq))
	r.p.Starts = append(r.p.Starts, integer(u.Start))
	r.p.Ends = append(r.p.Ends, integer(u.End))
	r.p.Pieces = append(r.p.Pieces, storedPiece(c.Messages[u.Seq].Text, u))
	r.p.Embeddings = append(r.p.Embeddings, vector.content)
	r.p.Generations = append(r.p.Generations, vector.generation)
	if r.bytes >= insertBytes || len(r.p.Seqs) >= insertRows {
		return r.flush(ctx)
	}
	return nil
}

// longMessage is the minimum length in bytes of a message whose units are stored with their text. Of a shorter one, a search may read the whole
// message for each of its candidates.
const longMessage = 16 << 10

// storedPiece returns the text of a unit of a long message, otherwise nothing.
func storedPiece(message string, u retrieve.Unit) string {
	if len(message) < longMessage {
		return ""
	}
	return message[u.Start:u.End]
}

// text returns the index of a text, which the statement contains once.
func (r *unitRows) text(text string) int32 {
	if n, ok := r.texts[text]; ok {
		return n
	}
	if r.texts == nil {
		r.texts = map[string]int32{}
	}
	r.p.Texts = append(r.p.Texts, indexedWords(text))
	r.bytes += len(text)
	n := integer(len(r.p.Texts))
	r.texts[text] = n
	return n
}

func (r *unitRows) flush(ctx context.Context) error {
	if len(r.p.Seqs) == 0 {
		return nil
	}
	p := r.p
	r.p, r.bytes, r.texts = db.InsertChatUnitsParams{Active: p.Active}, 0, nil
	p.TenantID, p.UserID = string(r.scope.Tenant), int64(r.scope.User)
	ids, err := r.q.InsertChatUnits(ctx, p)
	if p.Active {
		r.active = append(r.active, unitIDs(ids)...)
	}
	return err
}
