package postgres

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// nameKey is what tells names of buckets apart: two that a reader takes for the
// same have the same one. Case is folded, composed and decomposed characters
// are one, and what cannot be seen does not count.
func nameKey(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, name)
	// Folding may take a composed character apart.
	return strings.TrimSpace(norm.NFC.String(cases.Fold().String(norm.NFC.String(name))))
}
