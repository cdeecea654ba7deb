package postgres

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// quote finds what the messages of a change repeat of recalled messages and memories.
func (w *conversationWriter) quote(ctx context.Context, c *chat.Change) error {
	quotations := c.Quotations()
	if len(quotations) == 0 {
		return nil
	}
	originals := make([][]retrieve.Original, len(quotations))
	if err := w.quotedMessages(ctx, c.After.ID, quotations, originals); err != nil {
		return fmt.Errorf("find quoted messages: %w", err)
	}
	if err := w.quotedMemories(ctx, quotations, originals); err != nil {
		return fmt.Errorf("find quoted memories: %w", err)
	}
	c.Quote(quotations, originals)
	return nil
}

// quotedMessages appends the messages that quotations in a conversation may quote.
func (w *conversationWriter) quotedMessages(ctx context.Context, conversation string, quotations []chat.Quotation, originals [][]retrieve.Original) error {
	p := db.QuotedMessagesParams{TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User), ConversationID: conversation}
	var of []int
	for i, q := range quotations {
		if q.Sender != retrieve.MemorySender {
			of = append(of, i)
			p.Days, p.Senders = append(p.Days, q.Day), append(p.Senders, q.Sender)
			p.Openings, p.Seqs = append(p.Openings, []byte(q.Opening)), append(p.Seqs, integer(q.Message))
		}
	}
	if len(of) == 0 {
		return nil
	}
	rows, err := w.q.QuotedMessages(ctx, p)
	for _, r := range rows {
		o := retrieve.Original{Title: r.Title, Text: r.Text}
		for i := range r.Starts {
			o.Pieces = append(o.Pieces, retrieve.Span{Start: int(r.Starts[i]), End: int(r.Ends[i])})
		}
		if len(o.Pieces) == 0 { // stored in this transaction, without units yet
			o.Pieces = retrieve.Split(r.Text)
		}
		originals[of[r.N-1]] = append(originals[of[r.N-1]], o)
	}
	return err
}

// quotedMemories appends the memories that quotations may quote.
func (w *conversationWriter) quotedMemories(ctx context.Context, quotations []chat.Quotation, originals [][]retrieve.Original) error {
	p := db.QuotedMemoriesParams{TenantID: string(w.scope.Tenant), UserID: int64(w.scope.User)}
	var of []int
	for i, q := range quotations {
		if q.Sender == retrieve.MemorySender {
			of, p.Openings = append(of, i), append(p.Openings, q.Opening)
		}
	}
	if len(of) == 0 {
		return nil
	}
	rows, err := w.q.QuotedMemories(ctx, p)
	for _, r := range rows {
		originals[of[r.N-1]] = append(originals[of[r.N-1]], retrieve.Original{Title: retrieve.MemoryHeading, Text: r.Text})
	}
	return err
}
