package textrule

import (
	"strings"
	"unicode"
)

// IsBlank reports whether a reader sees nothing of the text: it is empty or has only white space, control characters,
// format characters and other characters without a glyph. A required text must not be blank.
func IsBlank(s string) bool { return !strings.ContainsFunc(s, visible) }

// braillePatternBlank is a symbol without a dot.
const braillePatternBlank = '\u2800'

func visible(r rune) bool {
	return r != braillePatternBlank && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// NameProblem returns why the text must not be in the name of an object, as the predicate of an error; "" if it may.
// Names are shown within other texts, which control characters could change and bidirectional controls reorder.
func NameProblem(s string) string {
	switch {
	case strings.ContainsFunc(s, breaksLine):
		return "must not contain line breaks or control characters"
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }):
		return "must not contain characters that change the direction of text"
	}
	return ""
}

func breaksLine(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) }
