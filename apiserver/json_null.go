package apiserver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// refuseNulls returns an Invalid error when a list in a document that was read
// into v holds null: encoding/json makes an empty item of it. A member that is
// null counts as absent, and members nobody reads are nobody's business.
func refuseNulls(data []byte, v any) error {
	if !bytes.Contains(data, []byte("null")) {
		return nil
	}
	if at, item := nullItem(data, reflect.TypeOf(v)); item != nil {
		return fault.New(fault.Invalid, "%s takes %s, not null", pathTo(data, int64(at)+1), takes(item))
	}
	return nil
}

// level is an object or a list around a place in a document.
type level struct {
	t      reflect.Type // what it is read into; nil when nobody reads it
	object bool
}

// nullItem finds the first null in a list, and what should be there, in a
// document that was read into the type before. It goes over the bytes: a second
// document in memory may take thirty times the first.
func nullItem(data []byte, t reflect.Type) (at int, item reflect.Type) {
	var around []level
	next, key := t, false // what the next value is read into; whether a member's name is next
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end := stringEnd(data, i)
			if key {
				next, key = member(around[len(around)-1].t, data[i:end]), false
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
		case 'n': // of null, as no other word has one
			if len(around) > 0 && !around[len(around)-1].object && next != nil {
				return i, next
			}
			i += len("ull")
		}
	}
	return 0, nil
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

// element is the type of a list's items, nil for what is not a list.
func element(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// member is the type that a member is read into, nil for one nobody reads.
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
