package filter

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// value parses a value of a condition's field.
func (p *parser) value(path string, c Filter, v any) Value {
	if s, ok := v.(string); ok && strings.ContainsRune(s, 0) {
		p.f.Add(path, "must not contain the character U+0000")
		return Value{}
	}
	var out Value
	var ok bool
	var want string
	switch c.Field {
	case Metadata:
		out, ok, want = operand(c.Op, v)
	case BucketID:
		out, ok = integer(v)
		want = "must be an integer or a string that contains one"
	case CreatedAt, UpdatedAt:
		out, ok = instant(v)
		want = "must be an RFC 3339 time or a date, such as 2025-05-09T14:30:00Z or 2025-05-09"
	default:
		out = scalar(v)
		ok, want = out.Kind == String && out.Text != "", "must be a string that is not empty"
	}
	if !ok {
		p.f.Add(path, "%s", want)
		return Value{}
	}
	return out
}

// operand parses a value that is compared with one of the metadata.
func operand(op Op, v any) (out Value, ok bool, want string) {
	out, want = scalar(v), "must be a string, a number, true or false"
	ok = out.Kind != 0
	switch op {
	case Gt, Gte, Lt, Lte:
		ok, want = out.Kind == String || out.Kind == Number, "must be a string or a number"
	}
	if n, is := v.(json.Number); is {
		if _, fits := Decimal(n.String()); !fits {
			want = "must be a number of " + NumberLimits
		}
	}
	return out, ok, want
}

// scalar returns a string, number or boolean, and otherwise the zero Value.
func scalar(v any) Value {
	switch v := v.(type) {
	case string:
		return Value{Kind: String, Text: v}
	case bool:
		return boolean(v)
	case json.Number:
		if text, ok := Decimal(v.String()); ok {
			return Value{Kind: Number, Text: text}
		}
	}
	return Value{}
}

func boolean(b bool) Value { return Value{Kind: Bool, Text: strconv.FormatBool(b)} }

// integer parses an id, which may be a string.
func integer(v any) (Value, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return Value{Kind: Number, Text: strconv.FormatInt(n, 10)}, err == nil
}

// instant parses a time; a date is its start in UTC. Years outside 1 to 9999 are invalid.
func instant(v any) (Value, bool) {
	text, ok := v.(string)
	if !ok {
		return Value{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, err = time.Parse(time.DateOnly, text)
	}
	t = t.UTC().Truncate(time.Microsecond)
	return Value{Kind: Time, Time: t}, err == nil && t.Year() >= 1 && t.Year() <= 9999
}
