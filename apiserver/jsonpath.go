package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// pathTo returns the path of the first token that ends at or after an offset, such
// as "queries[1].query". It is "" for the document itself and for invalid JSON.
func pathTo(data []byte, offset int64) string {
	d := json.NewDecoder(bytes.NewReader(data))
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

// loneSurrogate returns the offset of the first unpaired surrogate escape, \ud800
// to \udfff, or -1.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // the escaped character
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

// surrogate returns the surrogate escaped at an offset, or -1.
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
