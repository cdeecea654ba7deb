package chatexport

import (
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// copilotConversation reads consecutive rows of the activity history of Microsoft
// Copilot with the same conversation title. A row is a message.
type copilotConversation struct{ thread }

func openCopilot(limits Limits, c *Conversation) reader {
	return &copilotConversation{thread{limits: limits, c: c}}
}

// sameTitle joins the rows of a conversation.
func sameTitle(last, next head) bool { return last.group == next.group }

func (in *copilotConversation) element(s *scanner) error {
	var m message
	var author string
	err := s.object(func(name []byte) (err error) {
		var text string
		switch string(name) {
		case "Conversation", "ChatName":
			in.c.Title, err = s.text()
		case "Time", "CreatedAt":
			text, err = s.text()
			m.at = copilotTime(text)
		case "Author":
			author, err = s.text()
		case "Message", "MessageContent":
			m.text, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	m.sender = chat.Assistant
	if known, ok := chat.ParseSender(strings.TrimSpace(author)); ok {
		m.sender = known
	}
	return in.message(m)
}

// copilotLayouts are the forms of times in the two files of the history.
var copilotLayouts = []string{"2006-01-02T15:04:05", "1/2/2006 15:04:05 -07:00", "1/2/2006 3:04:05 PM -07:00", "1/2/2006 3:04:05 PM", "1/2/2006 15:04:05"}

func copilotTime(text string) time.Time {
	if t, _, err := chat.ParseTime(text, time.UTC); err == nil {
		return t.UTC()
	}
	for _, layout := range copilotLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return known(t)
		}
	}
	return time.Time{}
}

// finish restores the order of the dialogue: the newest row is listed first, and an
// answer before its question of the same second.
func (in *copilotConversation) finish() error {
	if n := len(in.nodes); n > 1 {
		first, last := in.nodes[0].message, in.nodes[n-1].message
		if first.at.After(last.at) || first.at.Equal(last.at) && first.sender == chat.Assistant {
			slices.Reverse(in.nodes)
		}
		in.byTime()
	}
	if len(in.nodes) > 0 {
		first := in.nodes[0].message
		in.c.ExternalID = digest(in.c.Title, first.at.String(), cut(first.text, 1000))
		in.c.UpdatedAt = in.nodes[len(in.nodes)-1].message.at
	}
	return in.thread.finish()
}
