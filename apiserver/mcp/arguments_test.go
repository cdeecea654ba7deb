package mcp

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// Clients that send every argument send null for the optional ones, and some models send an object as text.
func TestOptionalObjects(t *testing.T) {
	t.Parallel()
	schema := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"text": {}, "customMetadata": {}}}
	for name, tc := range map[string]struct {
		reason, arguments, want string
		fails                   bool
	}{
		"Object":  {"An object is passed on.", `{"text":"a","customMetadata":{"k":1}}`, `{"k":1}`, false},
		"Null":    {"Null is absent.", `{"text":"a","customMetadata":null}`, ``, false},
		"Text":    {"A text that contains an object is the object.", `{"text":"a","customMetadata":" {\"k\":1}"}`, `{"k":1}`, false},
		"Other":   {"Another text is refused.", `{"text":"a","customMetadata":"k"}`, ``, true},
		"Number":  {"A text that contains another value is refused.", `{"text":"a","customMetadata":"1"}`, ``, true},
		"Missing": {"It is optional.", `{"text":"a"}`, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in struct {
				Text     string `json:"text"`
				Metadata object `json:"customMetadata"`
			}
			err := decode(json.RawMessage(tc.arguments), &in, tool{name: "store_memory"}, schema)
			if (err != nil) != tc.fails {
				t.Fatalf("%s Got %v", tc.reason, err)
			}
			if string(in.Metadata) != tc.want {
				t.Errorf("%s Got %s, want %s", tc.reason, in.Metadata, tc.want)
			}
		})
	}
}
