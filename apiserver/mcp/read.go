package mcp

import (
	"context"
	"strconv"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

type readIn struct {
	ConversationID string `json:"conversationId" jsonschema:"The conversation's id, from search_chat_history or recall_chat_history."`
	FromMessage    int    `json:"fromMessage,omitempty" jsonschema:"The index of the message to begin with."`
	Cursor         string `json:"cursor,omitempty" jsonschema:"nextCursor of the answer before, to read on; instead of fromMessage."`
	MaxTokens      int    `json:"maxTokens,omitempty" jsonschema:"About how many tokens of text the answer may hold."`
}

type readOut struct {
	ConversationID string       `json:"conversationId"`
	Title          string       `json:"title"`
	Platform       string       `json:"platform"`
	Status         string       `json:"status" jsonschema:"active, excluded (its user left it out) or blocked (over the quota)."`
	CreatedAt      string       `json:"createdAt"`
	UpdatedAt      string       `json:"updatedAt"`
	MessageCount   int          `json:"messageCount"`
	Messages       []messageOut `json:"messages"`
	NextCursor     string       `json:"nextCursor,omitempty" jsonschema:"The cursor that reads on; absent at the end."`
}

// place is where a page begins: a message, and how many bytes of it were read.
type place struct{ message, offset int }

// String is the cursor of a place.
func (p place) String() string {
	if p.offset == 0 {
		return strconv.Itoa(p.message)
	}
	return strconv.Itoa(p.message) + "." + strconv.Itoa(p.offset)
}

// parsePlace reads a cursor.
func parsePlace(cursor string) (place, error) {
	wrong := fault.New(fault.Invalid, "cursor takes the nextCursor of the answer before")
	first, second, inside := strings.Cut(cursor, ".")
	var p place
	var err error
	if p.message, err = strconv.Atoi(first); err != nil || p.message < 0 {
		return place{}, wrong
	}
	if inside {
		if p.offset, err = strconv.Atoi(second); err != nil || p.offset < 0 {
			return place{}, wrong
		}
	}
	return p, nil
}

func (e *Endpoint) read(ctx context.Context, c call, in readIn) (readOut, error) {
	from := place{message: in.FromMessage}
	var f fault.Fields
	switch {
	case in.ConversationID == "":
		f.Add("conversationId", "is required")
	case in.FromMessage < 0:
		f.Add("fromMessage", "must be at least 0, not %d", in.FromMessage)
	case in.Cursor != "" && in.FromMessage > 0:
		f.Add("cursor", "and fromMessage cannot be given together")
	}
	err := f.Err()
	if err == nil && in.Cursor != "" {
		from, err = parsePlace(in.Cursor)
	}
	if err != nil {
		return readOut{}, err
	}
	conversation, messages, err := e.Chats.Get(ctx, c.who, in.ConversationID)
	if err != nil {
		return readOut{}, err
	}
	if from.message > 0 && from.message >= len(messages) {
		return readOut{}, fault.New(fault.Invalid, "fromMessage must be 0 to %d: the conversation has %d messages", len(messages)-1, len(messages))
	}
	out := readOut{
		ConversationID: conversation.ID, Title: conversation.Title, Platform: conversation.Platform, Status: string(conversation.Status),
		CreatedAt: chat.Stamp(conversation.CreatedAt), UpdatedAt: chat.Stamp(conversation.UpdatedAt), MessageCount: len(messages),
	}
	var next *place
	out.Messages, next = e.page(messages, from, budget(in.MaxTokens, readTokens))
	if next != nil {
		out.NextCursor = next.String()
	}
	return out, nil
}

// page returns messages from a place on, as many as the tokens allow, and where
// the next page begins, nil at the end. A message that no page can hold is read
// in pieces.
func (e *Endpoint) page(messages []chat.Message, from place, tokens int) ([]messageOut, *place) {
	out := []messageOut{}
	for i := from.message; i < len(messages); i++ {
		m := messageOf(messages[i])
		offset := 0
		if i == from.message {
			offset = len(clip(m.Text, from.offset))
		}
		m.Text, m.Cut = m.Text[offset:], offset > 0
		n := e.Chats.CountTokens(m.Text, tokens)
		if n > tokens && len(out) > 0 {
			return out, &place{message: i}
		}
		if n > tokens {
			size := e.fit(m.Text, tokens)
			if size < len(m.Text) {
				m.Text, m.Cut = m.Text[:size], true
				return append(out, m), &place{i, offset + size}
			}
		}
		tokens -= n
		out = append(out, m)
	}
	return out, nil
}
