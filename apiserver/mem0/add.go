package mem0

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type addIn struct {
	Messages json.RawMessage `json:"messages"`
	entities
	Filters      entities        `json:"filters"` // another place for the entities
	Metadata     json.RawMessage `json:"metadata"`
	Infer        *bool           `json:"infer"`
	OutputFormat string          `json:"output_format"`
}

type addOut struct {
	Results []addedOut  `json:"results"`
	pending *pendingOut // instead of results
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
	if out.pending != nil {
		return out.pending, err
	}
	return out, err
}

// addV1 returns a list unless the request asks for the later form.
func (e *Endpoint) addV1(ctx context.Context, r Request) (any, error) {
	in, out, err := e.addMessages(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case out.pending != nil && in.OutputFormat == outputV11:
		return map[string]any{"results": []pendingOut{*out.pending}}, nil
	case out.pending != nil:
		return []pendingOut{*out.pending}, nil
	case in.OutputFormat == outputV11:
		return out, nil
	}
	return out.Results, nil
}

// outputV11 is the output format with an object around the results.
const outputV11 = "v1.1"

// addMessages stores each message as a memory, or extracts facts from all of them.
func (e *Endpoint) addMessages(ctx context.Context, r Request) (addIn, addOut, error) {
	var in addIn
	if err := errors.Join(e.Decode(r.Body, &in), rejectUnsupported(r.Body, notAdded)); err != nil {
		return in, addOut{}, firstOf(err)
	}
	named := in.entities
	named.fill(in.Filters)
	texts, inputs, err := e.inputs(r.Who, in, named)
	if err != nil {
		return in, addOut{}, err
	}
	who, err := e.actor(ctx, r, named.UserID, true)
	if err != nil {
		return in, addOut{}, err
	}
	if e.infers(in) {
		pending, err := e.extract(ctx, who, texts, inputs[0].Attributes)
		return in, addOut{pending: &pending}, err
	}
	out, err := e.store(ctx, who, inputs)
	return in, out, err
}

// inputs returns the texts of a request, and the memories that have them.
func (e *Endpoint) inputs(who tenant.Identity, in addIn, named entities) ([]indexedText, []memory.CreateInput, error) {
	texts, err := e.texts(in.Messages)
	if err != nil {
		return nil, nil, err
	}
	attributes, err := named.attributes(who, in.Metadata)
	if err != nil {
		return nil, nil, err
	}
	inputs := make([]memory.CreateInput, len(texts))
	for i, t := range texts {
		inputs[i] = memory.CreateInput{Text: t.text, Source: source, Attributes: attributes}
		if err := inputs[i].Validate(); err != nil {
			return nil, nil, ofMessage(err, t.message)
		}
	}
	return texts, inputs, nil
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
