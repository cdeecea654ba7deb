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

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// decodeJSON reads a body into v. Its errors are sentences that name the
// field and what it takes, and do not repeat the input.
func decodeJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("the body must be valid UTF-8")
	}
	err := json.Unmarshal(data, v)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		given, _, _ := strings.Cut(e.Value, " ")
		if e.Field == "" {
			return fault.New(fault.Invalid, "the body takes %s, not %s", takes(e.Type), article(given))
		}
		return fault.New(fault.Invalid, "%s takes %s, not %s", cmp.Or(pathTo(data, e.Offset), e.Field), takes(e.Type), article(given))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fault.New(fault.Invalid, "the body is not valid JSON from byte %d on", e.Offset)
	}
	if err == nil {
		if at := loneSurrogate(data); at >= 0 {
			return fault.New(fault.Invalid, "%s must not contain \\%s alone: it is half of a character",
				cmp.Or(pathTo(data, int64(at)+1), "the body"), data[at+1:at+6])
		}
		return refuseNulls(data, v)
	}
	return err
}

func takes(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "an integer"
	case reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
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

// integer is a whole number as JSON may write it: 1, 1.0 and 1e0 are.
type integer int

// UnmarshalJSON is an error that names the field, as encoding/json's own is.
func (n *integer) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return &json.UnmarshalTypeError{Value: jsonType(data), Type: reflect.TypeFor[int]()}
	}
	*n = integer(f)
	return nil
}

// jsonType names what kind of JSON value a valid one is.
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

// Schema describes it for huma, which looks for bounds beside it.
func (integer) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
}

// bucketID is a bucketId as clients send it: an integer, a string that holds
// one, or null for none.
type bucketID struct {
	given string // "" for none
}

// UnmarshalJSON takes any value; value says whether it is an integer, since
// only there the field's name is known.
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

// Schema describes the forms it takes, for huma.
func (bucketID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeInteger}, {Type: huma.TypeString, Pattern: `^-?\d+$`}}}
}

// value returns the bucket meant, 0 for none. An integer no bucket can have
// becomes one that none has.
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
			f.Add(field, "takes an integer or a string that holds one")
			return 0
		}
		if whole > 0 && whole < 1<<53 {
			return int64(whole)
		}
	}
	return noBucket
}

// noBucket is an id that no bucket has.
const noBucket = -1

// orEmpty returns a list that is not written as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// value returns what an optional field holds, or the default.
func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
