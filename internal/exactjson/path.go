package exactjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Path returns the path of the first token that ends at or after an offset, such
// as "queries[1].query". It is "" for the document itself and for invalid JSON.
func Path(data []byte, offset int64) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // does not fail for numbers that are out of range
	var at path
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
			at = append(at, pathStep{object: delim == '{', index: -1})
		}
	}
}

// path lists the objects and arrays that enclose a token, outermost first.
type path []pathStep

// pathStep is the position of a token in an object or array.
type pathStep struct {
	object bool
	named  bool // the member name was read, but not its value
	name   string
	index  int
}

// next advances to a token within the innermost object or array.
func (p path) next(token json.Token) {
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

func (p path) String() string {
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
