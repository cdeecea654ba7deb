package chatexport

import (
	"strings"
	"time"
)

// grokConversation reads an element of the list "conversations" in Grok's
// prod-grok-backend.json.
type grokConversation struct{ thread }

func openGrok(limits Limits, c *Conversation) reader {
	return &grokConversation{thread{limits: limits, c: c}}
}

func (in *grokConversation) element(s *scanner) error {
	return s.object(func(name []byte) error {
		switch string(name) {
		case "conversation":
			return s.object(func(name []byte) error { return in.readHead(s, name) })
		case "responses":
			return s.array(func() error {
				return s.object(func(name []byte) error {
					if string(name) == "response" {
						return in.readResponse(s)
					}
					return s.skip()
				})
			})
		}
		return s.skip()
	})
}

func (in *grokConversation) readHead(s *scanner, name []byte) (err error) {
	switch string(name) {
	case "id":
		in.c.ExternalID, err = s.text()
	case "title":
		in.c.Title, err = s.text()
	case "create_time":
		in.c.CreatedAt, err = s.mongoTime()
	case "modify_time":
		in.c.UpdatedAt, err = s.mongoTime()
	case "leaf_response_id":
		in.leaf, err = s.text()
	default:
		err = s.skip()
	}
	return err
}

// readResponse reads a message.
func (in *grokConversation) readResponse(s *scanner) error {
	var (
		m                    message
		parent, role         string
		reasoning, text      string
		files, images, links lines
	)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "_id":
			m.id, err = s.text()
		case "parent_response_id":
			parent, err = s.text()
		case "sender":
			role, err = s.text()
		case "create_time":
			m.at, err = s.mongoTime()
		case "message":
			text, err = s.text()
		case "thinking_trace":
			reasoning, err = s.text()
		case "file_attachments":
			err = readFiles(s, &files)
		case "generated_image_urls":
			err = s.array(func() error { images.add("[image]"); return s.skip() })
		case "cited_web_search_results":
			err = s.array(func() error { return readLink(s, &links) })
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	// The sender of an answer is sometimes the name of the model.
	if role = strings.ToLower(role); strings.Contains(role, "grok") {
		role = "assistant"
	}
	m.sender = sender(role, &in.c.Notes)
	var out lines
	out.add(files.String())
	out.labelled("thinking", reasoning)
	out.add(text)
	out.add(images.String())
	out.labelled("sources", links.String())
	m.text = out.String()
	return in.add(node{id: m.id, parent: parent, message: &m})
}

// mongoTime consumes a time, also in the form of MongoDB: {"$date": {"$numberLong":
// "1700000000000"}}.
func (s *scanner) mongoTime() (t time.Time, err error) {
	if object, err := s.is('{'); err != nil || !object {
		if err != nil {
			return time.Time{}, err
		}
		return s.time()
	}
	err = s.object(func([]byte) (err error) {
		t, err = s.mongoTime()
		return err
	})
	return t, err
}
