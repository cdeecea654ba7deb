package chatexport

import (
	"strings"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// codexSession reads the records of a session file of Codex: an item in "payload",
// or the item itself in files of old versions.
type codexSession struct{ thread }

func openCodex(limits Limits, c *Conversation) reader {
	return &codexSession{thread{limits: limits, c: c}}
}

// codexItem is a message, reasoning, a tool call or its output.
type codexItem struct {
	record  string // type of the record
	kind    string
	role    string
	name    string
	id      string
	m       message
	content blocks
	input   lines
	output  lines
	git     bool // the first record of a file of an old version
}

func (in *codexSession) element(s *scanner) error {
	var item codexItem
	wrapped := false
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "payload":
			wrapped = true
			item.record = item.kind
			return s.object(func(name []byte) error { return item.read(s, name) })
		case "type":
			if wrapped {
				item.record, err = s.text()
				return err
			}
		}
		return item.read(s, name)
	})
	if err != nil {
		return err
	}
	if wrapped && item.record != "response_item" || item.git {
		if (item.record == "session_meta" || item.git) && in.c.ExternalID == "" {
			in.c.ExternalID, in.c.CreatedAt = item.id, item.m.at
		}
		return nil // events repeat the items
	}
	return in.item(&item)
}

// read reads a member of an item.
func (item *codexItem) read(s *scanner, name []byte) (err error) {
	switch string(name) {
	case "type":
		item.kind, err = s.text()
	case "timestamp":
		item.m.at, err = s.time()
	case "id":
		item.id, err = s.text()
	case "git":
		if item.git, err = s.is('{'); err != nil {
			return err
		}
		err = s.skip()
	case "role":
		item.role, err = s.text()
	case "name":
		item.name, err = s.text()
	case "content", "summary":
		err = item.content.read(s)
	case "arguments", "input", "action":
		err = s.flatten(&item.input, "")
	case "output":
		err = s.flatten(&item.output, "")
	default:
		err = s.skip()
	}
	return err
}

// injected are the beginnings of messages that Codex adds in the name of the user.
var injected = []string{"<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md instructions"}

// item adds an item.
func (in *codexSession) item(item *codexItem) error {
	item.content.note(&in.c.Notes)
	m, text := item.m, item.content.texts.String()
	var out lines
	switch item.kind {
	case "message":
		m.sender = roleSender(item.role, &in.c.Notes)
		m.hidden = strings.EqualFold(item.role, "developer")
		for _, start := range injected {
			m.hidden = m.hidden || m.sender == chat.Human && strings.HasPrefix(strings.TrimSpace(text), start)
		}
		out.add(text)
	case "reasoning":
		m.sender = chat.Assistant
		out.labeled("thinking", text)
		m.hidden = text == "" // encrypted
	case "function_call", "custom_tool_call", "local_shell_call", "web_search_call":
		m.sender = chat.Assistant
		if item.name == "" {
			item.name = strings.TrimSuffix(item.kind, "_call")
		}
		c := call{name: item.name, input: item.input}
		c.add(&out)
	case "function_call_output", "custom_tool_call_output":
		m.sender = chat.Tool
		out.labeled("result", item.output.String())
	default:
		return nil
	}
	m.text = out.String()
	in.c.UpdatedAt = m.at
	return in.message(m)
}
