package tenant_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// loading is asked for a place so often until it is loaded.
type loading struct {
	tenant.Partitions
	asked, until int
}

func (l *loading) Ensure(context.Context, tenant.Place) (made int64, err error) {
	if l.asked++; l.asked < l.until {
		return 0, tenant.ErrLoading
	}
	return 7, nil
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	l := &loading{until: 3}
	if made, err := tenant.Waiting(l).Ensure(t.Context(), tenant.Place{}); made != 7 || err != nil || l.asked != 3 {
		t.Errorf("Ensure = %d, %v, asked %d times", made, err, l.asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tenant.Waiting(&loading{until: 1000}).Ensure(ctx, tenant.Place{}); !errors.Is(err, tenant.ErrLoading) {
		t.Errorf("Ensure = %v, want it to give up with its context", err)
	}
}
