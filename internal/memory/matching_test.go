package memory

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/filter"
)

func TestDeleteMatching(t *testing.T) {
	t.Parallel()
	f := filled(2*matchBatch + 1)
	n, err := newService(f).DeleteMatching(t.Context(), alice, filter.Filter{})
	if err != nil || n != 2*matchBatch+1 || len(f.memories) != 0 || len(f.removed) != n {
		t.Errorf("deleted %d memories and %d units, %v; %d remain", n, len(f.removed), err, len(f.memories))
	}
	if f.listed != 0 {
		t.Errorf("%d memories were read, want their ids only", f.listed)
	}
	f = filled(1)
	f.storeFails = errUnavailable
	if _, err := newService(f).DeleteMatching(t.Context(), alice, filter.Filter{}); err == nil {
		t.Error("a failure of the store is ignored")
	}
}
