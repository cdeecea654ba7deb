package retrieve

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var months = map[string]time.Month{
	"january": time.January, "february": time.February, "march": time.March, "april": time.April, "may": time.May,
	"june": time.June, "july": time.July, "august": time.August, "september": time.September, "october": time.October,
	"november": time.November, "december": time.December,
	"jan": time.January, "feb": time.February, "mar": time.March, "apr": time.April, "jun": time.June, "jul": time.July,
	"aug": time.August, "sep": time.September, "sept": time.September, "oct": time.October, "nov": time.November, "dec": time.December,
}

var weekdays = map[string]time.Weekday{
	"sunday": time.Sunday, "monday": time.Monday, "tuesday": time.Tuesday, "wednesday": time.Wednesday,
	"thursday": time.Thursday, "friday": time.Friday, "saturday": time.Saturday,
}

var numbers = map[string]int{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12,
}

const (
	// oldest is the first year that is taken for one, for numbers that may
	// count something else.
	oldest = 1990
	// most is the largest count of days, weeks, months or years.
	most = 1000
)

// count reads a number of units of time, such as "3", "two" or "a couple of".
func (p *windowParser) count(i int) (n, words int, ok bool) {
	if p.word(i) == "a" && p.word(i+1) == "couple" {
		if p.word(i+2) == "of" {
			return 2, 3, true
		}
		return 2, 2, true
	}
	if n, ok := numbers[p.word(i)]; ok {
		return n, 1, true
	}
	n, err := strconv.Atoi(p.word(i))
	return n, 1, err == nil && n > 0 && n <= most
}

// unit reads "day", "weeks" and so on.
func unit(word string) (string, bool) {
	word = strings.TrimSuffix(word, "s")
	return word, slices.Contains([]string{"day", "week", "month", "year"}, word)
}

// back returns the time n units before.
func back(t time.Time, n int, unit string) time.Time {
	switch unit {
	case "day":
		return t.AddDate(0, 0, -n)
	case "week":
		return t.AddDate(0, 0, -7*n)
	case "month":
		// Of the month, not of the day: there is no 31 February.
		return time.Date(t.Year(), t.Month()-time.Month(n), 1, 0, 0, 0, 0, t.Location())
	}
	return time.Date(t.Year()-n, time.January, 1, 0, 0, 0, 0, t.Location())
}

// calendar returns the calendar's day, week (from Monday), month or year that
// the time is in.
func calendar(t time.Time, unit string) Window {
	day := startOfDay(t)
	switch unit {
	case "day":
		return days(day, 1)
	case "week":
		return days(day.AddDate(0, 0, -(int(day.Weekday())+6)%7), 7)
	case "month":
		first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, t.Location())
		return Window{first, first.AddDate(0, 1, 0)}
	}
	first := time.Date(t.Year(), time.January, 1, 0, 0, 0, 0, t.Location())
	return Window{first, first.AddDate(1, 0, 0)}
}

// ago reads "two weeks ago".
func (p *windowParser) ago(string) (Window, int, bool) {
	n, words, ok := p.count(0)
	if !ok {
		return Window{}, 0, false
	}
	u, ok := unit(p.word(words))
	if !ok || p.word(words+1) != "ago" {
		return Window{}, 0, false
	}
	return calendar(back(p.now, n, u), u), words + 2, true
}

// last reads "last week", "this month", "the past three days", "last May" and
// "last Monday".
func (p *windowParser) last(string) (Window, int, bool) {
	which := p.word(0)
	if !slices.Contains([]string{"last", "past", "previous", "this"}, which) {
		return Window{}, 0, false
	}
	if u, ok := unit(p.word(1)); ok && u == p.word(1) && u != "day" {
		switch which {
		case "this":
			return calendar(p.now, u), 2, true
		case "past":
			return Window{p.past(1, u), p.today().AddDate(0, 0, 1)}, 2, true
		}
		return calendar(back(p.now, 1, u), u), 2, true
	}
	if day, ok := weekdays[p.word(1)]; ok && which == "last" && !p.genitive(1) {
		ago := (int(p.now.Weekday())-int(day)+6)%7 + 1
		return days(p.today().AddDate(0, 0, -ago), 1), 2, true
	}
	if month, ok := months[p.word(1)]; ok && which != "past" && !p.genitive(1) {
		return p.lastMonth(which, month)
	}
	if n, words, ok := p.count(1); ok && which != "this" {
		if u, ok := unit(p.word(1 + words)); ok {
			return Window{p.past(n, u), p.today().AddDate(0, 0, 1)}, words + 2, true
		}
	}
	return Window{}, 0, false
}

// past is when the last n units began, day for day.
func (p *windowParser) past(n int, unit string) time.Time {
	switch unit {
	case "month":
		return p.today().AddDate(0, -n, 0)
	case "year":
		return p.today().AddDate(-n, 0, 0)
	}
	return back(p.today(), n, unit)
}

