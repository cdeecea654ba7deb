package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// An administrator exports the usage of a day, as often as necessary.
func TestUsageCommand(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	acme, other := e.apply(t, tenanttest.NewSpec()), e.apply(t, tenanttest.NewSpec())
	e.createMemory(t, acme, "twelve bytes")
	e.exec(t, "update usage set metered_on = metered_on - 1")
	e.exec(t, "update usage_days set day = day - 1")

	first := e.mnemo(t, "usage", "export", "--day", "yesterday")
	if again := e.mnemo(t, "usage", "export", "--day", metering.DayOf(time.Now().Add(-24*time.Hour)).String()); again != first {
		t.Errorf("the second export differs:\n%s\n%s", first, again)
	}
	if n := strings.Count(first, "\n"); n != 8 {
		t.Errorf("%d events, want 4 of each tenant:\n%s", n, first)
	}
	one := e.mnemo(t, "usage", "export", "--day", "yesterday", "--tenant", acme.Namespace+"/"+acme.Name)
	if !strings.Contains(one, `"value":12,"unit":"bytes"`) || strings.Contains(one, string(other.ID)) {
		t.Errorf("the events of one tenant are\n%s", one)
	}
	e.expectError(t, "can be exported from", "usage", "export", "--day", time.Now().UTC().Format(time.DateOnly))
	e.expectError(t, "YYYY-MM-DD", "usage", "export", "--day", "monday")
	e.expectError(t, "has no usage on this day", "usage", "export", "--day", "yesterday", "--tenant", "no/such")
}

// The events are posted as a batch of CloudEvents; a sink that fails fails the command.
func TestUsageSink(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	e.apply(t, tenanttest.NewSpec())
	e.exec(t, "update usage set metered_on = metered_on - 1")
	e.exec(t, "update usage_days set day = day - 1")
	status := http.StatusAccepted
	var got []event.Event
	var kind, token string
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		kind, token = r.Header.Get("Content-Type"), r.Header.Get("Authorization")
		if err := json.Unmarshal(body, &got); err != nil {
			t.Errorf("%v in %s", err, body)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(sink.Close)
	t.Setenv("MNEMO_USAGE_SINK_TOKEN", "billing")
	e.mnemo(t, "usage", "export", "--day", "yesterday", "--sink", sink.URL)
	if len(got) != 4 {
		t.Errorf("%d events, want 4", len(got))
	}
	if kind != event.ApplicationCloudEventsBatchJSON+"; charset=utf-8" {
		t.Errorf("Content-Type %q", kind)
	}
	if token != "Bearer billing" {
		t.Errorf("Authorization %q", token)
	}
	status = http.StatusServiceUnavailable
	e.expectError(t, "503", "usage", "export", "--day", "yesterday", "--sink", sink.URL)
}
