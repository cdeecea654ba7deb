package mem0

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxMessages is the maximum number of messages of a request.
const maxMessages = 100

type addIn struct {
	Messages json.RawMessage `json:"messages"`
	entities
	Filters      entities        `json:"filters"` // another place for the entities
	Metadata     json.RawMessage `json:"metadata"`
	Infer        *bool           `json:"infer"`
	OutputFormat string          `json:"output_format"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type addOut struct {
	Results []addedOut `json:"results"`
}

type addedOut struct {
	ID     string  `json:"id"`
	Memory string  `json:"memory"`
	Event  string  `json:"event"` // NONE for a duplicate
	Data   textOut `json:"data"`
}

type textOut struct {
	Memory string `json:"memory"`
}

// notAdded are the options of add that are refused, because ignoring them would change what
// is stored.
var notAdded = map[string]string{
	"timestamp":              "is not supported: memories have the time at which they are stored; begin the text with its date",
	"expiration_date":        "is not supported: memories do not expire",
	"immutable":              "is not supported: memories can be changed",
	"custom_categories":      "is not supported: there are no categories",
	"structured_data_schema": "is not supported",
}

func (e *Endpoint) add(ctx context.Context, r Request) (any, error) {
	_, out, err := e.addMessages(ctx, r)
	return out, err
}

// addV1 returns a list unless the request asks for the later form.
func (e *Endpoint) addV1(ctx context.Context, r Request) (any, error) {
	in, out, err := e.addMessages(ctx, r)
	if err != nil || in.OutputFormat == outputV11 {
		return out, err
	}
	return out.Results, nil
}

// outputV11 is the output format with an object around the results.
const outputV11 = "v1.1"

// addMessages stores each message as a memory.
func (e *Endpoint) addMessages(ctx context.Context, r Request) (addIn, addOut, error) {
	var in addIn
	if err := errors.Join(e.Decode(r.Body, &in), refuse(r.Body, notAdded)); err != nil {
		return in, addOut{}, firstOf(err)
	}
	texts, err := e.texts(in.Messages)
	if err != nil {
		return in, addOut{}, err
	}
	named := in.entities
	named.fill(in.Filters)
	attributes, err := named.attributes(r.Who, in.Metadata)
	if err != nil {
		return in, addOut{}, err
	}
	inputs := make([]memory.CreateInput, len(texts))
	for i, t := range texts {
		inputs[i] = memory.CreateInput{Text: t.text, Source: source, Attributes: attributes}
		if err := inputs[i].Validate(); err != nil {
			return in, addOut{}, ofMessage(err, t.message)
		}
	}
	who, err := e.actor(ctx, r, named.UserID, true)
	if err != nil {
		return in, addOut{}, err
	}
	out, err := e.store(ctx, who, inputs)
	return in, out, err
}

// store stores memories. What is stored before an error stays, and is a duplicate in the
// next attempt.
func (e *Endpoint) store(ctx context.Context, who tenant.Identity, inputs []memory.CreateInput) (addOut, error) {
	out := addOut{Results: make([]addedOut, 0, len(inputs))}
	for _, in := range inputs {
		created, err := e.Memories.Create(ctx, who, in)
		if err != nil {
			return out, err
		}
		event := "ADD"
		if created.Duplicate {
			event = "NONE"
		}
		out.Results = append(out.Results, addedOut{ID: created.ID, Memory: in.Text, Event: event, Data: textOut{in.Text}})
	}
	return out, nil
}

// ofMessage names the message of an error about a text.
func ofMessage(err error, i int) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.WithFieldNames(map[string]string{"text": fmt.Sprintf("messages[%d].content", i)})
	}
	return err
}

// fill sets the entities that are not set.
func (n *entities) fill(from entities) {
	for to, value := range map[*string]string{&n.UserID: from.UserID, &n.AgentID: from.AgentID, &n.AppID: from.AppID, &n.RunID: from.RunID} {
		if *to == "" {
			*to = value
		}
	}
}

// indexedText is the text of a message, with its index.
type indexedText struct {
	message int
	text    string
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
		if strings.TrimSpace(text) != "" {
			out = append(out, indexedText{i, text})
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Invalid, "messages must contain at least one message with a text and another role than system")
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
	if json.Unmarshal(m.Content, &parts) != nil {
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
