package chatexport

import (
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/textrule"
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
			err = s.array(func() error { return in.readMessage(s) })
		default:
			err = s.skip()
		}
		return err
	})
}

// librechatMessage is a message of the list or the tree.
type librechatMessage struct {
	message
	parent  string
	user    bool
	plain   string
	content blocks
	files   lines
}

// readMessage reads a message. Nested ones are added before it.
func (in *librechatConversation) readMessage(s *scanner) error {
	var m librechatMessage
	first := len(in.nodes)
	err := s.object(func(name []byte) error {
		if string(name) == "children" {
			return s.array(func() error { return in.readMessage(s) })
		}
		return m.member(s, name)
	})
	if err != nil {
		return err
	}
	m.content.note(&in.c.Notes)
	m.sender = chat.Assistant
	if m.user {
		m.sender = chat.Human
	}
	m.files.add(m.content.texts.String())
	if !m.content.spoken {
		m.files.add(m.plain)
	}
	m.text = m.files.String()
	for i := first; i < len(in.nodes); i++ {
		if in.nodes[i].parent == "" {
			in.nodes[i].parent = m.id
		}
	}
	return in.add(node{id: m.id, parent: m.parent, message: &m.message})
}

// member reads a member of a message.
func (m *librechatMessage) member(s *scanner, name []byte) (err error) {
	switch string(name) {
	case "messageId":
		m.id, err = s.text()
	case "parentMessageId":
		m.parent, err = s.text()
	case "isCreatedByUser":
		m.user, err = s.flag()
	case "createdAt":
		m.at, err = s.time()
	case "text":
		m.plain, err = s.text()
	case "content":
		err = m.content.read(s)
	case "files", "attachments":
		err = readLibreChatFiles(s, &m.files)
	default:
		err = s.skip()
	}
	return err
}

// readLibreChatFiles reads the names of a list of files.
func readLibreChatFiles(s *scanner, out *lines) error {
	return s.array(func() error {
		return s.object(func(name []byte) error {
			if string(name) != "filename" {
				return s.skip()
			}
			file, err := s.text()
			if !textrule.IsBlank(file) {
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
