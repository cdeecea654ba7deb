package retrieve

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// leastSimilar is the similarity below which two texts are about different things.
	leastSimilar = 0.25
	// mostlyShared is the share of an older statement's terms that a newer one repeats if
	// it says that something changed or ended.
	mostlyShared = 0.5
)

var (
	// changes says that the newer statement replaces another one. It has no terms.
	changes = regexp.MustCompile(`(?i)\b(?:now|moved|moves|switched|changed|instead|postponed|rescheduled|brought forward|increased|decreased|` +
		`rose|raised|reduced|lowered|extended|replaced|renamed|updated)\b`)
	// ends says that something is not, or no longer, true.
	ends = regexp.MustCompile(`(?i)\b(?:not|never|no longer|cannot|\w+n['’]t|any ?more|stopped|quit|gave up|given up|sold|cancell?ed|ended)\b`)
	// states divides a statement into what it is about and what it says of that.
	states = regexp.MustCompile(`(?i)\b(?:is|are|was|were|will be|became)\b(?: called| named)?`)
	// single are attributes of which there is only one.
	single = setOf("address advisor answer birthday boss branch budget code colour color date deadline dentist doctor email employer favorite favourite goal " +
		"height job landlord language limit manager name nickname number password phone pin plan price rate rent role salary size status target therapist time version weight")
	// relatives are subjects of their own: a statement about one does not replace that about another.
	relatives = setOf("mother mom mum father dad sister brother son daughter aunt uncle cousin wife husband partner girlfriend boyfriend grandmother grandma " +
		"grandfather grandpa nephew niece friend colleague neighbour neighbor")
	// pastEvents are irregular verbs that tell what happened once; "-ed" tells it otherwise.
	pastEvents = setOf("ran slept paid spent ate drank met saw went bought read wrote took gave made got did had came left sent told said drove flew rode swam won lost")
	// frames are ways to begin a statement of which only one is true of a person at a time.
	frames = regexp.MustCompile(`(?i)^(?:now )?(lives? in|resides? in|(?:is|am) based in|moved to|works? at|works? for|studies at|study at|drives? an?|weighs?)\b`)
	opener = regexp.MustCompile(`(?i)^(?:(?:the )?user|i|we|he|she)\s+`)
	// moving to a place is a statement about where somebody lives.
	home = regexp.MustCompile(`(?i)^(?:lives? in|resides? in|(?:is|am) based in|moved to)$`)
)

// claim is a parsed statement.
type claim struct {
	words   []string // in lower case
	ordered []string // stems of all words
	terms   []string // distinct stems without values and words of change, sorted
	values  []string
	about   []string // terms before "is"
	said    bool     // it has an "is"
	changed bool
	ended   bool
	frame   string   // how it begins, if only one such statement is true at a time
	rest    []string // terms after the frame
}

// Supersedes reports whether the newer of two short texts replaces the older one: it is
// about the same subject and gives another value, or says that the older one is no
// longer true. It prefers none over a wrong answer, and knows English; the rule about
// numbers applies to any language. similarity is 0 for unrelated and 1 for equal texts.
func Supersedes(older, newer string, similarity float64) bool {
	a, b := newClaim(older), newClaim(newer)
	if similarity < leastSimilar || len(a.terms) == 0 || len(b.terms) == 0 || a.otherSubject(b) {
		return false
	}
	if a.ended || b.ended {
		return a.isEnded(b)
	}
	if a.isEvent() || b.isEvent() && !b.changed {
		return false
	}
	return a.differs(b) && a.isReplaced(b)
}

// isReplaced reports whether the newer statement says something else about the same thing.
func (c claim) isReplaced(newer claim) bool {
	return newer.changed && share(c.terms, newer.terms) >= mostlyShared || c.sameAttribute(newer) || c.sameFrame(newer) || c.sameTerms(newer) || c.prefers(newer)
}

// isEnded reports whether only one of the statements is negated, and both are about the same.
func (c claim) isEnded(newer claim) bool {
	if c.ended == newer.ended || share(c.terms, newer.terms) < mostlyShared {
		return false
	}
	return newer.ended || share(newer.terms, c.terms) >= mostlyShared
}

// differs reports whether the statements have other terms or values, or the same ones in
// another order, as in "prefers tea to coffee".
func (c claim) differs(newer claim) bool {
	return !slices.Equal(c.ordered, newer.ordered) && (!slices.Equal(c.terms, newer.terms) || !slices.Equal(c.values, newer.values) || c.compares())
}