// lastMonth is "last May", the one before now's, or "this May".
func (p *windowParser) lastMonth(which string, month time.Month) (Window, int, bool) {
	year := p.now.Year()
	if which != "this" && month >= p.now.Month() {
		year--
	}
	if y, ok := p.yearAt(2); ok { // "last May 2024" is a slip, not two times
		return monthOf(y, month, p.now.Location()), 3, true
	}
	return monthOf(year, month, p.now.Location()), 2, true
}

func monthOf(year int, month time.Month, zone *time.Location) Window {
	return calendar(time.Date(year, month, 1, 0, 0, 0, 0, zone), "month")
}

var isoDate = regexp.MustCompile(`^(\d{4})-(\d{2})(?:-(\d{2}))?$`)

// date reads a day: "2026-05-03", "3 May 2026", "the 3rd of May", "May 3rd,
// 2026"; and "2026-05".
func (p *windowParser) date(lead string) (Window, int, bool) {
	if m := isoDate.FindStringSubmatch(p.word(0)); m != nil {
		if m[3] == "" {
			t, err := time.ParseInLocation("2006-01", m[0], p.now.Location())
			return calendar(t, "month"), 1, err == nil
		}
		t, err := time.ParseInLocation(time.DateOnly, m[0], p.now.Location())
		return days(t, 1), 1, err == nil
	}
	i := 0
	if p.word(0) == "the" {
		i = 1
	}
	if day, ok := dayNumber(p.word(i)); ok {
		i++
		if p.word(i) == "of" {
			i++
		}
		if month, ok := p.monthAt(i, true); ok {
			return p.dayOf(day, month, i+1)
		}
		return Window{}, 0, false
	}
	month, ok := p.monthAt(0, lead != "" || p.capital(0))
	if !ok {
		return Window{}, 0, false
	}
	if p.word(1) == "the" {
		i = 1
	}
	day, ok := dayNumber(p.word(i + 1))
	if !ok {
		return Window{}, 0, false
	}
	return p.dayOf(day, month, i+2)
}

// dayOf is a day whose year may follow at word i; without one it is the latest
// that is not to come.
func (p *windowParser) dayOf(day int, month time.Month, i int) (Window, int, bool) {
	year, given := p.yearAt(i)
	if !given && p.word(i) == "," {
		if year, given = p.yearAt(i + 1); given {
			i++
		}
	}
	if !given {
		year = p.now.Year()
		if time.Date(year, month, day, 0, 0, 0, 0, p.now.Location()).After(p.now) {
			year--
		}
	} else {
		i++
	}
	t := time.Date(year, month, day, 0, 0, 0, 0, p.now.Location())
	return days(t, 1), i, t.Day() == day // there is no 31 February
}

var dayForm = regexp.MustCompile(`^(\d{1,2})(st|nd|rd|th)?$`)

func dayNumber(word string) (int, bool) {
	m := dayForm.FindStringSubmatch(word)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil && n >= 1 && n <= 31
}

// monthAt reads a month's name at word i. Those that are words of other
// meanings too count only where a month is sure.
func (p *windowParser) monthAt(i int, sure bool) (time.Month, bool) {
	month, ok := months[p.word(i)]
	if !ok || p.genitive(i) {
		return 0, false
	}
	ambiguous := p.word(i) == "may" || p.word(i) == "march" || p.word(i) == "mar" || p.word(i) == "dec" || p.word(i) == "jan"
	return month, sure || !ambiguous
}

// yearAt reads a year at word i.
func (p *windowParser) yearAt(i int) (int, bool) {
	w := p.word(i)
	n, err := strconv.Atoi(w)
	return n, err == nil && len(w) == 4 && n >= oldest && n <= 2200
}

// month reads "March 2024", and after a word that says a time follows "in
// March": the latest that has begun.
func (p *windowParser) month(lead string) (Window, int, bool) {
	month, ok := p.monthAt(0, true)
	if !ok {
		return Window{}, 0, false
	}
	i := 1
	if p.word(1) == "of" || p.word(1) == "," {
		i = 2
	}
	if year, ok := p.yearAt(i); ok {
		return monthOf(year, month, p.now.Location()), i + 1, true
	}
	switch lead {
	case "in", "during", "since", "before", "after", "until", "till":
	default:
		return Window{}, 0, false
	}
	if word := p.words[p.at]; lead != "in" && word == strings.ToLower(word) && len(word) <= 5 && word != "june" && word != "july" && word != "april" {
		return Window{}, 0, false // "after may", "before march", "since dec"
	}
	year := p.now.Year()
	if month > p.now.Month() {
		year--
	}
	return monthOf(year, month, p.now.Location()), 1, true
}

// year reads "in 2024", where nothing follows that it could count.
func (p *windowParser) year(lead string) (Window, int, bool) {
	switch lead {
	case "in", "during", "since", "before", "after", "until", "till":
	default:
		return Window{}, 0, false
	}
	year, ok := p.yearAt(0)
	if !ok || counted(p.word(1)) {
		return Window{}, 0, false
	}
	return calendar(time.Date(year, time.January, 1, 0, 0, 0, 0, p.now.Location()), "year"), 1, true
}

// counted reports whether a number before the word counts it: a plural.
func counted(word string) bool {
	return len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss")
}
