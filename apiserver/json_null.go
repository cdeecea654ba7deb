package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return err //nolint:wrapcheck // it was read before
	}
	if at, item := nullItem(reflect.TypeOf(v), document, ""); item != nil {
		return fault.New(fault.Invalid, "%s takes %s, not null", at, takes(item))
	}
	return nil
}

// nullItem finds the first null in a list, and what should be there.
func nullItem(t reflect.Type, v any, at string) (string, reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return "", nil
		}
		for i, item := range v {
			here := fmt.Sprintf("%s[%d]", at, i)
			if item == nil {
				return here, t.Elem()
			}
			if found, item := nullItem(t.Elem(), item, here); item != nil {
				return found, item
			}
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return "", nil
		}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if found, item := nullItem(t.Field(i).Type, v[name], strings.TrimPrefix(at+"."+name, ".")); item != nil {
				return found, item
			}
		}
	}
	return "", nil
}
