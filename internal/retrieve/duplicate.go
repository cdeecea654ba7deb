package retrieve

import "slices"

// leastShared is the share of the terms that near-duplicates have in common.
const leastShared = 0.8

// NearDuplicate reports whether two statements say the same in other words or with
// another date at the beginning: both have the same numbers and dates, neither negates
// the other, and nearly all terms are the same. A statement that Supersedes another one is
// not its duplicate.
func (s Statement) NearDuplicate(other Statement) bool {
	if s.ended != other.ended || s.otherSubject(other) || !slices.Equal(s.values, other.values) || len(s.terms)+len(other.terms) == 0 {
		return false
	}
	both := share(s.terms, other.terms) * float64(len(s.terms))
	return 2*both/float64(len(s.terms)+len(other.terms)) >= leastShared && !s.Supersedes(other, 1) && !other.Supersedes(s, 1)
}
