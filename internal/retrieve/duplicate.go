package retrieve

import "slices"

// leastShared is the share of the terms that near-duplicates have in common.
const leastShared = 0.8

// NearDuplicate reports whether two short texts say the same in other words or with
// another date at the beginning: both have the same numbers and dates, neither negates
// the other, and nearly all terms are the same. A text that Supersedes another one is
// not its duplicate.
func NearDuplicate(a, b string) bool {
	x, y := newClaim(a), newClaim(b)
	if x.ended != y.ended || x.otherSubject(y) || !slices.Equal(x.values, y.values) || len(x.terms)+len(y.terms) == 0 {
		return false
	}
	both := share(x.terms, y.terms) * float64(len(x.terms))
	return 2*both/float64(len(x.terms)+len(y.terms)) >= leastShared && !Supersedes(a, b, 1) && !Supersedes(b, a, 1)
}
