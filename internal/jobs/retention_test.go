package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// failingRetention has three tenants; the records of one cannot be deleted.
type failingRetention struct{ expired []tenant.ID }

var errLocked = errors.New("locked")

func (*failingRetention) ListTenantIDs(context.Context) ([]tenant.ID, error) {
	return []tenant.ID{"a", "b", "c"}, nil
}

func (r *failingRetention) ExpireRecords(_ context.Context, t tenant.ID) error {
	if t == "b" {
		return errLocked
	}
	r.expired = append(r.expired, t)
	return nil
}

func TestRetentionContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	r := &failingRetention{}
	if err := expireRecords(t.Context(), r); !errors.Is(err, errLocked) {
		t.Errorf("error = %v, want that of the tenant", err)
	}
	if diff := cmp.Diff([]tenant.ID{"a", "c"}, r.expired); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
}
