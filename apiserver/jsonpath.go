package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
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
