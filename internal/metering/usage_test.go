package metering_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/metering"
)

// The CloudEvents SDK parses both formats, and exporting a day again gives the same events.
func TestEventsAreCloudEvents(t *testing.T) {
	t.Parallel()
	day, err := metering.ParseDay("2026-05-04")
	if err != nil {
		t.Fatal(err)
	}
	usage := metering.Usage{Tenant: acme, Namespace: "default", Name: "acme", Requests: 7, Changes: 3, Storage: 1 << 40, Embedded: 42}
	var lines, again, batch bytes.Buffer
	for _, write := range []func() error{
		func() error { return metering.WriteLines(&lines, usage.Events(day)) },
		func() error { return metering.WriteLines(&again, usage.Events(day)) },
		func() error { return metering.WriteBatch(&batch, usage.Events(day)) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if lines.String() != again.String() {
		t.Errorf("two exports differ:\n%s\n%s", &lines, &again)
	}
	var events, batched []event.Event
	for line := range strings.Lines(lines.String()) {
		e := event.New()
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if err := json.Unmarshal(batch.Bytes(), &batched); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events, batched); diff != "" {
		t.Errorf("the batch differs from the lines:\n%s", diff)
	}
	values := map[string]int64{}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			t.Errorf("event %s: %v", e.ID(), err)
		}
		var data metering.EventData
		if err := e.DataAs(&data); err != nil {
			t.Fatal(err)
		}
		if e.Subject() != string(acme) || !e.Time().Equal(time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC)) || data.Day != "2026-05-04" {
			t.Errorf("event %v", e)
		}
		values[strings.TrimPrefix(e.Type(), "dev.mnemo.usage.")+" in "+data.Unit] = data.Value
		if want := string(acme) + "/2026-05-04/"; !strings.HasPrefix(e.ID(), want) {
			t.Errorf("id %s, want %s…", e.ID(), want)
		}
	}
	want := map[string]int64{"requests.v1 in requests": 7, "changes.v1 in changes": 3, "storage.v1 in bytes": 1 << 40, "embedded.v1 in tokens": 42}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestParseDay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "2026-5-4", "2026-02-30", "today"} {
		if d, err := metering.ParseDay(text); err == nil {
			t.Errorf("ParseDay(%q) = %s, want an error", text, d)
		}
	}
}
