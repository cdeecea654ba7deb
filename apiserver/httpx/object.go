package httpx

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Object is a JSON object that the domain parses.
type Object json.RawMessage

// UnmarshalJSON returns the same error type as encoding/json, which names the field.
func (o *Object) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return &json.UnmarshalTypeError{Value: jsonType(data), Type: reflect.TypeFor[map[string]any]()}
	}
	*o = append((*o)[:0], data...)
	return nil
}

// MarshalJSON returns the object.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema returns the schema of any object.
func (Object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Raw returns the JSON of an optional object.
func (o *Object) Raw() json.RawMessage {
	if o == nil {
		return nil
	}
	return json.RawMessage(*o)
}
