package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var listIndex = regexp.MustCompile(`\[\d+\]`)

// Field is an invalid field of an input.
type Field struct {
	Name    string
	Problem string // continues the name: "must be at least 1, not 0"
}

// Fields collects the invalid fields of an input, so that one error reports all
// of them. The zero value is ready to use.
type Fields struct{ list []Field }

// Add records that a field is invalid and why, for example
// Add("count", "must be at least 1, not %d", n).
func (f *Fields) Add(field, format string, args ...any) {
	f.list = append(f.list, Field{field, fmt.Sprintf(format, args...)})
}

// Err returns one Invalid error for all fields, or nil if there are none.
func (f *Fields) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Message: describe(f.list), Fields: f.list}
}

// ErrWith returns one Invalid error for all fields and those of the input that was converted with them, or nil if
// there are none: then the input is validated by the service that accepts it.
func (f *Fields) ErrWith(input interface{ Validate() error }) error {
	if len(f.list) == 0 {
		return nil
	}
	return Join(f.Err(), input.Validate())
}

// WithFieldNames returns e with its fields renamed, for a caller whose input uses
// other names. The map has [] in place of a list index: its entry for
// "messages[].text" renames "messages[3].text". A member of a renamed field is renamed
// with it: "metadata.a" begins with the new name of "metadata". Other names are unchanged.
func (e *Error) WithFieldNames(names map[string]string) *Error {
	if e.Fields == nil {
		return e
	}
	renamed := *e
	renamed.Fields = make([]Field, len(e.Fields))
	for i, f := range e.Fields {
		renamed.Fields[i] = Field{rename(f.Name, names), f.Problem}
	}
	renamed.Message = describe(renamed.Fields)
	return &renamed
}

func rename(field string, names map[string]string) string {
	index := listIndex.FindString(field)
	if name, ok := names[listIndex.ReplaceAllLiteralString(field, "[]")]; ok {
		return strings.Replace(name, "[]", index, 1)
	}
	if end := strings.IndexAny(field, ".["); end > 0 {
		if name, ok := names[field[:end]]; ok {
			return name + field[end:]
		}
	}
	return field
}

// Join combines the Invalid errors of several Fields into one. It returns nil if
// all of them are nil.
func Join(errs ...error) error {
	var all Fields
	for _, err := range errs {
		if e, ok := errors.AsType[*Error](err); ok {
			all.list = append(all.list, e.Fields...)
		}
	}
	return all.Err()
}

func describe(fields []Field) string {
	problems := make([]string, len(fields))
	for i, f := range fields {
		problems[i] = f.Name + " " + f.Problem
	}
	return strings.Join(problems, "; ")
}
