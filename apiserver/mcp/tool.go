package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// call is a call of a tool.
type call struct {
	caller
	source  string         // names the client that calls
	request tenant.Request // the call, if it may be sent again
}

// tool is what an assistant is told of a tool beside its types.
type tool struct {
	name, title, description string
	reads                    bool // changes nothing
	repeatable               bool // doing it again changes nothing more
	// in completes the schema of the arguments, whose types say the rest.
	in func(*jsonschema.Schema)
}

// add registers a tool. No tool of ours destroys anything: an edit keeps the
// text that was.
func add[In, Out any](e *Endpoint, t tool, do func(ctx context.Context, c call, in In) (Out, error)) {
	input, output := schemaOf[In](), schemaOf[Out]()
	if t.in != nil {
		t.in(input)
	}
	no := false
	definition := &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: input, OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{Title: t.title, ReadOnlyHint: t.reads, IdempotentHint: t.reads || t.repeatable,
			DestructiveHint: &no, OpenWorldHint: &no},
	}
	e.server.AddTool(definition, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		c := call{caller: callerOf(ctx), source: sourceOf(req)}
		var in In
		err := decode(req.Params.Arguments, &in, t.name, input)
		if err == nil {
			c.request, err = requestOf(req.Params, in)
		}
		if err == nil {
			var out Out
			if out, err = do(c.work, c, in); err == nil {
				e.Observe(t.name, false)
				return answer(out)
			}
		}
		e.Observe(t.name, true)
		return e.refusal(c.work, err), nil
	})
}

// answer gives a result in both forms: what clients read by its schema, and the
// same as text for those that do not.
func answer(out any) (*sdk.CallToolResult, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("write the tool's result: %w", err)
	}
	text := strings.TrimSuffix(raw.String(), "\n")
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(text)}, nil
}

// refusal is a tool's error, which the assistant reads and can act on.
func (e *Endpoint) refusal(ctx context.Context, err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: e.Explain(ctx, err)}}}
}

// sourceOf names the client where the protocol tells it.
func sourceOf(req *sdk.CallToolRequest) string {
	const longest = 100
	name := "mcp"
	if info := req.ClientInfo(); info != nil && info.Name != "" {
		name += ":" + strings.ReplaceAll(strings.ToValidUTF8(info.Name, ""), "\x00", "")
	}
	return clip(name, longest)
}

// schemaOf describes a type whose fields are tagged with what they mean.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[id](): {Type: "string"},
	}})
	if err != nil {
		panic("schema: " + err.Error()) // it depends on the source alone
	}
	neverNull(s)
	return s
}

// neverNull takes null out of what a value may be: no list of ours is null, and
// what is absent is left out.
func neverNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	neverNull(s.Items)
	for _, p := range s.Properties {
		neverNull(p)
	}
}

// between bounds an integer argument and says what it is when absent.
func between(s *jsonschema.Schema, name string, least, most, otherwise int) {
	low, high := float64(least), float64(most)
	p := s.Properties[name]
	p.Minimum, p.Maximum, p.Default = &low, &high, json.RawMessage(fmt.Sprint(otherwise))
}

// id is an id as assistants send it: a string, or the number in it.
type id string

// UnmarshalJSON takes a string or a number.
func (i *id) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*i = id(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[string]()}
	}
	*i = id(n)
	return nil
}

// decode reads a tool's arguments; its errors name the argument and what it
// takes. One that the tool does not know is refused: most likely it is another
// one misspelt, and leaving it out would do something else than was meant.
func decode(raw json.RawMessage, in any, name string, schema *jsonschema.Schema) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return fault.New(fault.Invalid, "the arguments must be a JSON object")
	}
	var f fault.Fields
	for _, argument := range slices.Sorted(maps.Keys(given)) {
		if schema.Properties[argument] == nil {
			f.Add(argument, "is not an argument of %s, which takes %s", name, strings.Join(schema.PropertyOrder, ", "))
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	err := json.Unmarshal(raw, in)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := wrong.Field
		if field == "" {
			field = "an id"
		}
		return fault.New(fault.Invalid, "%s takes %s", field, takes(wrong.Type))
	}
	if err != nil {
		return fault.New(fault.Invalid, "the arguments cannot be read")
	}
	return nil
}

func takes(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "an integer"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	default:
		return "a string"
	}
}
