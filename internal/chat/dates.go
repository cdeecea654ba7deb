package chat

import (
	"errors"
	"fmt"
	"regexp"
	"time"
	_ "time/tzdata" // the time zones, which images and test machines lack

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// ZoneRule is the rule for names of time zones in requests.
const ZoneRule = "must be the name of an IANA time zone, such as Europe/Berlin"

// zoneForm is the form of IANA names. Hosts have files with other names, such as localtime, among the zones.
var zoneForm = regexp.MustCompile(`^([A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*)?$`)

// ParseZone returns the time zone with an IANA name, such as Europe/Berlin, and UTC for "".
func ParseZone(name string) (*time.Location, error) {
	if name == "Local" || !zoneForm.MatchString(name) { // Local is the zone of the server
		return nil, errors.New("not an IANA name")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("find time zone: %w", err)
	}
	return zone, nil
}

// layouts are the accepted forms of ISO 8601.
var layouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
}

// Stamp formats a time as in all responses: RFC 3339, UTC, milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ParseTime parses an ISO 8601 date or time and reports whether it is a date
// without a time. Dates, and times without a zone, are in the given zone. The result is a StoredTime.
func ParseTime(s string, zone *time.Location) (t time.Time, date bool, err error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		t := retrieve.StartOfDay(day, zone)
		_, err := StoredTime(t)
		return t, true, err
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			t, err := StoredTime(t)
			return t, false, err
		}
	}
	return time.Time{}, false, fmt.Errorf("parse %q: not an ISO 8601 date or time", s)
}

// ParseEnd parses the inclusive end of a time range, like ParseTime, and returns the exclusive end.
// A date includes the whole day; a time includes its millisecond, the precision
// of times in responses.
func ParseEnd(s string, zone *time.Location) (time.Time, error) {
	t, date, err := ParseTime(s, zone)
	if err != nil {
		return time.Time{}, err
	}
	if date {
		year, month, day := t.Date()
		return retrieve.StartOfDay(time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC), zone), nil
	}
	return t.Truncate(time.Millisecond).Add(time.Millisecond), nil
}

// StoredTime is the rule for every time from outside: the API, imports and restores. It returns the time in UTC with the
// precision of the database. The zero time, the default of many languages, counts as absent. Years that RFC 3339 cannot
// represent are an error.
func StoredTime(t time.Time) (time.Time, error) {
	t = t.UTC().Truncate(time.Microsecond)
	if y := t.Year(); y < 1 || y > 9999 {
		return time.Time{}, fmt.Errorf("the year %d is out of range", y)
	}
	return t, nil
}
