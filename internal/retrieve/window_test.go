package retrieve

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// saturday is the current time in these tests.
var saturday = time.Date(2026, time.November, 21, 15, 30, 0, 0, time.UTC)

// shows formats a window as two dates: "" without a window, ".." for an open end.
func shows(w Window, ok bool) string {
	if !ok {
		return ""
	}
	day := func(t time.Time) string {
		if t.IsZero() {
			return ".."
		}
		return t.Format(time.DateOnly)
	}
	return day(w.From) + " " + day(w.To)
}

func TestParseWindow(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"What did we say yesterday?":               "2026-11-20 2026-11-21",
		"yesterday's meeting":                      "2026-11-20 2026-11-21",
		"what did I note the day before yesterday": "2026-11-19 2026-11-20",
		"What have I learned today?":               "2026-11-21 2026-11-22",
		"the idea I had this morning":              "2026-11-21 2026-11-22",
		"two weeks ago we planned a trip":          "2026-11-02 2026-11-09",
		"3 days ago":                               "2026-11-18 2026-11-19",
		"a couple of months ago":                   "2026-09-01 2026-10-01",
		"a year ago":                               "2025-01-01 2026-01-01",
		"the book from last week":                  "2026-11-09 2026-11-16",
		"what did I buy this week?":                "2026-11-16 2026-11-23",
		"last month's budget":                      "2026-10-01 2026-11-01",
		"last year":                                "2025-01-01 2026-01-01",
		"in the past year":                         "2025-11-21 2026-11-22",
		"over the last two weeks":                  "2026-11-07 2026-11-22",
		"in the last 3 months":                     "2026-08-21 2026-11-22",
		"past 10 days":                             "2026-11-11 2026-11-22",
		"Where did I travel last May?":             "2026-05-01 2026-06-01",
		"last December":                            "2025-12-01 2026-01-01",
		"last November":                            "2025-11-01 2025-12-01",
		"this November":                            "2026-11-01 2026-12-01",
		"what happened in May":                     "2026-05-01 2026-06-01",
		"what happened in november":                "2026-11-01 2026-12-01",
		"in december":                              "2025-12-01 2026-01-01",
		"in March 2024":                            "2024-03-01 2024-04-01",
		"the March 2024 release":                   "2024-03-01 2024-04-01",
		"may 2024":                                 "2024-05-01 2024-06-01",
		"March of 2024":                            "2024-03-01 2024-04-01",
		"on 3 May 2026":                            "2026-05-03 2026-05-04",
		"on May 3, 2026, I said":                   "2026-05-03 2026-05-04",
		"on the 3rd of May":                        "2026-05-03 2026-05-04",
		"on December 24th":                         "2025-12-24 2025-12-25",
		"2026-05-03":                               "2026-05-03 2026-05-04",
		"notes of 2026-05":                         "2026-05-01 2026-06-01",
		"since January":                            "2026-01-01 ..",
		"since 2024":                               "2024-01-01 ..",
		"since yesterday":                          "2026-11-20 ..",
		"since 3 May 2026":                         "2026-05-03 ..",
		"since last week":                          "2026-11-09 ..",
		"before March 2024":                        ".. 2024-03-01",
		"until 2025":                               ".. 2025-01-01",
		"after 3 May 2026":                         "2026-05-04 ..",
		"in 2024":                                  "2024-01-01 2025-01-01",
		"last Monday":                              "2026-11-16 2026-11-17",
		"last Saturday":                            "2026-11-14 2026-11-15",
		"LAST MAY":                                 "2026-05-01 2026-06-01",
		"Did I, last May, or was it in May 2026, go?": "2026-05-01 2026-06-01",
		"":                                 "",
		"Which seat do I like?":            "",
		"May I ask you something?":         "",
		"you may 3 times":                  "",
		"the march of time":                "",
		"we march 20 miles":                "",
		"What is June's phone number?":     "",
		"What did April say?":              "",
		"the last time we spoke":           "",
		"my last 3 messages":               "",
		"the last day":                     "",
		"in 2000 words":                    "",
		"room 2024":                        "",
		"in 12 weeks":                      "",
		"next May":                         "",
		"tomorrow":                         "",
		"on 3 May 2030":                    "",
		"in 2031":                          "",
		"before December 2030":             "",
		"on 31 February 2026":              "2026-02-01 2026-03-01",
		"compare March 2024 with May 2024": "",
		"last week or yesterday?":          "",
		`who sings "Yesterday"?`:           "",
		"today's weather":                  "",
		"on Monday":                        "",
		"a week has seven days":            "",
		"ago":                              "",
		"2026-13-45":                       "",
		"since":                            "",
		"the day before":                   "",
		"last":                             "",
		"what comes after may":             "",
		strings.Repeat("blah ", 1000) + "yesterday":            "",
		"we met in March; remind me":                           "2026-03-01 2026-04-01",
		"What did “last May” by the band mean in March 2024?":  "2024-03-01 2024-04-01",
		"what was I working on at the end of last year, Anna?": "2025-01-01 2026-01-01",
	} {
		w, ok := ParseWindow(question, saturday)
		if got := shows(w, ok); got != want {
			t.Errorf("%.60q: %q, want %q", question, got, want)
		}
	}
}

