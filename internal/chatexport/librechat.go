package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// librechatConversation reads a conversation that LibreChat exported as JSON: a
// list of messages, or with "recursive" a tree of messages with their children.
type librechatConversation struct{ thread }

func openLibreChat(limits Limits, c *Conversation) reader {
	return &librechatConversation{thread{limits: limits, c: c}}
}

func (in *librechatConversation) element(s *scanner) error {
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "conversationId":
			in.c.ExternalID, err = s.text()
		case "title":
			in.c.Title, err = s.text()
		case "createdAt":
			in.c.CreatedAt, err = s.time()
		case "updatedAt":
			in.c.UpdatedAt, err = s.time()
		case "messages", "messagesTree":
			err = s.array(func() error { return in.readMessage(s, "") })
		default:
			err = s.skip()
		}
		return err
	})
}

// readMessage reads a message and then its children, in any order of members.
func (in *librechatConversation) readMessage(s *scanner, parent string) error {
	var (
		m       message
		user    *bool
		role    string
		plain   string
		content blocks
		out     lines
	)
	first := len(in.nodes)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "messageId":
			m.id, err = s.text()
		case "parentMessageId":
			parent, err = s.text()
		case "isCreatedByUser":
			var yes bool
			yes, err = s.flag()
			user = &yes
		case "sender":
			role, err = s.text()
		case "createdAt":
			m.at, err = s.time()
		case "text":
			plain, err = s.text()
		case "content":
			err = content.read(s)
		case "files", "attachments":
			err = readLibreChatFiles(s, &out)
		case "children":
			err = s.array(func() error { return in.readMessage(s, "") })
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	content.note(&in.c.Notes)
	m.sender = chat.Assistant
	if user != nil && *user || user == nil && strings.EqualFold(role, "user") {
		m.sender = chat.Human
	}
	out.add(content.texts.String())
	if !content.spoken {
		out.add(plain)
	}
	m.text = out.String()
	for i := first; i < len(in.nodes); i++ {
		if in.nodes[i].parent == "" {
			in.nodes[i].parent = m.id
		}
	}
	return in.add(node{id: m.id, parent: parent, message: &m})
}

// readLibreChatFiles reads the names of a list of files.
func readLibreChatFiles(s *scanner, out *lines) error {
	return s.array(func() error {
		return s.object(func(name []byte) error {
			if string(name) != "filename" {
				return s.skip()
			}
			file, err := s.text()
			if strings.TrimSpace(file) != "" {
				out.add("[" + label("file", file) + "]")
			}
			return err
		})
	})
}

// finish restores the order of messages that were read after their children.
func (in *librechatConversation) finish() error {
	in.byTime()
	return in.thread.finish()
}
