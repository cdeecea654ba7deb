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
		"plain":   {"an error nobody classified is ours", io.EOF, fault.Internal},
		"new":     {"a fault has its own kind", fault.New(fault.NotFound, "memory not found"), fault.NotFound},
		"wrapped": {"context keeps the kind", fmt.Errorf("delete memory: %w", fault.New(fault.Conflict, "taken")), fault.Conflict},
		"outer":   {"the outermost fault decides", fault.Wrap(fault.Unavailable, fault.New(fault.NotFound, "x"), "y"), fault.Unavailable},
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

func TestWrapKeepsTheCause(t *testing.T) {
	t.Parallel()
	if err := fault.Wrap(fault.Unavailable, nil, "PostgreSQL is away"); err != nil {
		t.Errorf("Wrap(nil) = %v", err)
	}
	err := fault.Wrap(fault.Unavailable, io.ErrUnexpectedEOF, "PostgreSQL is away")
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "PostgreSQL is away: unexpected EOF" {
		t.Errorf("Wrap = %v", err)
	}
}

func TestFieldsNamesEveryProblem(t *testing.T) {
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
