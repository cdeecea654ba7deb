package retrieve

import (
	"regexp"
	"slices"
	"strings"
)

// form is a regular expression of which each match contains one of some words. Most texts contain none of them, and checking for them is much
// faster than the expression.
type form struct {
	*regexp.Regexp
	words []string
}

// newForm returns a form. The words are in lower case.
func newForm(expression string, words ...string) form {
	return form{regexp.MustCompile(expression), words}
}

// possible reports whether the text contains one of the words.
func (f form) possible(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(text, w) })
}

// matches reports whether the form matches.
func (f form) matches(text string) bool { return f.possible(text) && f.MatchString(text) }
