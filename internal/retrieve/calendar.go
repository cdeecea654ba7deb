package retrieve

import (
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
	// oldest is the first number that is recognized as a year. Smaller numbers may
	// count something else.
	oldest = 1990
	// most is the maximum number of days, weeks, months or years.
	most = 1000
)

// InZone returns a time in a zone; nil is UTC.
func InZone(t time.Time, zone *time.Location) time.Time {
	if zone == nil {
		return t.UTC()
	}
	return t.In(zone)
}

// wallClock returns the UTC time at which a clock in UTC shows what one in the zone of t shows at t.
func wallClock(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// StartOfDay returns the first moment in a zone of the date that day has in its own zone. It is not midnight if
// the clocks of the zone skip midnight on that date.
func StartOfDay(day time.Time, zone *time.Location) time.Time {
	year, month, date := day.Date()
	start := time.Date(year, month, date, 0, 0, 0, 0, zone)
	if start.Day() != date {
		_, start = start.ZoneBounds()
	}
	if earlier := start.Add(-time.Hour); earlier.Day() == date { // the clocks show midnight twice
		return earlier
	}
	return start
}

// count parses a number such as "3", "two" or "a couple of".
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

// unit parses "day", "weeks" and so on.
func unit(word string) (string, bool) {
	word = strings.TrimSuffix(word, "s")
	return word, slices.Contains([]string{"day", "week", "month", "year"}, word)
}

// back returns the time n units before t.
func back(t time.Time, n int, unit string) time.Time {
	switch unit {
	case "day":
		return t.AddDate(0, 0, -n)
	case "week":
		return t.AddDate(0, 0, -7*n)
	case "month":
		// From the first of the month, because 31 February does not exist.
		return time.Date(t.Year(), t.Month()-time.Month(n), 1, 0, 0, 0, 0, t.Location())
	}
	return time.Date(t.Year()-n, time.January, 1, 0, 0, 0, 0, t.Location())
}

// calendar returns the calendar day, week (from Monday), month or year that contains
// the time.
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

// ago parses "two weeks ago".
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

// last parses "last week", "this month", "the past three days", "last May" and
// "last Monday".
func (p *windowParser) last(string) (Window, int, bool) {
	which := p.word(0)
	if !slices.Contains([]string{"last", "past", "previous", "this"}, which) {
		return Window{}, 0, false
	}
	if u, ok := unit(p.word(1)); ok && u == p.word(1) && u != "day" {
		return p.lastUnit(which, u), 2, true
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

// lastUnit returns the window of "last week", "this month" or "the past year".
func (p *windowParser) lastUnit(which, unit string) Window {
	switch which {
	case "this":
		return calendar(p.now, unit)
	case "past":
		return Window{p.past(1, unit), p.today().AddDate(0, 0, 1)}
	}
	return calendar(back(p.now, 1, unit), unit)
}

// past returns the start of the last n units, to the day.
func (p *windowParser) past(n int, unit string) time.Time {
	switch unit {
	case "month":
		return p.today().AddDate(0, -n, 0)
	case "year":
		return p.today().AddDate(-n, 0, 0)
	}
	return back(p.today(), n, unit)
}

// lastMonth returns the window of "last May", before the current month, or "this May".
func (p *windowParser) lastMonth(which string, month time.Month) (Window, int, bool) {
	year := p.now.Year()
	if which != "this" && month >= p.now.Month() {
		year--
	}
	if y, ok := p.yearAt(2); ok { // "last May 2024" means May 2024
		return monthOf(y, month, p.now.Location()), 3, true
	}
	return monthOf(year, month, p.now.Location()), 2, true
}

func monthOf(year int, month time.Month, zone *time.Location) Window {
	return calendar(time.Date(year, month, 1, 0, 0, 0, 0, zone), "month")
}
