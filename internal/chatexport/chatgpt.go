package chatexport

import (
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// chatgptConversation reads an element of ChatGPT's conversations.json.
type chatgptConversation struct{ mapping }

func openChatGPT(limits Limits, c *Conversation) reader {
	in := &chatgptConversation{mapping{thread: thread{limits: limits, c: c}, index: make(map[string]int)}}
	in.message = func(s *scanner) (*message, error) { return readChatGPTMessage(s, &c.Notes) }
	return in
}

func (in *chatgptConversation) element(s *scanner) error {
	mapped, id := false, ""
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "title":
			in.c.Title, err = s.text()
		case "conversation_id":
			in.c.ExternalID, err = s.text()
		case "id":
			id, err = s.text()
		case "create_time":
			in.c.CreatedAt, err = s.time()
		case "update_time":
			in.c.UpdatedAt, err = s.time()
		case "current_node":
			in.leaf, err = s.text()
		case "mapping":
			if mapped, err = s.is('{'); err != nil {
				return err
			}
			err = in.read(s)
		default:
			err = s.skip()
		}
		return err
	})
	if in.c.ExternalID == "" {
		in.c.ExternalID = id
	}
	if err == nil && !mapped {
		err = valueError("no messages in the format of ChatGPT (mapping)")
	}
	return err
}

// readChatGPTMessage reads the message of a node, nil for null.
func readChatGPTMessage(s *scanner, notes *Notes) (*message, error) {
	object, err := s.is('{')
	switch {
	case err != nil:
		return nil, err
	case !object:
		return nil, s.skip()
	}
	var (
		m       message
		role    string
		content chatgptContent
		files   []string
		weight0 bool
	)
	err = s.object(func(name []byte) (err error) {
		switch string(name) {
		case "id":
			m.id, err = s.text()
		case "author":
			role, err = readRole(s)
		case "create_time":
			m.at, err = s.time()
		case "content":
			err = content.read(s)
		case "weight":
			weight0, err = s.zero()
		case "metadata":
			m.hidden, files, err = readMetadata(s)
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	m.hidden = m.hidden || weight0
	m.sender = sender(role, notes)
	if content.kind == "user_editable_context" || content.kind == "model_editable_context" {
		m.sender = chat.System // instructions for the model, not part of the dialogue
	}
	m.text = content.text(files, m.hidden, notes)
	return &m, nil
}

// readRole reads an author.
func readRole(s *scanner) (role string, err error) {
	err = s.object(func(name []byte) (err error) {
		if string(name) == "role" {
			role, err = s.text()
			return err
		}
		return s.skip()
	})
	return role, err
}

// sender returns the sender for a role and notes unknown roles.
func sender(role string, notes *Notes) chat.Sender {
	if known, ok := chat.ParseSender(role); ok {
		return known
	}
	notes.unknown(label("role", role), 1)
	return chat.System
}

// readMetadata reads whether the message is hidden and the names of its files.
func readMetadata(s *scanner) (hidden bool, files []string, err error) {
	err = s.object(func(name []byte) (err error) {
		switch string(name) {
		case "is_visually_hidden_from_conversation":
			hidden, err = s.flag()
		case "attachments":
			files, err = readNames(s)
		default:
			err = s.skip()
		}
		return err
	})
	return hidden, files, err
}

// readNames reads the names of a list of files.
func readNames(s *scanner) (names []string, err error) {
	err = s.array(func() error {
		var file string
		err := s.object(func(name []byte) (err error) {
			if n := string(name); n == "name" || n == "file_name" {
				file, err = s.text()
				return err
			}
			return s.skip()
		})
		if err == nil && !textrule.IsBlank(file) {
			names = append(names, file)
		}
		return err
	})
	return names, err
}
