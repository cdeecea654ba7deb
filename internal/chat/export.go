package chat

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// PlanExport returns the change that a conversation of another platform's export
// makes to a stored conversation and its messages. An export contains the whole
// conversation, so the newest one replaces what older ones stored, in whatever
// order they are imported. Messages that were sent online are never removed. They,
// the title and the times change only if the export is not older than the stored
// conversation. before.ID and newID are as in Plan.
func PlanExport(before Conversation, stored []Message, u Upsert, newID string) Change {
	u = u.asExport()
	if !u.supersedes(before, stored) {
		return Change{Before: before, After: before, Messages: stored, Kept: len(stored), Stored: len(stored)}
	}
	latest := !u.UpdatedAt.Before(before.UpdatedAt)
	c := Change{Before: before, After: before, Stored: len(stored), Vectors: u.Vectors, Generation: u.Generation}
	if latest {
		c.After = applyMetadata(before, u)
		if !before.ExportedAt.IsZero() {
			c.After.Title = u.Title // removed on the platform, if empty
		}
	}
	c.After.ID, c.After.ExportedAt = cmp.Or(before.ID, newID), u.UpdatedAt
	c.Messages = mergeExport(stored, u.Messages, latest)
	c.compare(stored)
	c.measure()
	return c
}

// asExport returns the upsert as it is stored: with an update time, and each
// message once and marked as exported.
func (u Upsert) asExport() Upsert {
	messages, _, _ := merge(nil, u.Messages)
	for i := range messages {
		messages[i].Exported = true
	}
	u.Messages, u.CreatedAt, u.UpdatedAt = messages, storedTime(u.CreatedAt), storedTime(u.UpdatedAt)
	if u.UpdatedAt.IsZero() {
		u.UpdatedAt = newest(messages, u.CreatedAt)
	}
	return u
}

// supersedes reports whether the export is newer than the one that was last
// imported. Equal times are decided by the content, so that the order of imports
// does not matter: by the newest message, the number of messages, and then
// arbitrarily. What was sent online is not compared.
func (u Upsert) supersedes(before Conversation, stored []Message) bool {
	if n := u.UpdatedAt.Compare(before.ExportedAt); before.ID == "" || n != 0 {
		return before.ID == "" || n > 0
	}
	online := map[string]bool{}
	var old []Message
	for _, m := range stored {
		if online[m.ExternalID] = !m.Exported; m.Exported {
			old = append(old, m)
		}
	}
	incoming := slices.DeleteFunc(slices.Clone(u.Messages), func(m Message) bool { return online[m.ExternalID] })
	n := compareMessages(incoming, old)
	if n == 0 && before.UpdatedAt.Equal(before.ExportedAt) {
		n = cmp.Or(strings.Compare(u.Title, before.Title), u.CreatedAt.Compare(before.CreatedAt))
	}
	return n > 0
}

// compareMessages orders two states of the messages of a conversation.
func compareMessages(a, b []Message) int {
	return cmp.Or(
		newest(a, time.Time{}).Compare(newest(b, time.Time{})),
		cmp.Compare(len(a), len(b)),
		slices.CompareFunc(a, b, func(a, b Message) int {
			return cmp.Or(strings.Compare(a.ExternalID, b.ExternalID), a.CreatedAt.Compare(b.CreatedAt),
				strings.Compare(string(a.Sender), string(b.Sender)), strings.Compare(b.Text, a.Text))
		}),
	)
}

// mergeExport returns the messages of an export, and between them those that were
// sent online. Of a message that is both, the export's content counts if the export
// is the latest state of the conversation.
func mergeExport(stored, incoming []Message, latest bool) []Message {
	known := make(map[string]Message, len(stored))
	for _, m := range stored {
		known[m.ExternalID] = m
	}
	exported := make([]Message, 0, len(incoming))
	for _, m := range incoming {
		old, ok := known[m.ExternalID]
		if ok && (sameContent(m, old) || !old.Exported && !latest) {
			m = old
		}
		delete(known, m.ExternalID)
		exported = append(exported, m)
	}
	var online []Message
	for _, m := range stored {
		if _, left := known[m.ExternalID]; left && !m.Exported {
			online = append(online, m)
		}
	}
	return interleave(exported, online)
}

// interleave merges two lists by time. Each keeps its order.
func interleave(exported, online []Message) []Message {
	all := make([]Message, 0, len(exported)+len(online))
	for _, m := range exported {
		for len(online) > 0 && online[0].CreatedAt.Before(m.CreatedAt) {
			all, online = append(all, online[0]), online[1:]
		}
		all = append(all, m)
	}
	return append(all, online...)
}

// compare sets the difference between the stored messages and Messages. It writes
// all messages from the first that has another id: ids are unique, so that messages
// cannot be moved one by one.
func (c *Change) compare(stored []Message) {
	for c.Kept < min(len(stored), len(c.Messages)) && c.Messages[c.Kept].ExternalID == stored[c.Kept].ExternalID {
		c.Kept++
	}
	for i := range c.Messages {
		c.Messages[i].Index = i
		switch {
		case i >= c.Kept:
			c.Added = append(c.Added, i)
		case !sameContent(c.Messages[i], stored[i]):
			c.Replaced = append(c.Replaced, i)
		}
	}
}
