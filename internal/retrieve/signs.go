package retrieve

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// addSigns adds the features that are not standardized.
func (c *comparison) addSigns(candidates []candidate, words [][]string, list []features) {
	question := c.query.Text
	you, when := asksYou.MatchString(question), asksWhen.MatchString(question)
	me := asksMe.MatchString(question) && !you
	dates := namedDates(question)
	for i, d := range candidates {
		f := &list[i]
		short := shortness(len(words[i]))
		f[featLexicalShort], f[featWordsShort] = short*f[featLexical], short*f[featWords]
		switch name := c.speaker[d.ID]; {
		case name != "" && c.names[name]:
			f[featSpeaker] = 1
		case name != "" && len(c.names) > 0:
			f[featSpeaker] = -1
		case name == "":
			f[featHuman], f[featMe] = number(d.Human), number(d.Human && me)
			f[featYou] = number(!d.Human && you)
		}
		if when {
			f[featWhen] = float64(timeExpressions(words[i]))
		}
		month, day := writtenOn(dates, InZone(d.At, c.query.Zone))
		inside := !c.query.Window.IsZero() && !d.At.IsZero() && c.query.Window.Contains(d.At)
		f[featMonth], f[featDay] = number(month || inside), number(day)
		f[featQuestion] = number(strings.HasSuffix(strings.TrimSpace(d.Text), "?"))
		f[featAddressed], f[featExclaims] = float64(addressed(words[i])), number(exclaims(d.Text))
	}
}

// addressed counts the words that address the reader, up to 2. A message about the other
// person is more often a reaction than a statement.
func addressed(words []string) (n int) {
	for _, w := range words {
		if w == "you" || w == "your" {
			n++
		}
	}
	return min(n, 2)
}

// exclaims reports whether a sentence ends with an exclamation mark, as greetings,
// thanks and congratulations do.
func exclaims(text string) bool {
	for i := strings.IndexByte(text, '!'); i >= 0; {
		next, size := utf8.DecodeRuneInString(text[i+1:])
		if size == 0 || unicode.IsSpace(next) {
			return true
		}
		distance := strings.IndexByte(text[i+1:], '!')
		if distance < 0 {
			return false
		}
		i += 1 + distance
	}
	return false
}

// timeWords occur in expressions of time.
var timeWords = setOf("yesterday today tonight tomorrow last next ago recently weekend since day days week weeks month months year years " +
	"monday tuesday wednesday thursday friday saturday sunday " +
	"january february march april june july august september october november december")

// timeExpressions counts the words of a text that occur in expressions of time, up to 2.
func timeExpressions(words []string) (n int) {
	for i, w := range words {
		number := w[0] >= '0' && w[0] <= '9'
		switch {
		case timeWords[w], number && len(w) == 4 && w[3] <= '9':
			n++
		case number && len(w) > 2 && slices.Contains([]string{"st", "nd", "rd", "th"}, w[len(w)-2:]):
			n++
		case w == "this" && i+1 < len(words) && slices.Contains([]string{"morning", "evening", "summer", "past"}, words[i+1]):
			n++
		}
		if n == 2 {
			return n
		}
	}
	return n
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// namedDate is a month, perhaps with a day and a year (0 if not named).
type namedDate struct {
	year, day int
	month     time.Month
}

var dateForm = regexp.MustCompile(`(?i)(?:(\d{1,2})(?:st|nd|rd|th)? +(?:of +)?)?\b(january|february|march|april|june|july|august|september|october|november|december|may)` +
	`\b(?: *(?:the )?(\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? *(\d{4}))?`)

// namedDates returns the dates that a question names, in English.
func namedDates(question string) []namedDate {
	var out []namedDate
	for _, m := range dateForm.FindAllStringSubmatch(question, -1) {
		d := namedDate{month: months[strings.ToLower(m[2])]}
		if m[1] == "" || m[3] == "" { // "1 May 2" names no day
			d.day, _ = strconv.Atoi(m[1] + m[3])
		}
		d.year, _ = strconv.Atoi(m[4])
		if d.day > 31 {
			d.day = 0
		}
		if d.month == time.May && d.day == 0 && d.year == 0 {
			continue // more often a verb
		}
		out = append(out, d)
	}
	return out
}

// daysFrom returns the number of days between the date, of any year if it names none, and
// a time.
func (d namedDate) daysFrom(at time.Time) int {
	const day = 24 * time.Hour
	written := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	least := math.MaxInt
	for year := at.Year() - 1; year <= at.Year()+1; year++ {
		if d.year == 0 || d.year == year {
			least = min(least, int(written.Sub(time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC)).Abs()/day))
		}
	}
	return least
}

// writtenOn reports whether a message was written in a named month, and within three
// days of a named day.
func writtenOn(dates []namedDate, at time.Time) (month, day bool) {
	in := func(d namedDate) bool {
		return !at.IsZero() && at.Month() == d.month && (d.year == 0 || at.Year() == d.year)
	}
	near := func(d namedDate) bool { return !at.IsZero() && d.day != 0 && d.daysFrom(at) <= 3 }
	return slices.ContainsFunc(dates, in), slices.ContainsFunc(dates, near)
}
