package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
		want   fault.Kind
	}{
		"plain":   {"an unclassified error is internal", io.EOF, fault.Internal},
		"new":     {"an Error has its own kind", fault.New(fault.NotFound, "memory not found"), fault.NotFound},
		"wrapped": {"wrapping keeps the kind", fmt.Errorf("delete memory: %w", fault.New(fault.Conflict, "name exists")), fault.Conflict},
		"outer":   {"the outermost Error determines the kind", fault.Wrap(fault.Unavailable, fault.New(fault.NotFound, "x"), "y"), fault.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fault.KindOf(tc.err); got != tc.want {
				t.Errorf("%s: KindOf = %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWrapKeepsCause(t *testing.T) {
	t.Parallel()
	if err := fault.Wrap(fault.Unavailable, nil, "PostgreSQL is unavailable"); err != nil {
		t.Errorf("Wrap(nil) = %v", err)
	}
	err := fault.Wrap(fault.Unavailable, io.ErrUnexpectedEOF, "PostgreSQL is unavailable")
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "PostgreSQL is unavailable: unexpected EOF" {
		t.Errorf("Wrap = %v", err)
	}
}

func TestFieldsReportsEveryField(t *testing.T) {
	t.Parallel()
	var f fault.Fields
	if err := f.Err(); err != nil {
		t.Errorf("no problems: Err = %v", err)
	}
	f.Add("count", "must be at least 1, not %d", 0)
	f.Add("skip", "must be at least 0, not %d", -1)
	err := f.Err()
	if !fault.Is(err, fault.Invalid) || err.Error() != "count must be at least 1, not 0; skip must be at least 0, not -1" {
		t.Errorf("Err = %v", err)
	}
}

func TestWithFieldNames(t *testing.T) {
	t.Parallel()
	original := &fault.Error{Kind: fault.Invalid, Message: "ids must not be empty; text is required",
		Fields: []fault.Field{{Name: "ids", Problem: "must not be empty"}, {Name: "text", Problem: "is required"}}}
	renamed := original.WithFieldNames(map[string]string{"ids": "memoryIds"})
	if want := "memoryIds must not be empty; text is required"; renamed.Message != want {
		t.Errorf("renamed: %q, want %q", renamed.Message, want)
	}
	if want := "ids must not be empty; text is required"; original.Message != want {
		t.Errorf("original: %q, want %q", original.Message, want)
	}
	var nested fault.Fields
	nested.Add("messages[3].text", "is required")
	nested.Add("messages[3]", "must be an object")
	f, _ := errors.AsType[*fault.Error](nested.Err())
	indexed := f.WithFieldNames(map[string]string{"messages[].text": "conversation.messages[].content"})
	if want := "conversation.messages[3].content is required; messages[3] must be an object"; indexed.Message != want {
		t.Errorf("list element: %q, want %q", indexed.Message, want)
	}
	var members fault.Fields
	members.Add("metadata.a.b[3]", "is required")
	members.Add("metadata[2]", "is required")
	members.Add("filter.metadata", "is required")
	f, _ = errors.AsType[*fault.Error](members.Err())
	of := f.WithFieldNames(map[string]string{"metadata": "customMetadata"})
	if want := "customMetadata.a.b[3] is required; customMetadata[2] is required; filter.metadata is required"; of.Message != want {
		t.Errorf("member: %q, want %q", of.Message, want)
	}
	plain := fault.New(fault.NotFound, "memory not found")
	if got := plain.WithFieldNames(nil); got != plain {
		t.Errorf("an error without fields: %v, want it unchanged", got)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	var a, b fault.Fields
	if err := fault.Join(a.Err(), b.Err()); err != nil {
		t.Errorf("without errors: Join = %v, want nil", err)
	}
	a.Add("count", "is required")
	b.Add("skip", "is required")
	if err := fault.Join(a.Err(), nil, b.Err()); err == nil || err.Error() != "count is required; skip is required" {
		t.Errorf("Join = %v", err)
	}
}

// input is an input without a text.
type input struct{}

func (input) Validate() error {
	var f fault.Fields
	f.Add("text", "is required")
	return f.Err()
}

// An input is validated with the fields only if they are refused anyway: otherwise its service validates it.
func TestErrWith(t *testing.T) {
	t.Parallel()
	var f fault.Fields
	if err := f.ErrWith(input{}); err != nil {
		t.Errorf("without fields: ErrWith = %v, want nil", err)
	}
	f.Add("count", "is required")
	if err := f.ErrWith(input{}); err == nil || err.Error() != "count is required; text is required" {
		t.Errorf("ErrWith = %v", err)
	}
}