// For any question, a window is a non-empty span that starts in the past.
func TestParseWindowProperties(t *testing.T) {
	t.Parallel()
	vocabulary := strings.Fields("last this past the in on since before after until may May march March december 3 31st 2024 2026-02-30 2031 " +
		"two a couple of week weeks months year ago yesterday's today Monday , . ? \" day days and É 0 99999999999999999999 -")
	rapid.Check(t, func(t *rapid.T) {
		question := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 8).Draw(t, "words"), " ")
		if rapid.Bool().Draw(t, "noise") {
			question += rapid.String().Draw(t, "text")
		}
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "America/Santiago", "America/Havana", "Africa/Cairo", "Asia/Amman", "Atlantic/Azores"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(946684800, 4102444800).Draw(t, "now"), 0).In(zone)
		w, ok := ParseWindow(question, now)
		if !ok {
			if !w.IsZero() {
				t.Fatalf("%q: no window, but %v", question, w)
			}
			return
		}
		if w.IsZero() || w.From.After(now) || !w.To.IsZero() && !w.From.IsZero() && !w.From.Before(w.To) {
			t.Fatalf("%q: %v", question, w)
		}
		for _, bound := range []time.Time{w.From, w.To} {
			if before := bound.Add(-time.Nanosecond); !bound.IsZero() && before.Day() == bound.Day() {
				t.Fatalf("%q: %v is not the first moment of a day", question, bound)
			}
		}
	})
}

// The bounds are the first moments of days, also where the clocks skip midnight or show it twice.
func TestParseWindowInZone(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02T15:04 Z07:00"
	for _, tc := range []struct{ zone, now, question, from, to string }{
		{"Europe/Berlin", "2026-05-10T00:30", "yesterday", "2026-05-09T00:00 +02:00", "2026-05-10T00:00 +02:00"},
		{"America/Santiago", "2022-09-20T12:00", "on 11 September 2022", "2022-09-11T01:00 -03:00", "2022-09-12T00:00 -03:00"},
		{"America/Santiago", "2022-09-11T12:00", "this week", "2022-09-05T00:00 -04:00", "2022-09-12T00:00 -03:00"},
		{"America/Santiago", "2022-09-12T00:30", "one day ago", "2022-09-11T01:00 -03:00", "2022-09-12T00:00 -03:00"},
		{"America/Asuncion", "2024-01-01T12:00", "in October 2023", "2023-10-01T01:00 -03:00", "2023-11-01T00:00 -03:00"},
		{"Africa/Cairo", "2024-04-26T12:00", "today", "2024-04-26T01:00 +03:00", "2024-04-27T00:00 +03:00"},
		{"Africa/Cairo", "2024-04-26T12:00", "yesterday", "2024-04-25T00:00 +02:00", "2024-04-26T01:00 +03:00"},
		{"Asia/Amman", "2021-10-30T12:00", "yesterday", "2021-10-29T00:00 +03:00", "2021-10-30T00:00 +02:00"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.ParseInLocation("2006-01-02T15:04", tc.now, zone)
		if err != nil {
			t.Fatal(err)
		}
		w, _ := ParseWindow(tc.question, now)
		if from, to := w.From.Format(layout), w.To.Format(layout); from != tc.from || to != tc.to {
			t.Errorf("%s, %s, %q: %s to %s, want %s to %s", tc.zone, tc.now, tc.question, from, to, tc.from, tc.to)
		}
	}
}

// A past day is recognized in every supported format and context.
func TestParseWindowFindsDays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		day := startOfDay(saturday).AddDate(0, 0, -rapid.IntRange(0, 10000).Draw(t, "days"))
		written := day.Format(rapid.SampledFrom([]string{"2 January 2006", "January 2, 2006", "2006-01-02", "2 Jan 2006", "Jan 2 2006"}).Draw(t, "layout"))
		words := rapid.SampledFrom([]string{"what did we say", "Anna and I", "which seat", "a plan for"})
		question := words.Draw(t, "before") + " on " + written + " " + words.Draw(t, "after") + "?"
		if w, ok := ParseWindow(question, saturday); !ok || w != days(day, 1) {
			t.Fatalf("%q: %s, want %s", question, shows(w, ok), day)
		}
	})
}

// Questions without a time expression have no window.
func TestParseWindowIsConservative(t *testing.T) {
	t.Parallel()
	plain := strings.Fields("what which seat do I like on trains in the box from Anna since she may march before after last 5 messages 12 apples " +
		"one of two weeks 30 days until done week month year third second summer winter morning sun Monday day")
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(plain), 0, 10).Draw(t, "words")
		question := strings.Join(list, " ")
		for _, sure := range []string{"last week", "last month", "last year", "last Monday", "last may", "last march", "in may", "in march", "may 5", "5 may", "march 5",
			"5 march", "may 12", "12 may", "march 12", "12 march", "march 30", "30 march", "may 30", "30 may", "last 5", "last 12", "last 30", "last one", "last two", "since march", "since may", "of may", "of march", "may the", "march the"} {
			if strings.Contains(question, sure) {
				return // a time expression after all
			}
		}
		if w, ok := ParseWindow(question, saturday); ok {
			t.Fatalf("%q: %s", question, shows(w, ok))
		}
	})
}
