package retrieve

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
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
	changes = newForm(`(?i)\b(?:now|moved|moves|switched|changed|instead|postponed|rescheduled|brought forward|increased|decreased|`+
		`rose|raised|reduced|lowered|extended|replaced|renamed|updated)\b`,
		"now", "moved", "moves", "switched", "changed", "instead", "postponed", "rescheduled", "brought forward", "increased", "decreased",
		"rose", "raised", "reduced", "lowered", "extended", "replaced", "renamed", "updated")
	// ends says that something is not, or no longer, true.
	ends = newForm(`(?i)\b(?:not|never|no longer|cannot|\w+n['’]t|any ?more|stopped|quit|gave up|given up|sold|cancell?ed|ended)\b`,
		"not", "never", "no longer", "n't", "n’t", "more", "stopped", "quit", "gave up", "given up", "sold", "cancel", "ended")
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

// Statement is a parsed short text.
type Statement struct {
	words      []string // in lower case
	ordered    []string // stems of all words
	terms      []string // distinct stems without values and words of change, sorted
	values     []string
	about      []string // terms before "is"
	said       bool     // it has an "is"
	changed    bool
	ended      bool
	frame      string   // how it begins, if only one such statement is true at a time
	afterFrame []string // terms after the frame
}

// Supersedes reports whether the statement replaces an older one: it is
// about the same subject and gives another value, or says that the older one is no
// longer true. It prefers none over a wrong answer, and knows English; the rule about
// numbers applies to any language. similarity is 0 for unrelated and 1 for equal texts.
func (s Statement) Supersedes(older Statement, similarity float64) bool {
	if similarity < leastSimilar || len(older.terms) == 0 || len(s.terms) == 0 || older.otherSubject(s) {
		return false
	}
	if older.ended || s.ended {
		return older.isEnded(s)
	}
	if older.isEvent() || s.isEvent() && !s.changed {
		return false
	}
	return older.differs(s) && older.isReplaced(s)
}

// isReplaced reports whether the newer statement says something else about the same thing.
func (s Statement) isReplaced(newer Statement) bool {
	return newer.changed && share(s.terms, newer.terms) >= mostlyShared || s.sameAttribute(newer) || s.sameFrame(newer) || s.sameTerms(newer) || s.prefers(newer)
}

// isEnded reports whether only one of the statements is negated, and both are about the same.
func (s Statement) isEnded(newer Statement) bool {
	if s.ended == newer.ended || share(s.terms, newer.terms) < mostlyShared {
		return false
	}
	return newer.ended || share(newer.terms, s.terms) >= mostlyShared
}

// differs reports whether the statements have other terms or values, or the same ones in
// another order, as in "prefers tea to coffee".
func (s Statement) differs(newer Statement) bool {
	return !slices.Equal(s.ordered, newer.ordered) && (!slices.Equal(s.terms, newer.terms) || !slices.Equal(s.values, newer.values) || s.compares())
}

// compares reports whether the order of the terms matters.
func (s Statement) compares() bool {
	return slices.Contains(s.words, "to") || slices.Contains(s.words, "over")
}

// sameAttribute reports whether both say what the same attribute is.
func (s Statement) sameAttribute(newer Statement) bool {
	return s.said && newer.said && len(s.about) > 0 && slices.Equal(s.about, newer.about) && (newer.changed || s.isSingle())
}

// sameFrame reports whether both begin alike and neither only adds details.
func (s Statement) sameFrame(newer Statement) bool {
	if s.frame == "" || s.frame != newer.frame {
		return false
	}
	return share(s.afterFrame, newer.afterFrame) < 1 && share(newer.afterFrame, s.afterFrame) < 1 || !slices.Equal(s.values, newer.values)
}

// sameTerms reports whether both have the same terms with other values.
func (s Statement) sameTerms(newer Statement) bool {
	return len(s.values) > 0 && len(newer.values) > 0 && slices.Equal(s.terms, newer.terms) && !slices.Equal(s.values, newer.values)
}

// ParseStatement parses a short text.
func ParseStatement(text string) Statement {
	text = opener.ReplaceAllString(strings.TrimSpace(leadingDate.ReplaceAllString(norm.NFC.String(text), "")), "")
	s := Statement{words: plainWords(text), values: valuesOf(text), changed: changes.matches(text), ended: ends.matches(text)}
	if f := frames.FindStringSubmatch(text); f != nil {
		s.frame, s.afterFrame = strings.ToLower(f[1]), s.contents(text[len(f[0]):])
		if home.MatchString(s.frame) {
			s.frame = "home"
		}
	}
	s.ordered, s.terms = stems(s.words), s.contents(text)
	if at := states.FindStringIndex(text); at != nil {
		s.said, s.about = true, s.contents(text[:at[0]])
	}
	return s
}

// contents returns the terms of a part of the text, without values and words of change. It looks only for those that the whole text has.
func (s Statement) contents(part string) []string {
	if s.changed {
		part = changes.ReplaceAllString(part, " ")
	}
	if s.ended {
		part = ends.ReplaceAllString(part, " ")
	}
	if len(s.values) > 0 {
		part = valueForm.ReplaceAllString(part, " ")
	}
	out := terms(part)
	slices.Sort(out)
	return slices.Compact(out)
}

// otherSubject reports whether the statements are about different people or things with
// different numbers.
func (s Statement) otherSubject(other Statement) bool {
	return !slices.Equal(s.relatives(), other.relatives()) || !slices.Equal(s.identifier(), other.identifier())
}

func (s Statement) relatives() (out []string) {
	for _, w := range s.words {
		if relatives[w] {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// identifier returns the numbers or letters that name the subject at the beginning, as in
// "Chapter 3" and "Client 2, note 7".
func (s Statement) identifier() (out []string) {
	words := s.words
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
func (s Statement) isEvent() bool {
	return len(s.words) > 0 && (pastEvents[s.words[0]] || len(s.words[0]) > 4 && strings.HasSuffix(s.words[0], "ed"))
}

// isSingle reports whether the statement is about an attribute of which there is only one.
func (s Statement) isSingle() bool {
	return slices.ContainsFunc(s.words[:min(len(s.words), 8)], func(w string) bool { return single[w] && slices.Contains(s.about, stem(w)) })
}

// prefers reports whether both state a preference, or a rule, of which most is equal.
func (s Statement) prefers(newer Statement) bool {
	for _, verb := range []string{"prefers", "prefer", "should"} {
		if slices.Contains(s.words, verb) && slices.Contains(newer.words, verb) {
			most := max(len(s.terms), len(newer.terms))
			return most >= 3 && share(s.terms, newer.terms)*float64(len(s.terms)) >= float64(most)-1
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
