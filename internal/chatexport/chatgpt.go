package chatexport

import (
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// chatgptConversation is an element of ChatGPT's conversations.json.
type chatgptConversation struct {
	title       string
	id          string // conversation_id, or else id
	created     time.Time
	updated     time.Time
	currentNode string
	nodes       []node
	index       map[string]int // of nodes by id
}

// readChatGPT reads a conversation of a ChatGPT export.
func readChatGPT(s *scanner, limits Limits, c *Conversation) error {
	in := chatgptConversation{index: make(map[string]int)}
	mapped := false
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "title":
			in.title, err = s.text()
		case "conversation_id":
			c.ExternalID, err = s.text()
		case "id":
			in.id, err = s.text()
		case "create_time":
			in.created, err = s.time()
		case "update_time":
			in.updated, err = s.time()
		case "current_node":
			in.currentNode, err = s.text()
		case "mapping":
			if mapped, err = s.is('{'); err != nil {
				return err
			}
			err = in.readMapping(s, limits, &c.Notes)
		default:
			err = s.skip()
		}
		return err
	})
	if c.ExternalID == "" {
		c.ExternalID = in.id
	}
	c.Title, c.CreatedAt, c.UpdatedAt = in.title, in.created, in.updated
	switch {
	case err != nil:
		return err
	case !mapped:
		return valueError("no messages in the format of ChatGPT (mapping)")
	}
	return in.settle(c)
}

// settle selects the branch that the platform shows.
func (in *chatgptConversation) settle(c *Conversation) error {
	path, err := branch(in.nodes, in.currentNode)
	if err != nil {
		return err
	}
	all := make([]message, 0, len(path))
	for _, n := range path {
		if n.message == nil {
			continue
		}
		m := *n.message
		if m.id == "" {
			m.id = n.id
		}
		all = append(all, m)
	}
	for _, n := range in.nodes {
		if n.message != nil && !n.message.hidden && strings.TrimSpace(n.message.text) != "" {
			c.Notes.Branches++
		}
	}
	c.Messages = settle(all, &c.Notes, in.created)
	c.Notes.Branches -= len(c.Messages)
	return nil
}

// readMapping reads the tree. The last of several nodes with one id wins.
func (in *chatgptConversation) readMapping(s *scanner, limits Limits, notes *Notes) error {
	return s.object(func(name []byte) error {
		n := node{id: s.repair(string(name))}
		err := s.object(func(name []byte) (err error) {
			switch string(name) {
			case "parent":
				n.parent, err = s.text()
			case "message":
				n.message, err = readChatGPTMessage(s, notes)
			default:
				err = s.skip()
			}
			return err
		})
		if err != nil {
			return err
		}
		if i, ok := in.index[n.id]; ok {
			in.nodes[i] = n
			return nil
		}
		if len(in.nodes) >= limits.Messages {
			return valueError("too many messages")
		}
		in.index[n.id] = len(in.nodes)
		in.nodes = append(in.nodes, n)
		return nil
	})
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
		if err == nil && strings.TrimSpace(file) != "" {
			names = append(names, file)
		}
		return err
	})
	return names, err
}
