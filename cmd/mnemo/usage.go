package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/metering"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// exportDelay is the time after the end of a day until API servers have stored what they
	// counted on it.
	exportDelay = time.Minute
	// sinkBatch is the number of events of a request to a sink, and sinkTimeout bounds it.
	sinkBatch   = 1000
	sinkTimeout = 30 * time.Second
)

// usageCommand groups the commands of metering (docs/metering.md).
type usageCommand struct {
	Export exportUsageCommand `cmd:"" help:"Write the usage of a day as CloudEvents. The usage of this day does not change afterwards."`
}

type exportUsageCommand struct {
	databaseFlags
	Day       string `required:"" help:"Day in UTC that has ended: YYYY-MM-DD or yesterday."`
	Tenant    string `help:"Tenant: namespace/name, UID or ID; for a deleted tenant, its ID. Default: all tenants."`
	Format    string `enum:"lines,batch" default:"lines" help:"Format: ${enum}. lines is one event in JSON per line; batch is the JSON batch format of CloudEvents."`
	Sink      string `help:"URL to which batches of events are posted instead of writing them."`
	SinkToken string `env:"MNEMO_USAGE_SINK_TOKEN" help:"Bearer token for the sink."`
}

// Run closes the day and exports its usage.
func (c *exportUsageCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	day, err := c.day(ctx, db)
	if err != nil {
		return err
	}
	if err := db.CloseDay(ctx, day); err != nil {
		return err
	}
	usage, err := db.UsageOf(ctx, day)
	if err != nil {
		return err
	}
	if c.Tenant != "" {
		if usage, err = c.only(ctx, db, usage); err != nil {
			return err
		}
	}
	var events []metering.Event
	for _, u := range usage {
		events = append(events, u.Events(day)...)
	}
	switch {
	case c.Sink != "":
		return c.send(ctx, events)
	case c.Format == "batch":
		return metering.WriteBatch(os.Stdout, events)
	}
	return metering.WriteLines(os.Stdout, events)
}

// day returns the day, which must have ended according to the database.
func (c *exportUsageCommand) day(ctx context.Context, db *postgres.DB) (metering.Day, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return metering.Day{}, err
	}
	day := metering.Day{Time: metering.DayOf(now).AddDate(0, 0, -1)}
	if c.Day != "yesterday" {
		if day, err = metering.ParseDay(c.Day); err != nil {
			return day, fault.New(fault.Invalid, "--day: %v", err)
		}
	}
	if ready := day.End().Add(exportDelay); now.Before(ready) {
		return day, fault.New(fault.Invalid, "--day: the usage of %s can be exported from %s", day, ready.Format(time.RFC3339))
	}
	return day, nil
}

// only returns the usage of the tenant, which may be deleted.
func (c *exportUsageCommand) only(ctx context.Context, db *postgres.DB, usage []metering.Usage) ([]metering.Usage, error) {
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return nil, err
	}
	found, err := findTenant(records, c.Tenant)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	usage = slices.DeleteFunc(usage, func(u metering.Usage) bool {
		return u.Tenant != found.ID && string(u.Tenant) != c.Tenant
	})
	if len(usage) == 0 {
		return nil, fault.New(fault.NotFound, "tenant %s has no usage on this day", c.Tenant)
	}
	return usage, nil
}

// send posts the events. A sink that has received some of them drops the duplicates of the
// next attempt by their ids.
func (c *exportUsageCommand) send(ctx context.Context, events []metering.Event) error {
	for batch := range slices.Chunk(events, sinkBatch) {
		if err := c.post(ctx, batch); err != nil {
			return fmt.Errorf("post to --sink: %w", err)
		}
	}
	fmt.Fprintf(os.Stderr, "posted %d events\n", len(events))
	return nil
}

func (c *exportUsageCommand) post(ctx context.Context, batch []metering.Event) error {
	var body bytes.Buffer
	if err := metering.WriteBatch(&body, batch); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sinkTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Sink, &body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/cloudevents-batch+json; charset=utf-8")
	if c.SinkToken != "" {
		r.Header.Set("Authorization", "Bearer "+c.SinkToken)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return errors.New("the sink responded with " + response.Status)
	}
	return nil
}
