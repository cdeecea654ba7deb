package httpx

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mnemo-dev/mnemo/apiserver/jsontype"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// DecodeJSON decodes a body into v. Its errors name the field and the expected
// type, and do not repeat the input.
func DecodeJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("the body must be valid UTF-8")
	}
	err := exactjson.Unmarshal(data, v)
	if e, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		return mistyped(data, e)
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fault.New(fault.Invalid, "invalid JSON at byte %d", e.ByteOffset)
	}
	if err == nil {
		if err := RejectUnpairedSurrogates(data); err != nil {
			return err
		}
		return rejectNulls(data, v)
	}
	return err
}

// mistyped is the error for a value that does not have the type of its field.
func mistyped(data []byte, e *jsonv2.SemanticError) error {
	given, expected := article(jsonType([]byte{byte(e.JSONKind)})), e.GoType
	if own, ok := errors.AsType[*json.UnmarshalTypeError](e.Err); ok { // of an UnmarshalJSON
		given, expected = article(own.Value), own.Type
	}
	want := jsontype.Name(expected)
	switch field := exactjson.Path(data, e.ByteOffset+1); {
	case e.JSONPointer == "":
		return fault.New(fault.Invalid, "the body must be %s, not %s", want, given)
	case want == given: // such as 1e400
		return fault.New(fault.Invalid, "%s is out of range", field)
	default:
		return fault.New(fault.Invalid, "%s must be %s, not %s", field, want, given)
	}
}

// unpairedSurrogate is the error for a surrogate at an offset, which names the field.
// Decoding would store U+FFFD instead.
func unpairedSurrogate(data []byte, at int) error {
	return fault.New(fault.Invalid, "%s must not contain the unpaired surrogate \\%s",
		cmp.Or(exactjson.Path(data, int64(at)+1), "the body"), data[at+1:at+6])
}

// RejectUnpairedSurrogates returns an Invalid error if a document contains an unpaired surrogate.
func RejectUnpairedSurrogates(data []byte) error {
	if at := loneSurrogate(data); at >= 0 {
		return unpairedSurrogate(data, at)
	}
	return nil
}

func article(jsonType string) string {
	switch jsonType {
	case "array", "object":
		return "an " + jsonType
	case "bool":
		return "a boolean"
	default:
		return "a " + jsonType
	}
}

// Integer accepts every JSON form of a whole number: 1, 1.0 and 1e0.
type Integer int

// UnmarshalJSON returns the same error type as encoding/json, which names the field.
func (n *Integer) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return &json.UnmarshalTypeError{Value: jsonType(data), Type: reflect.TypeFor[int]()}
	}
	*n = Integer(f)
	return nil
}

// jsonType returns the type of a valid JSON value.
func jsonType(data []byte) string {
	switch data[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

// Schema returns the schema for huma, which adds the bounds of tags.
func (Integer) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}
