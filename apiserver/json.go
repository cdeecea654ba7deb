package apiserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mnemo-dev/mnemo/apiserver/jsontype"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// decodeJSON decodes a body into v. Its errors name the field and the expected
// type, and do not repeat the input.
func decodeJSON(data []byte, v any) error {
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
		if at := loneSurrogate(data); at >= 0 {
			return unpairedSurrogate(data, at)
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

// integer accepts every JSON form of a whole number: 1, 1.0 and 1e0.
type integer int

// UnmarshalJSON returns the same error type as encoding/json, which names the field.
func (n *integer) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return &json.UnmarshalTypeError{Value: jsonType(data), Type: reflect.TypeFor[int]()}
	}
	*n = integer(f)
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
func (integer) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// bucketID is a bucket id in a request: an integer, a string that contains one,
// or null for none.
type bucketID struct {
	given string // "" for none
}

// UnmarshalJSON accepts any value; value validates it, because only its caller
// knows the field name.
func (b *bucketID) UnmarshalJSON(data []byte) error {
	b.given = string(data)
	if b.given == "null" {
		b.given = ""
		return nil
	}
	var s string
	if json.Unmarshal(data, &s) == nil {
		b.given = strings.TrimSpace(s)
		if b.given == "" {
			b.given = `""`
		}
	}
	return nil
}

// Schema returns the preferred form, for huma.
func (bucketID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// value returns the bucket id, 0 for none. Integers out of range become noBucket.
func (b bucketID) value(f *fault.Fields, field string) int64 {
	if b.given == "" {
		return 0
	}
	n, err := strconv.ParseInt(b.given, 10, 64)
	if err == nil && n > 0 {
		return n
	}
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		whole, ferr := strconv.ParseFloat(b.given, 64)
		if ferr != nil || whole != math.Trunc(whole) || math.IsInf(whole, 0) {
			f.Add(field, "must be an integer or a string that contains one")
			return 0
		}
		if whole > 0 && whole < 1<<53 {
			return int64(whole)
		}
	}
	return noBucket
}

// noBucket is an id that does not exist.
const noBucket = -1

// orEmpty returns a non-nil list, which is not encoded as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// value returns the value of an optional field, or the default.
func value[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
