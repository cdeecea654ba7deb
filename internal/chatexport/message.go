package chatexport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	maxID    = 500  // characters, the limit of internal/chat
	maxTitle = 2000 // characters, the limit of internal/chat
)

// message is a message of an export.
type message struct {
	id     string
	sender chat.Sender
	text   string
	at     time.Time
	hidden bool // not shown by the platform
}

// settle converts the messages of a conversation: it omits hidden and empty ones
// and gives each a unique id and a time.
func settle(all []message, notes *Notes, created time.Time) []chat.Message {
	out := make([]chat.Message, 0, len(all))
	seen := make(map[string]int, len(all))
	for _, m := range all {
		switch {
		case m.hidden:
			notes.Hidden++
			continue
		case textrule.IsBlank(m.text):
			notes.Empty++
			continue
		}
		id := uniqueID(m.id, len(out), seen)
		out = append(out, chat.Message{ExternalID: id, Sender: m.sender, Text: m.text, CreatedAt: m.at})
	}
	date(out, notes, created)
	return out
}

// uniqueID returns an id that is unique in the conversation, and the same in later
// exports.
func uniqueID(id string, index int, seen map[string]int) string {
	if id = bounded(id); id == "" {
		id = fmt.Sprintf("message-%d", index)
	}
	base := id
	for seen[id] > 0 {
		seen[base]++
		id = fmt.Sprintf("%s#%d", base, seen[base])
	}
	seen[id]++
	return id
}

// date sets missing times to that of the preceding message, those of the first
// messages to that of the following one, and all to that of the conversation if
// no message has one.
func date(messages []chat.Message, notes *Notes, created time.Time) {
	last := created
	for _, m := range messages {
		if !m.CreatedAt.IsZero() {
			last = m.CreatedAt
			break
		}
	}
	for i := range messages {
		if messages[i].CreatedAt.IsZero() {
			notes.Undated++
			messages[i].CreatedAt = last
		}
		last = messages[i].CreatedAt
	}
}

// maxHeadline is the maximum number of characters of a title from a question.
const maxHeadline = 80

// headline returns the first line of the first question, for conversations without
// a title.
func headline(messages []chat.Message) string {
	for _, m := range messages {
		if m.Sender != chat.Human {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
		return strings.TrimSpace(cut(line, maxHeadline))
	}
	return ""
}

// earliest returns the earliest time of the messages, zero if none has one.
func earliest(messages []chat.Message) time.Time {
	var first time.Time
	for _, m := range messages {
		if first.IsZero() || !m.CreatedAt.IsZero() && m.CreatedAt.Before(first) {
			first = m.CreatedAt
		}
	}
	return first
}

// bounded returns the id, or its hash if the id is too long.
func bounded(id string) string {
	if textrule.IsBlank(id) {
		return ""
	}
	// Reserves space for "#n".
	if utf8.RuneCountInString(id) > maxID-20 {
		return digest(id)
	}
	return id
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// cut truncates a text to n characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
