package apiserver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/mnemo-dev/mnemo/apiserver/jsontype"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// rejectNulls returns an Invalid error if an array in the document decoded into v
// contains null, which encoding/json decodes as an empty item. A null member
// counts as absent, and unknown members are ignored.
func rejectNulls(data []byte, v any) error {
	if !bytes.Contains(data, []byte("null")) {
		return nil
	}
	if at, item := nullItem(data, reflect.TypeOf(v)); item != nil {
		return fault.New(fault.Invalid, "%s must be %s, not null", pathTo(data, int64(at)+1), jsontype.Name(item))
	}
	return nil
}

// level is an object or array that encloses a position in a document.
type level struct {
	t      reflect.Type // the Go type it is decoded into; nil if ignored
	object bool
}

// nullItem returns the offset of the first null in an array of a document that was
// decoded into t, and the expected item type.
func nullItem(data []byte, t reflect.Type) (at int, item reflect.Type) {
	walk(data, t, visitor{null: func(offset int, expected reflect.Type) bool {
		at, item = offset, expected
		return false
	}})
	return at, item
}

// visitor is called for what a walk finds, and returns whether to continue.
type visitor struct {
	null    func(at int, item reflect.Type) bool // null in an array of item
	unknown func(end int) bool                   // the name, which ends at end, of a member that is ignored
}

// walk visits a document, or the beginning of one, that is decoded into t. It scans
// the bytes, because a generic decode may need thirty times the memory of the
// document.
func walk(data []byte, t reflect.Type, v visitor) {
	var around []level
	next, key := t, false // the type of the next value; whether a member name is next
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end := stringEnd(data, i)
			if end == len(data) {
				return // of the beginning of a document
			}
			if key {
				in := around[len(around)-1].t
				next, key = member(in, data[i:end]), false
				if next == nil && hasMembers(in) && v.unknown != nil && !v.unknown(end) {
					return
				}
			}
			i = end - 1
		case '{', '[':
			l := level{t: dereferenced(next), object: data[i] == '{'}
			around = append(around, l)
			if key = l.object; !key {
				next = element(l.t)
			}
		case '}', ']':
			around, key = around[:len(around)-1], false
		case ',':
			l := around[len(around)-1]
			if key = l.object; !key {
				next = element(l.t)
			}
		case 'n': // null is the only literal that starts with n
			if len(around) > 0 && !around[len(around)-1].object && next != nil && v.null != nil && !v.null(i, next) {
				return
			}
			i += len("ull")
		}
	}
}

// hasMembers reports whether encoding/json decodes an object into the fields of t.
func hasMembers(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// stringEnd returns the offset after the string that begins at from.
func stringEnd(data []byte, from int) int {
	for i := from + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func dereferenced(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// element returns the item type of a slice, nil for other types.
func element(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// member returns the type that a member is decoded into, nil if it is ignored.
func member(t reflect.Type, quoted []byte) reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	name := string(quoted[1 : len(quoted)-1])
	if strings.Contains(name, `\`) && json.Unmarshal(quoted, &name) != nil {
		return nil
	}
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag != "" && strings.EqualFold(tag, name) { // as encoding/json does
			return t.Field(i).Type
		}
	}
	return nil
}
