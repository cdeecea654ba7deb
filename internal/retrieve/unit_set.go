package retrieve

// UnitSet is a set of a few units among many, most of which it excludes without looking them up.
type UnitSet struct {
	units map[UnitID]bool
	some  [1 << 12]bool // whether there are units with these last bits
}

// NewUnitSet returns the set of the units.
func NewUnitSet(ids []UnitID) *UnitSet {
	s := &UnitSet{units: make(map[UnitID]bool, len(ids))}
	for _, id := range ids {
		s.units[id], s.some[s.bits(id)] = true, true
	}
	return s
}

// Has reports whether the set contains the unit.
func (s *UnitSet) Has(id UnitID) bool { return s.some[s.bits(id)] && s.units[id] }

// Remove removes the unit, if the set contains it.
func (s *UnitSet) Remove(id UnitID) { delete(s.units, id) }

func (s *UnitSet) bits(id UnitID) int { return int(uint64(id) % uint64(len(s.some))) } //nolint:gosec // smaller than the length
