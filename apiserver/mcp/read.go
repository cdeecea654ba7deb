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
	FromMessage    int    `json:"fromMessage,omitempty" jsonschema:"The index of the first message to return."`
	Cursor         string `json:"cursor,omitempty" jsonschema:"nextCursor of the previous result, to read the next page; instead of fromMessage."`
	MaxTokens      int    `json:"maxTokens,omitempty" jsonschema:"The approximate maximum size of the result in tokens."`
}

type readOut struct {
	ConversationID string       `json:"conversationId"`
	Title          string       `json:"title"`
	Platform       string       `json:"platform"`
	Status         string       `json:"status" jsonschema:"active, excluded by the user, or blocked (over quota)."`
	CreatedAt      string       `json:"createdAt"`
	UpdatedAt      string       `json:"updatedAt"`
	MessageCount   int          `json:"messageCount"`
	Messages       []messageOut `json:"messages"`
	NextCursor     string       `json:"nextCursor,omitempty" jsonschema:"The cursor of the next page; absent on the last page."`
}

// position is the start of a page: a message and a byte offset in it.
type position struct{ message, offset int }

// String returns the cursor of a position.
func (p position) String() string {
	if p.offset == 0 {
		return strconv.Itoa(p.message)
	}
	return strconv.Itoa(p.message) + "." + strconv.Itoa(p.offset)
}

// parsePosition parses a cursor.
func parsePosition(cursor string) (position, error) {
	invalid := fault.New(fault.Invalid, "cursor must be the nextCursor of the previous result")
	first, second, inside := strings.Cut(cursor, ".")
	var p position
	var err error
	if p.message, err = strconv.Atoi(first); err != nil || p.message < 0 {
		return position{}, invalid
	}
	if inside {
		if p.offset, err = strconv.Atoi(second); err != nil || p.offset < 0 {
			return position{}, invalid
		}
	}
	return p, nil
}

func (e *Endpoint) read(ctx context.Context, c call, in readIn) (readOut, error) {
	from := position{message: in.FromMessage}
	var f fault.Fields
	switch {
	case in.ConversationID == "":
		f.Add("conversationId", "is required")
	case in.FromMessage < 0:
		f.Add("fromMessage", "must be at least 0, not %d", in.FromMessage)
	case in.Cursor != "" && in.FromMessage > 0:
		f.Add("cursor", "and fromMessage must not be used together")
	}
	err := f.Err()
	if err == nil && in.Cursor != "" {
		from, err = parsePosition(in.Cursor)
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
		ConversationID: conversation.ID, Title: title(conversation.Title), Platform: conversation.Platform, Status: string(conversation.Status),
		CreatedAt: chat.Stamp(conversation.CreatedAt), UpdatedAt: chat.Stamp(conversation.UpdatedAt), MessageCount: len(messages),
	}
	var next *position
	out.Messages, next = e.page(messages, from, budget(in.MaxTokens, readTokens))
	if next != nil {
		out.NextCursor = next.String()
	}
	return out, nil
}

// page returns as many messages as the token budget allows, and the position of
// the next page, nil at the end. A message larger than a page is split.
func (e *Endpoint) page(messages []chat.Message, from position, tokens int) ([]messageOut, *position) {
	out := []messageOut{}
	for i := from.message; i < len(messages); i++ {
		m := messageOf(messages[i])
		offset := 0
		if i == from.message {
			offset = len(clip(m.Text, from.offset))
		}
		m.Text, m.Cut = m.Text[offset:], offset > 0
		n, whole := e.size(m, tokens), len(m.Text)
		if n > tokens && len(out) > 0 {
			return out, &position{message: i}
		}
		if e.shorten(&m, &m.Text, &m.Cut, tokens); len(m.Text) < whole {
			return append(out, m), &position{i, offset + len(m.Text)}
		}
		tokens -= n
		out = append(out, m)
	}
	return out, nil
}