// compares reports whether the order of the terms matters.
func (c claim) compares() bool {
	return slices.Contains(c.words, "to") || slices.Contains(c.words, "over")
}

// sameAttribute reports whether both say what the same attribute is.
func (c claim) sameAttribute(newer claim) bool {
	return c.said && newer.said && len(c.about) > 0 && slices.Equal(c.about, newer.about) && (newer.changed || c.isSingle())
}

// sameFrame reports whether both begin alike and neither only adds details.
func (c claim) sameFrame(newer claim) bool {
	if c.frame == "" || c.frame != newer.frame {
		return false
	}
	return share(c.rest, newer.rest) < 1 && share(newer.rest, c.rest) < 1 || !slices.Equal(c.values, newer.values)
}

// sameTerms reports whether both have the same terms with other values.
func (c claim) sameTerms(newer claim) bool {
	return len(c.values) > 0 && len(newer.values) > 0 && slices.Equal(c.terms, newer.terms) && !slices.Equal(c.values, newer.values)
}

func newClaim(text string) claim {
	text = opener.ReplaceAllString(strings.TrimSpace(leadingDate.ReplaceAllString(text, "")), "")
	c := claim{words: plainWords(text), values: valuesOf(text), changed: changes.MatchString(text), ended: ends.MatchString(text)}
	if f := frames.FindStringSubmatch(text); f != nil {
		c.frame, c.rest = strings.ToLower(f[1]), contents(text[len(f[0]):])
		if home.MatchString(c.frame) {
			c.frame = "home"
		}
	}
	c.ordered, c.terms = stems(c.words), contents(text)
	if at := states.FindStringIndex(text); at != nil {
		c.said, c.about = true, contents(text[:at[0]])
	}
	return c
}

// contents returns the terms of a text without values and words of change.
func contents(text string) []string {
	text = valueForm.ReplaceAllString(ends.ReplaceAllString(changes.ReplaceAllString(text, " "), " "), " ")
	out := terms(text)
	slices.Sort(out)
	return slices.Compact(out)
}

// otherSubject reports whether the statements are about different people or things with
// different numbers.
func (c claim) otherSubject(other claim) bool {
	return !slices.Equal(c.relatives(), other.relatives()) || !slices.Equal(c.identifier(), other.identifier())
}

func (c claim) relatives() (out []string) {
	for _, w := range c.words {
		if relatives[w] {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// identifier returns the numbers or letters that name the subject at the beginning, as in
// "Chapter 3" and "Client 2, note 7".
func (c claim) identifier() (out []string) {
	words := c.words
	if len(words) > 0 && words[0] == "the" {
		words = words[1:]
	}
	for ; len(words) > 2 && !pastEvents[words[0]] && !frames.MatchString(words[0]) && isLabel(words[1]); words = words[2:] {
		out = append(out, words[1])
	}
	return out
}

func isLabel(word string) bool {
	return word[0] >= '0' && word[0] <= '9' || len(word) == 1 && unicode.IsLetter(rune(word[0])) && word != "a" && word != "i"
}

// isEvent reports whether the statement tells what happened once.
func (c claim) isEvent() bool {
	return len(c.words) > 0 && (pastEvents[c.words[0]] || len(c.words[0]) > 4 && strings.HasSuffix(c.words[0], "ed"))
}

// isSingle reports whether the statement is about an attribute of which there is only one.
func (c claim) isSingle() bool {
	return slices.ContainsFunc(c.words[:min(len(c.words), 8)], func(w string) bool { return single[w] && slices.Contains(c.about, stem(w)) })
}

// prefers reports whether both state a preference, or a rule, of which most is equal.
func (c claim) prefers(newer claim) bool {
	for _, verb := range []string{"prefers", "prefer", "should"} {
		if slices.Contains(c.words, verb) && slices.Contains(newer.words, verb) {
			most := max(len(c.terms), len(newer.terms))
			return most >= 3 && share(c.terms, newer.terms)*float64(len(c.terms)) >= float64(most)-1
		}
	}
	return false
}

// share returns the share of the terms that the other statement contains too.
func share(terms, other []string) float64 {
	n := 0
	for _, t := range terms {
		if slices.Contains(other, t) {
			n++
		}
	}
	return float64(n) / float64(max(len(terms), 1))
}
