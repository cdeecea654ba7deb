package retrieve_test

import (
	"math"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

func TestUnitSet(t *testing.T) {
	t.Parallel()
	ids := []retrieve.UnitID{1, 5000, 1 << 12, math.MaxInt64, 0}
	others := []retrieve.UnitID{2, 1 + 1<<12, 5000 - 1<<12, 2 << 12, math.MaxInt64 - 1, -1}
	s := retrieve.NewUnitSet(ids)
	for _, id := range ids {
		if !s.Has(id) {
			t.Errorf("the set does not contain %d", id)
		}
	}
	for _, id := range others {
		if s.Has(id) {
			t.Errorf("the set contains %d", id)
		}
	}
	s.Remove(ids[0])
	s.Remove(others[0])
	if s.Has(ids[0]) {
		t.Errorf("the set contains %d, which was removed", ids[0])
	}
	for _, id := range ids[1:] {
		if !s.Has(id) {
			t.Errorf("the set does not contain %d after the removal of another unit", id)
		}
	}
}
