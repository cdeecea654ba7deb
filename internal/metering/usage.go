package metering

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Usage is the usage of a tenant on a day.
type Usage struct {
	Tenant          tenant.ID
	Namespace, Name string // of the Tenant resource; empty if the tenant was deleted
	Requests        int64  // requests that were answered successfully
	Changes         int64  // audit records of users and applications
	Storage         int64  // bytes at the end of the day
	Embedded        int64  // tokens of the texts whose vectors were stored
}

// Day is a day in UTC, at its beginning.
type Day struct{ time.Time }

// DayOf returns the day of a time.
func DayOf(t time.Time) Day { return Day{t.UTC().Truncate(24 * time.Hour)} }

// ParseDay parses YYYY-MM-DD.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Day{}, fmt.Errorf("%q must be a day in the form YYYY-MM-DD", s)
	}
	return Day{t}, nil
}

// String returns YYYY-MM-DD.
func (d Day) String() string { return d.Format(time.DateOnly) }

// End returns the beginning of the next day.
func (d Day) End() time.Time { return d.AddDate(0, 0, 1) }

// Event is a CloudEvent with the value of one meter of one tenant and day. ID and Source are
// the same each time the day is exported, so that consumers can drop duplicates.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"` // the end of the day
	DataContentType string    `json:"datacontenttype"`
	Data            EventData `json:"data"`
}

// EventData is the data of an Event.
type EventData struct {
	Tenant    tenant.ID `json:"tenant"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Day       string    `json:"day"`
	Value     int64     `json:"value"`
	Unit      string    `json:"unit"`
}

// Source is the source of the events. The ids of tenants are unique across installations.
const Source = "/mnemo/usage"

// Events returns the events of the usage on a day: one per meter.
func (u Usage) Events(d Day) []Event {
	var out []Event
	for _, m := range []struct {
		meter, unit string
		value       int64
	}{
		{"requests", "requests", u.Requests}, {"changes", "changes", u.Changes},
		{"storage", "bytes", u.Storage}, {"embedded", "tokens", u.Embedded},
	} {
		out = append(out, Event{
			SpecVersion: "1.0", ID: fmt.Sprintf("%s/%s/%s", u.Tenant, d, m.meter), Source: Source,
			Type: "dev.mnemo.usage." + m.meter + ".v1", Subject: string(u.Tenant), Time: d.End(), DataContentType: "application/json",
			Data: EventData{Tenant: u.Tenant, Namespace: u.Namespace, Name: u.Name, Day: d.String(), Value: m.value, Unit: m.unit},
		})
	}
	return out
}

// WriteLines writes events as JSON Lines: one event in the JSON format of CloudEvents per line.
func WriteLines(to io.Writer, events []Event) error {
	out := bufio.NewWriter(to)
	lines := json.NewEncoder(out)
	for _, e := range events {
		if err := lines.Encode(e); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// WriteBatch writes events in the JSON batch format of CloudEvents.
func WriteBatch(to io.Writer, events []Event) error {
	if events == nil {
		events = []Event{}
	}
	if err := json.NewEncoder(to).Encode(events); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
