package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// claudeConversation reads an element of Claude's conversations.json.
type claudeConversation struct{ thread }

func openClaude(limits Limits, c *Conversation) reader {
	return &claudeConversation{thread{limits: limits, c: c}}
}

func (in *claudeConversation) element(s *scanner) error {
	listed := false
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "uuid":
			in.c.ExternalID, err = s.text()
		case "name":
			in.c.Title, err = s.text()
		case "created_at":
			in.c.CreatedAt, err = s.time()
		case "updated_at":
			in.c.UpdatedAt, err = s.time()
		case "current_leaf_message_uuid":
			in.leaf, err = s.text()
		case "chat_messages":
			if listed, err = s.is('['); err != nil {
				return err
			}
			err = s.array(func() error { return in.readMessage(s) })
		default:
			err = s.skip()
		}
		return err
	})
	if err == nil && !listed {
		err = valueError("no messages in the format of Claude (chat_messages)")
	}
	return err
}

// readMessage reads an element of chat_messages.
func (in *claudeConversation) readMessage(s *scanner) error {
	var (
		m            message
		parent, role string
		plain        string
		content      blocks
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
	m.sender = sender(role, &in.c.Notes)
	content.note(&in.c.Notes)
	// The blocks contain all text, in newer exports more than "text". Some exports
	// have blocks of reasoning and tools only.
	out.add(content.texts.String())
	if !content.spoken && !strings.Contains(content.texts.String(), plain) {
		out.add(withoutPlaceholders(plain))
	}
	m.text = out.String()
	return in.add(node{id: m.id, parent: parent, message: &m})
}

// placeholder replaces blocks in "text" that old apps cannot show.
const placeholder = "This block is not supported on your current device yet."

// withoutPlaceholders removes the placeholders of blocks, each in a code fence.
func withoutPlaceholders(text string) string {
	if !strings.Contains(text, placeholder) {
		return text
	}
	text = strings.ReplaceAll(text, "```\n"+placeholder+"\n```", "")
	return strings.TrimSpace(strings.ReplaceAll(text, placeholder, ""))
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
	if !textrule.IsBlank(file) || !textrule.IsBlank(text) {
		out.add("[" + label("attachment", file) + "]")
		out.add(text)
	}
	return err
}
