package mem0

import (
	"encoding/json"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// maxMessages is the maximum number of messages of a request.
const maxMessages = 100

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// indexedText is the text of a message, with its index and the role user, assistant or "".
type indexedText struct {
	message    int
	role, text string
}

// texts returns the texts of messages, except for those of the system and those without a
// text. A string is one message.
func (e *Endpoint) texts(raw json.RawMessage) ([]indexedText, error) {
	messages, err := e.messages(raw)
	if err != nil {
		return nil, err
	}
	var out []indexedText
	for i, m := range messages {
		if m.Role == "system" {
			continue
		}
		text, err := m.text(i)
		if err != nil {
			return nil, err
		}
		if !textrule.IsBlank(text) {
			out = append(out, indexedText{i, m.speaker(), text})
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Invalid, "messages must contain at least one non-empty message whose role is not system")
	}
	return out, nil
}

func (e *Endpoint) messages(raw json.RawMessage) ([]message, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		raw, _ = json.Marshal(text) //nolint:errchkjson // a string
		return []message{{Content: raw}}, nil
	}
	var in struct {
		Messages []message `json:"messages"`
	}
	if len(raw) == 0 {
		return nil, fault.New(fault.Invalid, "messages is required")
	}
	if err := e.Decode(append(append([]byte(`{"messages":`), raw...), '}'), &in); err != nil {
		return nil, err
	}
	if len(in.Messages) > maxMessages {
		return nil, fault.New(fault.Invalid, "messages must contain at most %d messages, not %d", maxMessages, len(in.Messages))
	}
	return in.Messages, nil
}

// speaker returns the role of a message, if it is user or assistant.
func (m message) speaker() string {
	if m.Role == "user" || m.Role == "assistant" {
		return m.Role
	}
	return ""
}

// text returns the text of a message: its content, or the text parts of it.
func (m message) text(i int) (string, error) {
	var text string // "" for null
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if exactjson.Unmarshal(m.Content, &parts) != nil {
		return "", fault.New(fault.Invalid, "messages[%d].content must be a string or a list of text parts", i)
	}
	var texts []string
	for j, p := range parts {
		if p.Type != "text" {
			return "", fault.New(fault.Invalid, "messages[%d].content[%d].type must be text; other content is not supported", i, j)
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}
