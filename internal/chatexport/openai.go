package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// openaiConversation reads messages in the format of OpenAI's chat completions:
// objects with a list "messages", as in files for fine-tuning, or messages alone.
type openaiConversation struct {
	thread
	alone bool // the values of the file are messages
}

func openOpenAI(limits Limits, c *Conversation) reader {
	return &openaiConversation{thread: thread{limits: limits, c: c}}
}

func openMessages(limits Limits, c *Conversation) reader {
	return &openaiConversation{thread: thread{limits: limits, c: c}, alone: true}
}

func (in *openaiConversation) element(s *scanner) error {
	if in.alone {
		return in.readMessage(s)
	}
	return s.object(func(name []byte) (err error) {
		switch string(name) {
		case "id", "conversation_id":
			in.c.ExternalID, err = s.text()
		case "title":
			in.c.Title, err = s.text()
		case "created", "created_at", "create_time":
			in.c.CreatedAt, err = s.time()
		case "messages":
			err = s.array(func() error { return in.readMessage(s) })
		default:
			err = s.skip()
		}
		return err
	})
}

func (in *openaiConversation) readMessage(s *scanner) error {
	m, err := readRoleMessage(s, &in.c.Notes)
	if err != nil {
		return err
	}
	return in.thread.message(m)
}

// finish sets an id for conversations that have none. All of the text identifies
// them: lines of a file often begin alike.
func (in *openaiConversation) finish() error {
	if in.c.ExternalID == "" && len(in.nodes) > 0 {
		texts := make([]string, 0, 2*len(in.nodes))
		for _, n := range in.nodes {
			texts = append(texts, string(n.message.sender), n.message.text)
		}
		in.c.ExternalID = digest(texts...)
	}
	return in.thread.finish()
}

// readRoleMessage reads a message with a role, content and tool calls. The names of
// its id and time depend on the app.
func readRoleMessage(s *scanner, notes *Notes) (message, error) {
	var (
		m                      message
		role, tool             string
		reasoning              string
		content                blocks
		files, calls, refusals lines
	)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "id", "uuid":
			m.id, err = s.text()
		case "role":
			role, err = s.text()
		case "name":
			tool, err = s.text()
		case "createdAt", "created_at", "timestamp", "create_time":
			m.at, err = s.time()
		case "content":
			err = content.read(s)
		case "reasoning_content", "reasoning":
			reasoning, err = s.text()
		case "refusal":
			var text string
			text, err = s.text()
			refusals.add(text)
		case "tool_calls", "function_call":
			err = readCalls(s, &calls)
		case "files", "attachments":
			err = readFiles(s, &files)
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return m, err
	}
	content.note(notes)
	m.sender = roleSender(role, notes)
	var out lines
	out.add(files.String())
	out.labeled("thinking", reasoning)
	if text := content.texts.String(); m.sender == chat.Tool && !textrule.IsBlank(text) && !content.results {
		out.add("[" + label("result", tool) + "]")
	}
	out.add(content.texts.String())
	out.add(calls.String())
	out.add(refusals.String())
	m.text = out.String()
	return m, nil
}

// readCalls reads a list of tool calls, or one call.
func readCalls(s *scanner, out *lines) error {
	one := func() error {
		var c call
		err := c.read(s)
		c.add(out)
		return err
	}
	if list, err := s.is('['); err != nil || !list {
		if err != nil {
			return err
		}
		return one()
	}
	return s.array(one)
}

// roleSender returns the sender for a role of the API. Instructions of developers
// are instructions of the system, and functions are the predecessors of tools.
func roleSender(role string, notes *Notes) chat.Sender {
	switch strings.ToLower(role) {
	case "developer":
		return chat.System
	case "function":
		return chat.Tool
	}
	return sender(role, notes)
}
