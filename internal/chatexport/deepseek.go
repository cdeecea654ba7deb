package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// deepseekConversation reads an element of DeepSeek's conversations.json. Its tree
// is that of ChatGPT, without the node that the platform shows.
type deepseekConversation struct{ mapping }

func openDeepSeek(limits Limits, c *Conversation) reader {
	in := &deepseekConversation{mapping{thread: thread{limits: limits, c: c}, index: make(map[string]int)}}
	in.message = func(s *scanner) (*message, error) { return readDeepSeekMessage(s, &c.Notes) }
	return in
}

func (in *deepseekConversation) element(s *scanner) error {
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "id":
			in.c.ExternalID, err = s.text()
		case "title":
			in.c.Title, err = s.text()
		case "inserted_at":
			in.c.CreatedAt, err = s.time()
		case "updated_at":
			in.c.UpdatedAt, err = s.time()
		case "mapping":
			err = in.read(s)
		default:
			err = s.skip()
		}
		return err
	})
}

func (in *deepseekConversation) finish() error {
	in.alternate()
	return in.mapping.finish()
}

// alternate sets the senders of messages without fragments, which have no role:
// questions and answers alternate from the root.
func (in *deepseekConversation) alternate() {
	for _, n := range in.nodes {
		if n.message == nil || n.message.sender != "" {
			continue
		}
		n.message.sender = chat.Human
		if at, ok := in.index[n.parent]; ok && in.nodes[at].message != nil && in.nodes[at].message.sender == chat.Human {
			n.message.sender = chat.Assistant
		}
	}
}

// readDeepSeekMessage reads the message of a node, nil for null.
func readDeepSeekMessage(s *scanner, notes *Notes) (*message, error) {
	if object, err := s.is('{'); err != nil || !object {
		if err != nil {
			return nil, err
		}
		return nil, s.skip()
	}
	var (
		m     message
		out   lines
		plain string
	)
	err := s.object(func(name []byte) (err error) {
		var text string
		switch string(name) {
		case "inserted_at":
			m.at, err = s.time()
		case "files":
			err = readFiles(s, &out)
		case "fragments":
			err = s.array(func() error { return readFragment(s, &m, &out, notes) })
		case "reasoning_content":
			text, err = s.text()
			out.labeled("thinking", text)
		case "content":
			plain, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	out.add(plain)
	m.text = out.String()
	return &m, err
}

// readFragment reads a part of a message: a question, reasoning, a search or an
// answer.
func readFragment(s *scanner, m *message, out *lines, notes *Notes) error {
	var kind, content string
	var links lines
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			kind, err = s.text()
		case "content":
			content, err = s.text()
		case "results":
			err = s.array(func() error { return readLink(s, &links) })
		default:
			err = s.skip()
		}
		return err
	})
	if m.sender == "" {
		m.sender = chat.Assistant
	}
	switch kind {
	case "REQUEST":
		m.sender = chat.Human
		out.add(content)
	case "RESPONSE", "":
		out.add(content)
	case "THINK":
		out.labeled("thinking", content)
	case "SEARCH", "READ_LINK", "TOOL_SEARCH", "TOOL_OPEN":
		out.add("[" + label("tool", strings.ToLower(kind)) + "]")
		out.add(content)
		out.add(links.String())
	default:
		notes.unknown(label("content", kind), 1)
		out.add(content)
		out.add(links.String())
	}
	return err
}

// readLink reads a search result: its title, address and excerpt.
func readLink(s *scanner, out *lines) error {
	return s.object(func(name []byte) (err error) {
		var text string
		switch string(name) {
		case "title", "name", "url", "link", "snippet", "preview":
			text, err = s.text()
			out.add(text)
		default:
			err = s.skip()
		}
		return err
	})
}

// readFiles reads the names of a list of files.
func readFiles(s *scanner, out *lines) error {
	names, err := readNames(s)
	for _, name := range names {
		out.add("[" + label("file", name) + "]")
	}
	return err
}
