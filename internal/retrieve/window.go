package retrieve

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Window is a span of time from From (inclusive) to To (exclusive); zero is unbounded.
type Window struct {
	From, To time.Time
}

// IsZero reports whether the window is unbounded on both sides.
func (w Window) IsZero() bool { return w.From.IsZero() && w.To.IsZero() }

// Contains reports whether the time is in the window.
func (w Window) Contains(t time.Time) bool {
	return (w.From.IsZero() || !t.Before(w.From)) && (w.To.IsZero() || t.Before(w.To))
}

// ParseWindow returns the time in the past that an English question is about,
// such as "last May", "on 3 May 2026", "two weeks ago" or "since January", in the
// time zone of now. The bounds are the first moments of days. It prefers none over a wrong one: it returns none if the question
// names two times, quotes a time, or names a time in the future.
func ParseWindow(question string, now time.Time) (Window, bool) {
	p := windowParser{words: words(question), now: wallClock(now)}
	var found []Window
	for p.at < len(p.words) {
		w, n, ok := p.next()
		if !ok {
			p.at++
			continue
		}
		p.at += n
		if !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	if len(found) != 1 {
		return Window{}, false
	}
	w := found[0]
	if w.From.After(p.now) || w.From.IsZero() && w.To.After(p.now) {
		return Window{}, false
	}
	return Window{boundIn(w.From, now.Location()), boundIn(w.To, now.Location())}, true
}

// boundIn returns the start of the day of a bound in a time zone. Zero stays unbounded.
func boundIn(bound time.Time, zone *time.Location) time.Time {
	if bound.IsZero() {
		return bound
	}
	return StartOfDay(bound, zone)
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"|“[^”]*”|«[^»]*»` + "|`[^`]*`")
	wordForm = regexp.MustCompile(`\d{4}-\d{2}-\d{2}|\d{4}-\d{2}\b|[\p{L}\p{N}_]+(?:['’]\p{L}+)?|[.?!;:,]`)
)

// words splits a question into words and punctuation. Quoted text is dropped, because
// it is a name rather than a time.
func words(question string) []string {
	const longest = 2000 // longer texts are documents rather than questions
	if len(question) > longest {
		question = question[:longest]
	}
	return wordForm.FindAllString(quoted.ReplaceAllString(question, " . "), -1)
}

// windowParser parses time expressions. It computes with the time of the wall clock in UTC, where each day has 24 hours.
type windowParser struct {
	words []string
	at    int
	now   time.Time
}

// word returns the i-th word from the current one, in lower case and without a genitive
// suffix, or "" past the end.
func (p *windowParser) word(i int) string {
	if p.at+i >= len(p.words) {
		return ""
	}
	w := strings.ToLower(p.words[p.at+i])
	return strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")
}

// genitive reports whether the i-th word is a genitive: "June's" more often refers to a
// person than to a month.
func (p *windowParser) genitive(i int) bool {
	return p.at+i < len(p.words) && strings.ToLower(p.words[p.at+i]) != p.word(i)
}

// capital reports whether the i-th word starts with a capital.
func (p *windowParser) capital(i int) bool {
	return p.at+i < len(p.words) && p.words[p.at+i][:1] != strings.ToLower(p.words[p.at+i][:1])
}

// next parses the phrase at the current word and returns its number of words.
func (p *windowParser) next() (Window, int, bool) {
	bound := p.word(0)
	switch bound {
	case "since", "after", "before", "until", "till":
	default:
		return p.span("")
	}
	p.at++
	w, n, ok := p.span(bound)
	p.at--
	if !ok {
		return Window{}, 0, false
	}
	switch bound {
	case "since":
		w.To = time.Time{}
	case "after":
		w = Window{From: w.To}
	default:
		w = Window{To: w.From}
	}
	return w, n + 1, !w.IsZero()
}

// span parses a phrase that names a span of time. lead is the preceding preposition, if
// any.
func (p *windowParser) span(lead string) (Window, int, bool) {
	skip := 0
	if lead == "" && slices.Contains([]string{"in", "on", "during", "from", "of", "over", "within"}, p.word(0)) {
		lead, skip = p.word(0), 1
		if p.word(1) == "the" {
			skip = 2
		}
	}
	p.at += skip
	defer func() { p.at -= skip }()
	for _, read := range []func(string) (Window, int, bool){p.relative, p.ago, p.last, p.date, p.month, p.year} {
		if w, n, ok := read(lead); ok {
			return w, n + skip, true
		}
	}
	return Window{}, 0, false
}

func (p *windowParser) today() time.Time { return startOfDay(p.now) }

func startOfDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

// days returns the window of n days starting at day.
func days(day time.Time, n int) Window { return Window{day, day.AddDate(0, 0, n)} }

// relative parses "today", "yesterday", "the day before yesterday", "this morning" and
// "last night".
func (p *windowParser) relative(string) (Window, int, bool) {
	for i, before := range []string{"the", "day", "before", "yesterday"} {
		if p.word(i) != before {
			break
		}
		if before == "yesterday" {
			return days(p.today().AddDate(0, 0, -2), 1), 4, true
		}
	}
	switch p.word(0) + " " + p.word(1) {
	case "this morning", "this afternoon", "this evening":
		return days(p.today(), 1), 2, true
	case "last night":
		return days(p.today().AddDate(0, 0, -1), 2), 2, true
	}
	switch p.word(0) {
	case "today", "tonight":
		return days(p.today(), 1), 1, !p.genitive(0)
	case "yesterday":
		return days(p.today().AddDate(0, 0, -1), 1), 1, true
	}
	return Window{}, 0, false
}
