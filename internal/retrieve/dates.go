package retrieve

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var isoDate = regexp.MustCompile(`^(\d{4})-(\d{2})(?:-(\d{2}))?$`)

// date parses a day ("2026-05-03", "3 May 2026", "the 3rd of May", "May 3rd, 2026")
// or a month ("2026-05").
func (p *windowParser) date(lead string) (Window, int, bool) {
	if m := isoDate.FindStringSubmatch(p.word(0)); m != nil {
		if m[3] == "" {
			t, err := time.ParseInLocation("2006-01", m[0], p.now.Location())
			return calendar(t, "month"), 1, err == nil && t.Year() > 0
		}
		t, err := time.ParseInLocation(time.DateOnly, m[0], p.now.Location())
		return days(t, 1), 1, err == nil && t.Year() > 0
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

// dayOf returns the window of a day whose year may follow at word i. Without a year it
// is the latest such day that is not in the future.
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
	return days(t, 1), i, t.Day() == day // rejects 31 February
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

// monthAt parses the name of a month at word i. Ambiguous names, such as "may", count
// only if the context implies a month.
func (p *windowParser) monthAt(i int, sure bool) (time.Month, bool) {
	month, ok := months[p.word(i)]
	if !ok || p.genitive(i) {
		return 0, false
	}
	ambiguous := p.word(i) == "may" || p.word(i) == "march" || p.word(i) == "mar" || p.word(i) == "dec" || p.word(i) == "jan"
	return month, sure || !ambiguous
}

// yearAt parses a year at word i.
func (p *windowParser) yearAt(i int) (int, bool) {
	w := p.word(i)
	n, err := strconv.Atoi(w)
	return n, err == nil && len(w) == 4 && n >= oldest && n <= 2200
}

// month parses "March 2024" and, after a preposition, "in March": the latest March that
// has begun.
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

// year parses "in 2024" unless the number counts the next word.
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

// counted reports whether a number before the word counts it, as before a plural.
func counted(word string) bool {
	return len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss")
}
