package chatexport

import (
	"strings"
	"time"
)

// claudeConversation is an element of Claude's conversations.json.
type claudeConversation struct {
	created  time.Time
	leaf     string // current_leaf_message_uuid
	messages []node
}

// readClaude reads a conversation of a Claude export.
func readClaude(s *scanner, limits Limits, c *Conversation) error {
	var in claudeConversation
	listed := false
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "uuid":
			c.ExternalID, err = s.text()
		case "name":
			c.Title, err = s.text()
		case "created_at":
			c.CreatedAt, err = s.time()
		case "updated_at":
			c.UpdatedAt, err = s.time()
		case "current_leaf_message_uuid":
			in.leaf, err = s.text()
		case "chat_messages":
			if listed, err = s.is('['); err != nil {
				return err
			}
			err = s.array(func() error { return in.readMessage(s, limits, &c.Notes) })
		default:
			err = s.skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !listed:
		return valueError("no messages in the format of Claude (chat_messages)")
	}
	in.created = c.CreatedAt
	return in.settle(c)
}

// settle selects the branch that the platform shows, or all messages in order if
// the export has no branches.
func (in *claudeConversation) settle(c *Conversation) error {
	path := in.messages
	if in.branches() {
		var err error
		if path, err = branch(in.messages, in.leaf); err != nil {
			return err
		}
	}
	all := make([]message, len(path))
	for i, n := range path {
		all[i] = *n.message
	}
	c.Messages = settle(all, &c.Notes, in.created)
	c.Notes.Branches = len(in.messages) - len(path)
	return nil
}

// branches reports whether the messages form a tree: each has a unique id and a
// parent among them, except for roots, which share a missing parent. Anything else
// is a list, so that no message is lost.
func (in *claudeConversation) branches() bool {
	ids := make(map[string]bool, len(in.messages))
	for _, n := range in.messages {
		if n.id == "" || ids[n.id] {
			return false
		}
		ids[n.id] = true
	}
	roots := make(map[string]bool)
	parents := false
	for _, n := range in.messages {
		if ids[n.parent] {
			parents = true
		} else {
			roots[n.parent] = true
		}
	}
	return parents && len(roots) <= 1
}

// readMessage reads an element of chat_messages.
func (in *claudeConversation) readMessage(s *scanner, limits Limits, notes *Notes) error {
	if len(in.messages) >= limits.Messages {
		return valueError("too many messages")
	}
	var (
		m            message
		parent, role string
		plain        string
		content      claudeContent
		out          lines
	)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "uuid":
			m.id, err = s.text()
		case "parent_message_uuid":
			parent, err = s.text()
		case "sender":
			role, err = s.text()
		case "created_at":
			m.at, err = s.time()
		case "text":
			plain, err = s.text()
		case "content":
			err = content.read(s)
		case "attachments":
			err = s.array(func() error { return readAttachment(s, &out) })
		case "files", "files_v2":
			var names []string
			names, err = readNames(s)
			for _, file := range names {
				out.add("[" + label("file", file) + "]")
			}
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	m.sender = sender(role, notes)
	for _, kind := range content.unknown {
		notes.unknown(label("content", kind), 1)
	}
	// The blocks contain all text, in newer exports more than "text".
	if text := content.texts.String(); strings.TrimSpace(text) != "" {
		plain = text
	}
	out.add(plain)
	m.text = out.String()
	in.messages = append(in.messages, node{id: m.id, parent: parent, message: &m})
	return nil
}

// readAttachment reads a file with extracted text.
func readAttachment(s *scanner, out *lines) error {
	var file, text string
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "file_name":
			file, err = s.text()
		case "extracted_content":
			text, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	if strings.TrimSpace(file) != "" || strings.TrimSpace(text) != "" {
		out.add("[" + label("attachment", file) + "]")
		out.add(text)
	}
	return err
}
