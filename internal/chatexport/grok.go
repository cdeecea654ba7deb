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
			return s.array(func() error { return in.readResponse(s) })
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

// grokResponse is a message.
type grokResponse struct {
	m                    message
	parent, role         string
	reasoning, text      string
	files, images, links lines
}

// readResponse reads a message, which is in the member "response" or, in exports of other
// tools, the element itself.
func (in *grokConversation) readResponse(s *scanner) error {
	var r grokResponse
	err := s.object(func(name []byte) error {
		if string(name) == "response" {
			return s.object(func(name []byte) error { return r.read(s, name) })
		}
		return r.read(s, name)
	})
	if err != nil {
		return err
	}
	// The sender of an answer is sometimes the name of the model.
	if r.role = strings.ToLower(r.role); strings.Contains(r.role, "grok") {
		r.role = "assistant"
	}
	r.m.sender = sender(r.role, &in.c.Notes)
	var out lines
	out.add(r.files.String())
	out.labeled("thinking", r.reasoning)
	out.add(r.text)
	out.add(r.images.String())
	out.labeled("sources", r.links.String())
	r.m.text = out.String()
	return in.add(node{id: r.m.id, parent: r.parent, message: &r.m})
}

// read reads a member of a message.
func (r *grokResponse) read(s *scanner, name []byte) (err error) {
	switch string(name) {
	case "_id":
		r.m.id, err = s.text()
	case "parent_response_id":
		r.parent, err = s.text()
	case "sender":
		r.role, err = s.text()
	case "create_time":
		r.m.at, err = s.mongoTime()
	case "message":
		r.text, err = s.text()
	case "thinking_trace":
		r.reasoning, err = s.text()
	case "file_attachments":
		err = readFiles(s, &r.files)
	case "generated_image_urls":
		err = r.readImages(s)
	case "cited_web_search_results":
		err = s.array(func() error { return readLink(s, &r.links) })
	default:
		err = s.skip()
	}
	return err
}

// maxImages is the number of generated images of a message that its text mentions.
const maxImages = 1000

func (r *grokResponse) readImages(s *scanner) error {
	n := 0
	return s.array(func() error {
		if n++; n <= maxImages {
			r.images.add("[image]")
		}
		return s.skip()
	})
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
