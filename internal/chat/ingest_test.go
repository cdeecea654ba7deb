package chat

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

var noon = time.Date(2025, 5, 9, 12, 0, 0, 0, time.UTC)

// valid returns a valid input.
func valid() IngestInput {
	return IngestInput{
		ID: new("c-1"), Title: new("Trains"), CreatedAt: new("2025-05-09T12:00:00Z"),
		Messages: []IngestMessage{
			{ID: new("m-1"), Role: new("user"), Content: new("hello"), CreatedAt: new("2025-05-09T12:00:00Z")},
			{ID: new("m-2"), Role: new("AI"), Content: new(""), CreatedAt: new("2025-05-09T14:00:00+02:00")},
		},
	}
}

func TestUpsertOfInput(t *testing.T) {
	t.Parallel()
	got, err := valid().Upsert()
	if err != nil {
		t.Fatal(err)
	}
	want := Upsert{ExternalID: "c-1", Platform: "custom", Title: "Trains", CreatedAt: noon, Messages: []Message{
		{ExternalID: "m-1", Sender: Human, Text: "hello", CreatedAt: noon},
		{ExternalID: "m-2", Sender: Assistant, CreatedAt: noon},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Upsert (-want +got):\n%s", diff)
	}
}

// An optional time with the default of .NET and Go counts as absent.
func TestZeroUpdateTimeIsAbsent(t *testing.T) {
	t.Parallel()
	in := valid()
	in.UpdatedAt = new("0001-01-01T00:00:00")
	got, err := in.Upsert()
	if err != nil || !got.UpdatedAt.IsZero() {
		t.Errorf("Upsert = %v, %v, want no update time", got.UpdatedAt, err)
	}
}

func TestUpsertRejects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		change func(*IngestInput)
		want   string
	}{
		"Nothing":        {"every missing field is reported", func(in *IngestInput) { *in = IngestInput{} }, "conversation id is required and must be a string; conversation title is required and must be a string; creation time is required and must be an ISO 8601 time; messages is required and must contain at least one message"},
		"Platform":       {"a platform is a plain name", func(in *IngestInput) { in.Platform = "my app" }, "platform must be"},
		"DisplayName":    {"at most 200 characters", func(in *IngestInput) { in.PlatformName = strings.Repeat("é", 201) }, "platform name must be at most 200"},
		"BlankID":        {"an id must not be blank", func(in *IngestInput) { in.ID = new(" ") }, "conversation id must not be blank"},
		"Title":          {"U+0000", func(in *IngestInput) { in.Title = new("a\x00") }, "conversation title must not contain the character U+0000"},
		"CreatedAt":      {"a time", func(in *IngestInput) { in.CreatedAt = new("yesterday") }, "creation time must be an ISO 8601 time"},
		"ZeroCreatedAt":  {"the default of .NET and Go counts as absent", func(in *IngestInput) { in.CreatedAt = new("0001-01-01T00:00:00Z") }, "creation time is required and must be later than 0001-01-01T00:00:00Z"},
		"ZeroDate":       {"also as a date", func(in *IngestInput) { in.Messages[1].CreatedAt = new("0001-01-01") }, "messages[1].time is required and must be later than"},
		"ZeroMicros":     {"also within the precision of the database", func(in *IngestInput) { in.CreatedAt = new("0001-01-01T00:00:00.0000009Z") }, "creation time is required and must be later than"},
		"YearZero":       {"before the first year in UTC", func(in *IngestInput) { in.CreatedAt = new("0001-01-01T00:00:00+01:00") }, "creation time must be an ISO 8601 time"},
		"YearTenK":       {"after the last year in UTC", func(in *IngestInput) { in.Messages[0].CreatedAt = new("9999-12-31T23:59:59-01:00") }, "messages[0].time must be an ISO 8601 time"},
		"UpdatedAt":      {"optional, but must be a time", func(in *IngestInput) { in.UpdatedAt = new("") }, "update time must be an ISO 8601 time"},
		"MessageID":      {"messages need an id", func(in *IngestInput) { in.Messages[1].ID = nil }, "messages[1].id is required"},
		"Role":           {"an unknown role", func(in *IngestInput) { in.Messages[0].Role = new("pope") }, "messages[0].sender must be human, user"},
		"NoRole":         {"no role", func(in *IngestInput) { in.Messages[0].Role = nil }, "messages[0].sender is required"},
		"Content":        {"no content", func(in *IngestInput) { in.Messages[0].Content = nil }, "messages[0].text is required"},
		"ContentZero":    {"U+0000 in a message", func(in *IngestInput) { in.Messages[0].Content = new("\x00") }, "messages[0].text must not contain"},
		"MessageCreated": {"a message has its time", func(in *IngestInput) { in.Messages[0].CreatedAt = nil }, "messages[0].time is required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := valid()
			tc.change(&in)
			_, err := in.Upsert()
			wantKind(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %q does not contain %q", tc.reason, err, tc.want)
			}
		})
	}
}

