package dashboard

import (
	"cmp"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/number"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

// ago describes an age approximately.
func ago(d time.Duration) message {
	switch {
	case d < time.Minute:
		return msg("just now")
	case d < time.Hour:
		return msg("%d minutes ago", int(d/time.Minute))
	case d < 48*time.Hour:
		return msg("%d hours ago", int(d/time.Hour))
	}
	return msg("%d days ago", int(d/(24*time.Hour)))
}

// remaining describes an estimated duration.
func remaining(d time.Duration) message {
	switch {
	case d < 10*time.Second:
		return msg("a few seconds left")
	case d < 55*time.Second:
		return msg("less than a minute left")
	case d < time.Hour:
		return msg("about %d minutes left", int(d.Round(time.Minute)/time.Minute))
	}
	return msg("about %d hours left", int(d.Round(time.Hour)/time.Hour))
}

// number formats a number with the separators of the language.
func (l *locale) number(n any) string { return l.printer.Sprint(number.Decimal(n)) }

// byteSize formats a number of bytes.
func (l *locale) byteSize(n int64) string {
	const unit = 1024
	if n < unit {
		return l.text("%d bytes", n)
	}
	value, suffix := float64(n)/unit, 0
	for value >= unit && suffix < 3 {
		value /= unit
		suffix++
	}
	return l.printer.Sprint(number.Decimal(value, number.MaxFractionDigits(1))) + " " + []string{"KiB", "MiB", "GiB", "TiB"}[suffix]
}

// months are the names of the months.
var months = [...]message{
	msg("January"), msg("February"), msg("March"), msg("April"), msg("May"), msg("June"),
	msg("July"), msg("August"), msg("September"), msg("October"), msg("November"), msg("December"),
}

// date formats a time by a layout, whose month is spelled out in English.
func (l *locale) date(layout string, t time.Time) string {
	t = t.UTC()
	return strings.Replace(t.Format(layout), t.Month().String(), l.say(months[t.Month()-1]), 1)
}

// day formats the day of a time in UTC; app.js shows it in the reader's zone.
func (l *locale) day(t time.Time) string { return l.date(l.text("2 January 2006"), t) }

// moment formats a time in UTC; app.js shows it in the reader's zone.
func (l *locale) moment(t time.Time) string { return l.date(l.text("2 January 2006, 15:04 UTC"), t) }

// dayTag returns the element of a day.
func (l *locale) dayTag(t time.Time) template.HTML {
	return template.HTML(`<time datetime="` + stamp(t) + `">` + l.day(t) + `</time>`) //nolint:gosec // numbers and a text of the catalog
}

// momentTag returns the element of a time.
func (l *locale) momentTag(t time.Time) template.HTML {
	return template.HTML(`<time datetime="` + stamp(t) + `" data-local>` + l.moment(t) + `</time>`) //nolint:gosec // as above
}

// stamp formats a time for the attribute datetime.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// excerpt truncates a text to at most n bytes and adds an ellipsis.
func excerpt(n int, s string) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " \n") + " …"
}

// datedText is the text of a memory without its leading date.
type datedText struct {
	Date time.Time // zero if the text has none
	Text string
}

// splitDate splits the leading date off the text of a memory.
func splitDate(s string) datedText {
	if len(s) > len(time.DateOnly) {
		date, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)])
		undated := strings.TrimLeft(s[len(time.DateOnly):], " :,\n-–")
		if err == nil && undated != "" && len(undated) < len(s)-len(time.DateOnly) {
			return datedText{date, undated}
		}
	}
	return datedText{Text: s}
}

// platformName returns the display name of a platform.
func platformName(platform, shown string) string {
	return cmp.Or(shown, chatexport.PlatformName(platform), platform)
}
