package httpx

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/mnemo-dev/mnemo/apiserver/jsontype"
	"github.com/mnemo-dev/mnemo/internal/exactjson"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// rejectNulls returns an Invalid error if an array in the document decoded into v
// contains null, which decodes as an empty item. A null member
// counts as absent, and unknown members are ignored.
func rejectNulls(data []byte, v any) error {
	if !bytes.Contains(data, []byte("null")) {
		return nil
	}
	if at, item := nullItem(data, reflect.TypeOf(v)); item != nil {
		return fault.New(fault.Invalid, "%s must be %s, not null", exactjson.Path(data, int64(at)+1), jsontype.Name(item))
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
	w := walker{data: data, next: t, visitor: v}
	for i, proceed := 0, true; proceed && i < len(data); i++ {
		switch data[i] {
		case '"':
			i, proceed = w.text(i)
		case '{', '[':
			w.around = append(w.around, level{t: dereferenced(w.next), object: data[i] == '{'})
			w.item()
		case '}', ']':
			w.around, w.key = w.around[:len(w.around)-1], false
		case ',':
			w.item()
		case 'n': // null is the only literal that starts with n
			proceed = w.nothing(i)
			i += len("ull")
		}
	}
}

// walker is the state of a walk.
type walker struct {
	visitor
	data   []byte
	around []level
	next   reflect.Type // the type of the next value
	key    bool         // a member name is next
}

// item begins the next member or item of the innermost object or array.
func (w *walker) item() {
	l := w.around[len(w.around)-1]
	if w.key = l.object; !w.key {
		w.next = element(l.t)
	}
}

// text visits the string at from. It returns the offset of its last byte, and whether
// to continue.
func (w *walker) text(from int) (last int, proceed bool) {
	end := stringEnd(w.data, from)
	if end == len(w.data) {
		return end, false // of the beginning of a document
	}
	if !w.key {
		return end - 1, true
	}
	in := w.around[len(w.around)-1].t
	w.next, w.key = member(in, w.data[from:end]), false
	if w.next != nil || w.unknown == nil || !hasMembers(in) {
		return end - 1, true
	}
	return end - 1, w.unknown(end)
}

// nothing visits null at an offset, and returns whether to continue.
func (w *walker) nothing(at int) bool {
	if w.null == nil || w.next == nil || len(w.around) == 0 || w.around[len(w.around)-1].object {
		return true
	}
	return w.null(at, w.next)
}

// hasMembers reports whether an object is decoded into the fields of t.
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
	for i := range t.NumField() { //nolint:modernize // Type.Fields allocates at every name
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag != "" && tag == name {
			return t.Field(i).Type
		}
	}
	return nil
}