// The number of reported errors is limited.
func TestUpsertLimitsErrors(t *testing.T) {
	t.Parallel()
	in := valid()
	in.Messages = make([]IngestMessage, 100000)
	_, err := in.Upsert()
	wantKind(t, err, fault.Invalid)
	if len(err.Error()) > 2000 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

// The last of several messages with the same id wins.
func TestUpsertMergesRepeatedMessages(t *testing.T) {
	t.Parallel()
	in := valid()
	again := in.Messages[0]
	again.Content = new("hello again")
	in.Messages = append(in.Messages, again)
	got, err := in.Upsert()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) != 2 {
		t.Fatalf("len(Messages) = %d, want 2", len(got.Messages))
	}
	if got.Messages[0].Text != "hello again" {
		t.Errorf(`Messages[0].Text = %q, want "hello again"`, got.Messages[0].Text)
	}
}

// A date is a day of the zone, also if a change of the clocks makes it shorter; a time with a zone of its own is not affected.
func TestParseTimeInZone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ zone, text, start, end string }{
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"},
		{"Europe/Berlin", "2026-03-29T12:00", "2026-03-29T10:00:00.000Z", "2026-03-29T10:00:00.001Z"},
		{"Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29T12:00:00.000Z", "2026-03-29T12:00:00.001Z"},
		// The clocks skip midnight.
		{"America/Santiago", "2022-09-10", "2022-09-10T04:00:00.000Z", "2022-09-11T04:00:00.000Z"},
		{"America/Santiago", "2022-09-11", "2022-09-11T04:00:00.000Z", "2022-09-12T03:00:00.000Z"},
		{"Africa/Cairo", "2024-04-26", "2024-04-25T22:00:00.000Z", "2024-04-26T21:00:00.000Z"},
		// They show it twice.
		{"Asia/Amman", "2021-10-29", "2021-10-28T21:00:00.000Z", "2021-10-29T22:00:00.000Z"},
	} {
		zone, err := ParseZone(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		start, _, err := ParseTime(tc.text, zone)
		end, endErr := ParseEnd(tc.text, zone)
		if got := [2]string{Stamp(start), Stamp(end)}; got != [2]string{tc.start, tc.end} || err != nil || endErr != nil {
			t.Errorf("%s, %s: %v, %v, %v, want %s and %s", tc.zone, tc.text, got, err, endErr, tc.start, tc.end)
		}
	}
}

func TestParseZone(t *testing.T) {
	t.Parallel()
	if zone, err := ParseZone(""); err != nil || zone != time.UTC {
		t.Errorf("the zone of an empty name is %v, %v, want UTC", zone, err)
	}
	for _, name := range []string{"Local", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "localtime", "posix/UTC", "./UTC", "UTC/", "UTC+2", strings.Repeat("x", 1000)} {
		if zone, err := ParseZone(name); err == nil {
			t.Errorf("the zone of %q is %v, want an error", name, zone)
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want time.Time
		end  time.Time // exclusive end
	}{
		"2025-05-09":                     {noon.Add(-12 * time.Hour), noon.Add(12 * time.Hour)},
		"2025-05-09T12:00:00Z":           {noon, noon.Add(time.Millisecond)},
		"2025-05-09T14:00:00+02:00":      {noon, noon.Add(time.Millisecond)},
		"2025-05-09T14:00:00+0200":       {noon, noon.Add(time.Millisecond)},
		"2025-05-09T12:00":               {noon, noon.Add(time.Millisecond)},
		"2025-05-09T12:00:00.0005":       {noon.Add(500 * time.Microsecond), noon.Add(time.Millisecond)},
		"2025-05-09 12:00:00":            {noon, noon.Add(time.Millisecond)},
		"2025-05-09T12:00:00.000000000Z": {noon, noon.Add(time.Millisecond)},
	}
	for text, tc := range tests {
		got, _, err := ParseTime(text, time.UTC)
		if err != nil || !got.Equal(tc.want) {
			t.Errorf("ParseTime(%q) = %v, %v, want %v", text, got, err, tc.want)
		}
		if end, err := ParseEnd(text, time.UTC); err != nil || !end.Equal(tc.end) {
			t.Errorf("ParseEnd(%q) = %v, %v, want %v", text, end, err, tc.end)
		}
	}
	for _, text := range []string{"", "yesterday", "2025", "2025-13-01", "1746792000", "0000-01-01", "2025-05-09T25:00:00Z", "9999-12-31T23:59:59-01:00"} {
		if got, _, err := ParseTime(text, time.UTC); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", text, got)
		}
	}
}
