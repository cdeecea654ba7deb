// Package exactjson decodes JSON of other programs. encoding/json matches names of another case, and uses the last of
// several members with one name. A program that checked the document may have read another member.
package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// syntax accepts unpaired surrogates, which become U+FFFD.
var syntax = jsontext.AllowInvalidUTF8(true)

// Unmarshal decodes a document into v. Names of members match exactly, and unknown members are ignored. A member that an
// object has twice, at any depth, is an Invalid error that names it.
func Unmarshal(data []byte, v any) error {
	return explained(data, jsonv2.Unmarshal(data, v, syntax)) //nolint:wrapcheck // the types of its errors are examined
}

// Value decodes a document into maps and slices, with numbers as json.Number.
func Value(data []byte) (any, error) {
	if !jsontext.Value(data).IsValid(syntax) {
		return nil, explained(data, jsonv2.Unmarshal(data, new(any), syntax))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	return v, nil
}

func explained(data []byte, err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(e, jsontext.ErrDuplicateName) {
		return fault.New(fault.Invalid, "%s must not occur twice", Path(data, e.ByteOffset+1))
	}
	return err
}
