package chat

import (
	"cmp"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// timePrecision is the precision of stored times. Incoming times are truncated
// to it so that a conversation that is sent twice compares equal.
const timePrecision = time.Microsecond

// Change is the effect of an upsert on one conversation.
type Change struct {
	Before   Conversation // ID is "" if the conversation is new
	After    Conversation
	Messages []Message // all messages after the change, in order
	Added    []int     // indexes into Messages, ascending
	Replaced []int     // indexes into Messages, ascending
	// Kept and Stored are numbers of stored messages. Those from index Kept on are
	// deleted; the ones that remain at another position are in Added.
	Kept, Stored int
	Vectors      map[string][]float32
	Generation   placement.GenerationID // of Vectors
	// Quoted are the parts of messages that repeat what a recall returned, by index.
	Quoted map[int][]retrieve.Span
}

// Plan returns the change that an upsert makes to a stored conversation and its
// messages. before.ID is "" if the conversation is new; it then gets newID and
// is blocked until a re-balance activates it.
func Plan(before Conversation, stored []Message, u Upsert, newID string) Change {
	c := Change{Before: before, Kept: len(stored), Stored: len(stored), Vectors: u.Vectors, Generation: u.Generation}
	c.Messages, c.Added, c.Replaced = merge(stored, u.Messages)
	c.After = applyMetadata(before, u)
	c.After.ID = cmp.Or(before.ID, newID)
	if c.After.UpdatedAt.IsZero() {
		c.After.UpdatedAt = newest(c.Messages, c.After.CreatedAt)
	}
	c.measure()
	return c
}

// newest returns the time of the newest message, or other if none has a time.
func newest(messages []Message, other time.Time) time.Time {
	var at time.Time
	for _, m := range messages {
		if m.CreatedAt.After(at) {
			at = m.CreatedAt
		}
	}
	if at.IsZero() {
		return other
	}
	return at
}

// measure sets the sizes of the conversation after the change.
func (c *Change) measure() {
	c.After.MessageCount, c.After.TokenCount, c.After.Bytes = len(c.Messages), 0, 0
	for _, m := range c.Messages {
		c.After.TokenCount += m.Tokens
		c.After.Bytes += int64(len(m.Text))
	}
}

// Created reports whether the conversation is new.
func (c Change) Created() bool { return c.Before.ID == "" }

// Changed reports whether there is anything to write.
func (c Change) Changed() bool {
	return len(c.Added)+len(c.Replaced) > 0 || !equal(c.Before, c.After)
}

// The limits of a conversation that grows by several requests. All its messages are read to add one, and are held in memory
// when an export is restored.
const (
	MaxConversation = 32 << 20 // bytes of texts and external ids
	MaxMessages     = 100_000
)

// TooLarge reports whether the conversation grows beyond MaxConversation or MaxMessages.
func (c Change) TooLarge() bool {
	if len(c.Added) == 0 && c.Storage() <= 0 {
		return false
	}
	size := c.After.Bytes
	for _, m := range c.Messages {
		size += int64(len(m.ExternalID))
	}
	return size > MaxConversation || len(c.Messages) > MaxMessages
}

// Storage returns the bytes that the conversation gains; negative if it shrinks.
func (c Change) Storage() int64 { return c.After.Bytes - c.Before.Bytes }

// Cuts reports whether the stored messages from index Kept on are deleted.
func (c Change) Cuts() bool { return c.Kept < c.Stored }

// Written returns the indexes of the messages that are added or replaced, ascending.
func (c Change) Written() []int {
	written := slices.Concat(c.Added, c.Replaced)
	slices.Sort(written)
	return written
}

// Reindexed returns the indexes of the messages whose units change, ascending: the changed
// messages, those around them and, if the title changes, the message at retrieve.Titled.
func (c Change) Reindexed() []int {
	changed := c.Written()
	if c.Cuts() {
		changed = append(changed, c.Kept)
	}
	indexes := retrieve.Affected(len(c.Messages), changed)
	if c.Before.Title == c.After.Title {
		return indexes
	}
	first := c.Messages[:min(len(c.Messages), retrieve.MaxTitled)]
	if titled := retrieve.Titled(chatMessages(first)); titled >= 0 && !slices.Contains(indexes, titled) {
		indexes = append(indexes, titled)
		slices.Sort(indexes)
	}
	return indexes
}

// Units returns a function that returns the units of the messages at the given
// indexes, with the vectors that are known. The messages are converted once.
func (c Change) Units() func(indexes []int) []retrieve.Unit {
	group, list := groupOf(c.After.Platform), chatMessages(c.Messages)
	for i, spans := range c.Quoted {
		list[i].Quoted = spans
	}
	return func(indexes []int) []retrieve.Unit {
		units := retrieve.ChatUnits(group, c.After.Title, list, indexes)
		for i := range units {
			units[i].Vector, units[i].Generation = c.Vectors[units[i].Dense], c.Generation
		}
		return units
	}
}

func chatMessages(messages []Message) []retrieve.ChatMessage {
	list := make([]retrieve.ChatMessage, len(messages))
	for i, m := range messages {
		list[i] = retrieve.ChatMessage{Sender: string(m.Sender), Text: m.Text, At: m.CreatedAt}
	}
	return list
}

// Rejected returns the conversation to report for an upsert that was rejected:
// the stored one, or the one that would have been created with newID.
func Rejected(before Conversation, u Upsert, newID string) Conversation {
	if before.ID != "" {
		return before
	}
	c := Plan(before, nil, u, newID).After
	c.TokenCount, c.Bytes = 0, 0
	return c
}

// WithDefaultTimes returns the upsert with a missing creation time set to at, and those of messages to that of the
// conversation.
func (u Upsert) WithDefaultTimes(at time.Time) Upsert {
	if u.CreatedAt.IsZero() {
		u.CreatedAt = at
	}
	u.Messages = slices.Clone(u.Messages)
	for i := range u.Messages {
		if u.Messages[i].CreatedAt.IsZero() {
			u.Messages[i].CreatedAt = u.CreatedAt
		}
	}
	return u
}

// merge replaces stored messages whose id is known and appends the others.
// Stored messages that are not incoming remain. The last of several incoming
// messages with one id wins.
func merge(stored, incoming []Message) (all []Message, added, replaced []int) {
	all = slices.Clone(stored)
	index := make(map[string]int, len(stored)+len(incoming))
	for i, m := range stored {
		index[m.ExternalID] = i
	}
	for _, m := range incoming {
		i, known := index[m.ExternalID]
		if !known {
			i = len(all)
			index[m.ExternalID] = i
			all = append(all, Message{})
		}
		m.Index, m.CreatedAt = i, storedTime(m.CreatedAt)
		if i < len(stored) && sameContent(m, stored[i]) {
			m = stored[i]
		}
		all[i] = m
	}
	for i := range all {
		switch {
		case i >= len(stored):
			added = append(added, i)
		case !sameContent(all[i], stored[i]):
			replaced = append(replaced, i)
		}
	}
	return all, added, replaced
}

func sameContent(a, b Message) bool {
	return a.Sender == b.Sender && a.Text == b.Text && a.CreatedAt.Equal(b.CreatedAt)
}

// applyMetadata returns the conversation with the upsert's metadata. Fields that
// the upsert lacks keep their stored values; state and flags never change.
func applyMetadata(before Conversation, u Upsert) Conversation {
	c := Conversation{
		ExternalID: u.ExternalID, Platform: u.Platform, PlatformName: u.PlatformName, Title: u.Title, Status: Blocked,
		CreatedAt: storedTime(u.CreatedAt), UpdatedAt: storedTime(u.UpdatedAt),
	}
	if before.ID == "" {
		return c
	}
	c.Status, c.Pinned, c.ExportedAt = before.Status, before.Pinned, before.ExportedAt
	c.Title = cmp.Or(c.Title, before.Title)
	c.PlatformName = cmp.Or(c.PlatformName, before.PlatformName)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = before.CreatedAt
	}
	return c
}

// equal reports whether two conversations are stored alike.
func equal(a, b Conversation) bool {
	sameTimes := a.CreatedAt.Equal(b.CreatedAt) && a.UpdatedAt.Equal(b.UpdatedAt) && a.ExportedAt.Equal(b.ExportedAt)
	a.CreatedAt, a.UpdatedAt, a.ExportedAt = b.CreatedAt, b.UpdatedAt, b.ExportedAt
	return sameTimes && a == b
}

// storedTime returns a time as the store returns it.
func storedTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(timePrecision)
}
