package dashboard

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

// ago formats an age approximately.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return plural(int(d/time.Hour), "hour") + " ago"
	}
	return plural(int(d/(24*time.Hour)), "day") + " ago"
}

// remaining formats an estimated duration.
func remaining(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "a few seconds left"
	case d < 55*time.Second:
		return "less than a minute left"
	case d < time.Hour:
		return "about " + plural(int(d.Round(time.Minute)/time.Minute), "minute") + " left"
	}
	return "about " + plural(int(d.Round(time.Hour)/time.Hour), "hour") + " left"
}

// plural formats a count: 1 memory, 2 memories.
func plural[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if root, ok := strings.CutSuffix(one, "y"); ok && !strings.HasSuffix(root, "a") {
		return number(n) + " " + root + "ies"
	}
	return number(n) + " " + one + "s"
}

// number formats a number with thousands separators.
func number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// byteSize formats a number of bytes.
func byteSize(n int64) string {
	const unit = 1024
	if n < unit {
		return plural(int(n), "byte")
	}
	value, suffix := float64(n)/unit, 0
	for value >= unit && suffix < 3 {
		value /= unit
		suffix++
	}
	text := strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0")
	return text + " " + []string{"KiB", "MiB", "GiB", "TiB"}[suffix]
}

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

// dated splits the leading date off the text of a memory.
func dated(s string) datedText {
	if len(s) > len(time.DateOnly) {
		date, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)])
		rest := strings.TrimLeft(s[len(time.DateOnly):], " :,\n-–")
		if err == nil && rest != "" && len(rest) < len(s)-len(time.DateOnly) {
			return datedText{date, rest}
		}
	}
	return datedText{Text: s}
}

// platformName returns the display name of a platform.
func platformName(platform, shown string) string {
	return cmp.Or(shown, chatexport.PlatformName(platform), platform)
}
