package chat

import (
	"fmt"
	"time"
)

// layouts are the forms of ISO 8601 that clients send; without a zone the
// time is UTC.
var layouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
}

// Stamp writes a time as every answer does: RFC 3339, UTC, milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ParseTime reads an ISO 8601 date or time, and reports whether it was a date
// alone.
func ParseTime(s string) (t time.Time, date bool, err error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, true, inRange(t)
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), false, inRange(t)
		}
	}
	return time.Time{}, false, fmt.Errorf("parse %q: not an ISO 8601 date or time", s)
}

// ParseEnd reads the end of a span of time and returns the first moment after
// it: a date means the whole day, a time the millisecond it names, since that
// is how exactly times are shown.
func ParseEnd(s string) (time.Time, error) {
	t, date, err := ParseTime(s)
	if err != nil {
		return time.Time{}, err
	}
	if date {
		return t.AddDate(0, 0, 1), nil
	}
	return t.Truncate(time.Millisecond).Add(time.Millisecond), nil
}

// inRange refuses years that other systems cannot read back.
func inRange(t time.Time) error {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return fmt.Errorf("the year %d is out of range", y)
	}
	return nil
}
