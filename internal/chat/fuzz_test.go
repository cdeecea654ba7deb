package chat_test

import (
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// FuzzParseTime: a time is rejected, or can be stored and is read again from its stamp.
// The end of a range is after its start.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{
		"2025-05-09", "2025-05-09T14:30:00Z", "2025-05-09T14:30", "2025-05-09 14:30:00.5+02:00", "2025-05-09T14:30:00+0200", "9999-12-31",
		"0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2024-02-30", "24:00", "2025-06-30T23:59:60Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, date, err := chat.ParseTime(s, time.UTC)
		end, endErr := chat.ParseEnd(s, time.UTC)
		if (err == nil) != (endErr == nil) {
			t.Fatalf("%q: start %v, end %v", s, err, endErr)
		}
		if err != nil {
			return
		}
		if y := at.Year(); y < 1 || y > 9999 || at.Location() != time.UTC {
			t.Fatalf("%q is %s", s, at)
		}
		if !end.After(at) || end.Sub(at) > 24*time.Hour {
			t.Fatalf("%q is %s, and ends at %s", s, at, end)
		}
		again, _, err := chat.ParseTime(chat.Stamp(at), time.UTC)
		if err != nil || !again.Equal(at.Truncate(time.Millisecond)) {
			t.Fatalf("%q is %s, its stamp is %s: %v", s, at, again, err)
		}
		if date && at != at.Truncate(24*time.Hour) {
			t.Fatalf("the date %q is %s", s, at)
		}
	})
}
