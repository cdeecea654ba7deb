package postgres

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

const (
	// insertRows and insertBytes bound what one statement inserts.
	insertRows  = 1000
	insertBytes = 1 << 20
	// unitWindow is of how many messages the units are made at a time: they
	// take several times the texts' size.
	unitWindow = 100
)

// insert stores new conversations with their messages and units. Units stay
// out of the index until their conversation is given room.
func (l *landing) insert(ctx context.Context, fresh []incoming) error {
	if len(fresh) == 0 {
		return nil
	}
	if err := l.insertConversations(ctx, fresh); err != nil {
		return err
	}
	m := messageWriter{l: l}
	u := unitWriter{l: l}
	for _, c := range fresh {
		if err := m.add(ctx, c); err != nil {
			return fmt.Errorf("write messages: %w", err)
		}
	}
	if err := m.flush(ctx); err != nil {
		return fmt.Errorf("write messages: %w", err)
	}
	for _, c := range fresh {
		if err := u.add(ctx, c); err != nil {
			return fmt.Errorf("write units: %w", err)
		}
	}
	if err := u.flush(ctx); err != nil {
		return fmt.Errorf("write units: %w", err)
	}
	return nil
}

func (l *landing) insertConversations(ctx context.Context, fresh []incoming) error {
	p := db.LandConversationsParams{TenantID: string(l.run.Tenant), UserID: int64(l.run.User), ImportID: l.run.ID}
	for _, c := range fresh {
		p.Ids = append(p.Ids, c.ID)
		p.ExternalIds = append(p.ExternalIds, c.ExternalID)
		p.Platforms = append(p.Platforms, c.Platform)
		p.PlatformNames = append(p.PlatformNames, c.PlatformName)
		p.Titles = append(p.Titles, c.Title)
		p.Statuses = append(p.Statuses, string(c.Status))
		p.Pinned = append(p.Pinned, c.Pinned)
		p.MessageCounts = append(p.MessageCounts, int32(c.MessageCount))
		p.TokenCounts = append(p.TokenCounts, int64(c.TokenCount))
		p.Bytes = append(p.Bytes, c.bytes)
		p.Created = append(p.Created, c.CreatedAt)
		p.Updated = append(p.Updated, c.UpdatedAt)
	}
	n, err := l.q.LandConversations(ctx, p)
	if err != nil {
		return fmt.Errorf("write conversations: %w", err)
	}
	if n < int64(len(fresh)) {
		return errRaced
	}
	for _, c := range fresh {
		if c.Status == chat.Blocked {
			l.blocked++
		}
	}
	return nil
}

// messageWriter inserts messages of several conversations at once.
type messageWriter struct {
	l     *landing
	p     db.LandMessagesParams
	bytes int
}

func (w *messageWriter) add(ctx context.Context, c incoming) error {
	for i, m := range c.messages {
		w.p.ConversationIds = append(w.p.ConversationIds, c.ID)
		w.p.Seqs = append(w.p.Seqs, int32(i))
		w.p.ExternalIds = append(w.p.ExternalIds, m.ExternalID)
		w.p.Senders = append(w.p.Senders, string(m.Sender))
		w.p.Texts = append(w.p.Texts, m.Text)
		w.p.Tokens = append(w.p.Tokens, int32(m.Tokens))
		w.p.Times = append(w.p.Times, m.CreatedAt)
		if w.bytes += len(m.Text); w.bytes >= insertBytes || len(w.p.Seqs) >= insertRows {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *messageWriter) flush(ctx context.Context) error {
	if len(w.p.Seqs) == 0 {
		return nil
	}
	w.p.TenantID, w.p.UserID = string(w.l.run.Tenant), int64(w.l.run.User)
	err := w.l.q.LandMessages(ctx, w.p)
	w.p, w.bytes = db.LandMessagesParams{}, 0
	return err
}

// unitWriter inserts units of several conversations at once.
type unitWriter struct {
	l     *landing
	p     db.LandUnitsParams
	bytes int
	texts map[string]int32 // their places in p.Texts, from 1
}

func (w *unitWriter) add(ctx context.Context, c incoming) error {
	for from := 0; from < len(c.messages); from += unitWindow {
		indexes := make([]int, 0, unitWindow)
		for i := from; i < min(from+unitWindow, len(c.messages)); i++ {
			indexes = append(indexes, i)
		}
		for _, u := range w.l.tools.Build(c.Conversation, c.messages, indexes) {
			if err := w.put(ctx, c.ID, u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *unitWriter) put(ctx context.Context, conversation string, u retrieve.Unit) error {
	var parts [5]int32
	if len(u.Parts) > len(parts) {
		return fmt.Errorf("a unit has %d parts, and there is room for %d", len(u.Parts), len(parts))
	}
	for i, text := range u.Parts {
		parts[i] = w.text(text)
	}
	for i, column := range []*[]int32{&w.p.Part1, &w.p.Part2, &w.p.Part3, &w.p.Part4, &w.p.Part5} {
		*column = append(*column, parts[i])
	}
	w.p.ConversationIds = append(w.p.ConversationIds, conversation)
	w.p.Groups = append(w.p.Groups, u.Group)
	w.p.Seqs = append(w.p.Seqs, int32(u.Seq))
	w.p.Starts = append(w.p.Starts, int32(u.Start))
	w.p.Ends = append(w.p.Ends, int32(u.End))
	if w.bytes >= insertBytes || len(w.p.Seqs) >= insertRows {
		return w.flush(ctx)
	}
	return nil
}

// text returns the place of a text that is sent once.
func (w *unitWriter) text(text string) int32 {
	if n, ok := w.texts[text]; ok {
		return n
	}
	if w.texts == nil {
		w.texts = map[string]int32{}
	}
	w.p.Texts = append(w.p.Texts, text)
	w.bytes += len(text)
	n := int32(len(w.p.Texts))
	w.texts[text] = n
	return n
}

func (w *unitWriter) flush(ctx context.Context) error {
	if len(w.p.Seqs) == 0 {
		return nil
	}
	w.p.TenantID, w.p.UserID = string(w.l.run.Tenant), int64(w.l.run.User)
	err := w.l.q.LandUnits(ctx, w.p)
	w.p, w.bytes, w.texts = db.LandUnitsParams{}, 0, nil
	return err
}
