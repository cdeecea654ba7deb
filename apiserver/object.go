package apiserver

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/memory"
)

// object is a JSON object that the domain parses.
type object json.RawMessage

// UnmarshalJSON returns the same error type as encoding/json, which names the field.
func (o *object) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return &json.UnmarshalTypeError{Value: jsonType(data), Type: reflect.TypeFor[map[string]any]()}
	}
	*o = append((*o)[:0], data...)
	return nil
}

// MarshalJSON returns the object.
func (o object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema returns the schema of any object.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// MemoryAttributes are the attributes of a memory in a response. They are absent if they
// are empty.
type MemoryAttributes struct {
	AgentID        string   `json:"agentId,omitempty" doc:"The assistant that stored it."`
	RunID          string   `json:"runId,omitempty" doc:"The session or run in which it was stored."`
	Tags           []string `json:"tags,omitempty" doc:"In alphabetical order."`
	CustomMetadata object   `json:"customMetadata,omitempty" doc:"The metadata that the client stored with the memory."`
}

func attributesOf(a memory.Attributes) MemoryAttributes {
	return MemoryAttributes{AgentID: a.AgentID, RunID: a.RunID, Tags: a.Tags, CustomMetadata: object(a.Metadata)}
}

// raw returns the JSON of an optional object.
func (o *object) raw() json.RawMessage {
	if o == nil {
		return nil
	}
	return json.RawMessage(*o)
}
