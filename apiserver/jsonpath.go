package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// pathTo returns where in a document the token is that ends at an offset or
// reaches beyond it, as "queries[1].query"; "" for the document itself, and
// when what is before the offset is not JSON.
func pathTo(data []byte, offset int64) string {
	d := json.NewDecoder(bytes.NewReader(data))
	var at places
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			at = at[:len(at)-1]
			continue
		}
		at.next(token)
		if d.InputOffset() >= offset {
			return at.String()
		}
		if delim, ok := token.(json.Delim); ok {
			at = append(at, place{object: delim == '{', index: -1})
		}
	}
}

// places are the objects and arrays around a token, outermost first.
type places []place

// place is where in an object or array a token is.
type place struct {
	object bool
	named  bool // the member's name was read, not yet its value
	name   string
	index  int
}

// next goes on to a token within the innermost place.
func (p places) next(token json.Token) {
	if len(p) == 0 {
		return
	}
	in := &p[len(p)-1]
	switch {
	case !in.object:
		in.index++
	case in.named:
		in.named = false
	default:
		in.name, _ = token.(string)
		in.named = true
	}
}

func (p places) String() string {
	var out strings.Builder
	for _, in := range p {
		if !in.object {
			fmt.Fprintf(&out, "[%d]", in.index)
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(in.name)
	}
	return out.String()
}

// wholeNumber returns the document with the number that ends at the offset
// written as an integer, if it is one: 1.0 and 1e2 are integers in JSON.
func wholeNumber(data []byte, value string, offset int64) ([]byte, bool) {
	literal, ok := strings.CutPrefix(value, "number ")
	from := offset - int64(len(literal))
	if !ok || from < 0 || offset > int64(len(data)) || string(data[from:offset]) != literal {
		return nil, false
	}
	n, err := strconv.ParseFloat(literal, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
		return nil, false
	}
	integer := strconv.FormatInt(int64(n), 10)
	if integer == literal {
		return nil, false
	}
	return bytes.Join([][]byte{data[:from], []byte(integer), data[offset:]}, nil), true
}

// loneSurrogate returns the offset of the first \ud800 to \udfff that is not
// half of a pair: it stands for no character. -1 when there is none.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // whatever is escaped
		switch unit := surrogate(data, i-1); {
		case unit < 0:
		case unit < 0xdc00 && surrogate(data, i+5) >= 0xdc00:
			i += 10
		default:
			return i - 1
		}
	}
	return -1
}

// surrogate returns the surrogate that is escaped at an offset, -1 when none is.
func surrogate(data []byte, at int) int64 {
	if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
	if err != nil || unit < 0xd800 || unit > 0xdfff {
		return -1
	}
	return int64(unit)
}

// unmarshal is json.Unmarshal that takes 1.0 for an integer.
func unmarshal(data []byte, v any) ([]byte, error) {
	for {
		err := json.Unmarshal(data, v)
		e, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok {
			return data, err
		}
		whole, ok := wholeNumber(data, e.Value, e.Offset)
		if !ok {
			return data, err
		}
		data = whole
	}
}
