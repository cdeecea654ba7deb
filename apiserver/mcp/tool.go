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

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mnemo-dev/mnemo/apiserver/jsontype"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// call is a call of a tool.
type call struct {
	caller
	source  string         // the name of the client
	request tenant.Request // idempotency record of the call
}

// tool describes a tool to assistants, in addition to its types.
type tool struct {
	name, title, description string
	reads                    bool // read-only
	repeatable               bool // idempotent
	// aliases maps other names of arguments, which assistants use, to the arguments.
	aliases map[string]string
	// in adds constraints to the schema derived from the argument types.
	in func(*jsonschema.Schema)
}

// add registers a tool. No tool is destructive: edits keep earlier versions.
func add[In, Out any](e *Endpoint, t tool, do func(ctx context.Context, c call, in In) (Out, error)) {
	input, output := schemaOf[In](), schemaOf[Out]()
	if t.in != nil {
		t.in(input)
	}
	if e.access[t.name] = tenant.AccessWrite; t.reads {
		e.access[t.name] = tenant.AccessRead
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
		err := decode(req.Params.Arguments, &in, t, input)
		if err == nil {
			c.request, err = requestOf(req.Params, in)
		}
		if err == nil {
			var out Out
			if out, err = do(c.work, c, in); err == nil {
				e.Observe(t.name, false)
				return toolResult(out)
			}
		}
		e.Observe(t.name, true)
		return e.toolError(c.work, err), nil
	})
}

// toolResult returns a result as structured content, and as text for clients that
// ignore structured content.
func toolResult(out any) (*sdk.CallToolResult, error) {
	text, err := encode(out)
	if err != nil {
		return nil, fmt.Errorf("encode tool result: %w", err)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: json.RawMessage(text)}, nil
}

// encode returns a value as JSON.
func encode(v any) (string, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(raw.String(), "\n"), err
}

// toolError returns the result of a failed tool call, which the assistant can act on.
func (e *Endpoint) toolError(ctx context.Context, err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: e.Explain(ctx, err)}}}
}

// sourceOf returns the name of the client.
func sourceOf(req *sdk.CallToolRequest) string {
	const longest = 100
	name := "mcp"
	if info := req.ClientInfo(); info != nil && info.Name != "" {
		name += ":" + strings.ReplaceAll(strings.ToValidUTF8(info.Name, ""), "\x00", "")
	}
	return clip(name, longest)
}

// schemaOf returns the schema of a type from its tags.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[id]():     {Type: "string"},
		reflect.TypeFor[object](): {Type: "object"},
	}})
	if err != nil {
		panic("schema: " + err.Error()) // a programming error
	}
	neverNull(s)
	return s
}

// neverNull removes null from the types of a schema: lists are never null, and
// absent values are omitted.
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

// between sets the bounds and the default of an integer argument.
func between(s *jsonschema.Schema, name string, least, most, fallback int) {
	low, high := float64(least), float64(most)
	p := s.Properties[name]
	p.Minimum, p.Maximum, p.Default = &low, &high, json.RawMessage(fmt.Sprint(fallback))
}

// id is an id in the arguments: a string or a number.
type id string

// UnmarshalJSON accepts a string or a number.
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

// object is a JSON object that the domain parses.
type object json.RawMessage

// UnmarshalJSON accepts an object, or a string that contains one, as some models send it.
func (o *object) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil && json.Valid([]byte(text)) {
		data = []byte(strings.TrimSpace(text))
	}
	if data[0] != '{' {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[map[string]any]()}
	}
	*o = append((*o)[:0], data...)
	return nil
}

// MarshalJSON returns the object.
func (o object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// decode decodes the arguments of a tool; its errors name the argument and the
// expected type. Unknown arguments are rejected: they are most likely misspelled,
// and ignoring them would change the meaning of the call. A null argument is absent: some clients
// send all arguments.
func decode(raw json.RawMessage, in any, t tool, schema *jsonschema.Schema) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return fault.New(fault.Invalid, "the arguments must be a JSON object")
	}
	maps.DeleteFunc(given, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	if err := resolve(given, t.aliases); err != nil {
		return err
	}
	var unknown []string
	for _, argument := range slices.Sorted(maps.Keys(given)) {
		if schema.Properties[argument] == nil {
			unknown = append(unknown, argument)
		}
	}
	if len(unknown) > 0 {
		return fault.New(fault.Invalid, "unknown arguments: %s; %s accepts %s", strings.Join(unknown, ", "), t.name, strings.Join(schema.PropertyOrder, ", "))
	}
	raw, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("encode arguments: %w", err)
	}
	err = exactjson.Unmarshal(raw, in)
	if e, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		expected := e.GoType
		if own, ok := errors.AsType[*json.UnmarshalTypeError](e.Err); ok { // of an UnmarshalJSON
			expected = own.Type
		}
		return fault.New(fault.Invalid, "%s must be %s", exactjson.Path(raw, e.ByteOffset+1), jsontype.Name(expected))
	}
	if err != nil {
		return fault.New(fault.Invalid, "the arguments are invalid")
	}
	return nil
}

// resolve renames arguments that are given by an alias.
func resolve(given map[string]json.RawMessage, aliases map[string]string) error {
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		value, ok := given[alias]
		if !ok {
			continue
		}
		name := aliases[alias]
		if _, both := given[name]; both {
			return fault.New(fault.Invalid, "%s is another name of %s: use one of them", alias, name)
		}
		delete(given, alias)
		given[name] = value
	}
	return nil
}
