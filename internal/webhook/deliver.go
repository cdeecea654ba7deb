package webhook

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// batch is the number of records read at a time.
	batch = 100
	// slice bounds how long a delivery occupies a worker. The next job continues.
	slice = 10 * time.Second
	// refusals is the number of attempts of an event that the endpoint refuses.
	refusals = 3
	// lease is how long a job claims a webhook when it starts and after each event: longer than an attempt. After
	// a crash, deliveries continue at its end.
	lease = time.Minute
	// queueEvery is the interval at which deliveries are queued.
	queueEvery = time.Second
)

// schedule are the waits between the attempts of an event: about 75 hours in total, as the
// specification recommends. After the last attempt the webhook is disabled.
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Deliverer delivers events.
type Deliverer struct {
	Store  Store
	Sender *Sender
	Log    *slog.Logger
}

// Deliver sends the events of a webhook in order, until none is left, one fails, or its time is
// over. Each is sent at least once: a crash after a response sends it again with the same id.
func (d *Deliverer) Deliver(ctx context.Context, job Args) error {
	if err := d.deliverAll(ctx, &job); err != nil {
		return err
	}
	return d.Store.ReleaseWebhook(ctx, job)
}

// deliverAll keeps the claim of the job up to date.
func (d *Deliverer) deliverAll(ctx context.Context, job *Args) error {
	for until := time.Now().Add(slice); time.Now().Before(until); {
		w, records, err := d.Store.NextRecords(ctx, *job, lease, batch)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		job.Due = w.Due
		if w.Disabled || len(records) == 0 {
			return nil
		}
		var ok bool
		if w.Connected() {
			ok, err = d.deliver(ctx, job, w, records, until)
		} else {
			ok, err = d.connect(ctx, job, w)
		}
		if err != nil || !ok {
			return err
		}
	}
	return nil
}

// connect makes the first connection to the address of a webhook, so that its state does not depend on an event. It returns
// false after a failure, and if the claim has ended or somebody else changed the position.
func (d *Deliverer) connect(ctx context.Context, job *Args, w Webhook) (bool, error) {
	p := Progress{From: w.Position, To: w.Position, Wait: lease}
	err := d.Sender.Connect(ctx, w)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		p = after(err, w.Attempts, w.Position, w.Position)
		p.Message = NotConnected + ": " + p.Message
		d.Log.WarnContext(ctx, "webhook connection failed", "tenant", w.Tenant, "webhook", w.Name,
			"attempt", w.Attempts+1, "wait", p.Wait.Round(time.Second), "disabled", p.Disabled, "error", err)
	}
	due, err := d.Store.SaveProgress(ctx, *job, p)
	job.Due = due
	return err == nil && !due.IsZero() && p.Attempts == 0, err
}

// deliver sends the records that match. It returns false after a failure, and if the claim has ended or
// somebody else changed the position.
func (d *Deliverer) deliver(ctx context.Context, job *Args, w Webhook, records []Record, until time.Time) (bool, error) {
	position := w.Position
	for i, r := range records {
		if last := i == len(records)-1; !w.Matches(r.Verb) && !last {
			continue // the position advances with the next event, or at the end
		}
		p := Progress{From: position, To: r.Sequence, Wait: lease}
		if w.Matches(r.Verb) {
			err := d.Sender.Send(ctx, w, r)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err != nil {
				p = after(err, w.Attempts, position, r.Sequence)
				d.Log.WarnContext(ctx, "webhook delivery failed", "tenant", w.Tenant, "webhook", w.Name, "event", r.ID(),
					"attempt", w.Attempts+1, "wait", p.Wait.Round(time.Second), "disabled", p.Disabled, "skipped", p.Skipped > 0, "error", err)
			}
		}
		due, err := d.Store.SaveProgress(ctx, *job, p)
		if err != nil || due.IsZero() {
			return false, err
		}
		job.Due = due
		if p.To == p.From || time.Now().After(until) {
			return false, nil
		}
		position, w.Attempts = p.To, 0
	}
	return true, nil
}

// after returns the progress after a failed attempt of the event with sequence number next.
func after(err error, attempts int, position, next int64) Progress {
	attempts++
	if errors.Is(err, errForbidden) {
		attempts = max(attempts, FailingAttempts) // another attempt soon has no other result
	}
	p := Progress{From: position, To: position, Attempts: attempts, Message: err.Error()}
	_, refused := errors.AsType[refusedError](err)
	_, gone := errors.AsType[goneError](err)
	switch {
	case refused && attempts >= refusals:
		return Progress{From: position, To: next, Wait: lease, Skipped: 1, Message: "skipped an event: " + err.Error()}
	case gone || attempts > len(schedule):
		p.Disabled = true
	case refused:
		p.Wait = schedule[0]
	default:
		p.Wait = jitter(schedule[attempts-1])
	}
	return p
}

// jitter adds up to a tenth, so that endpoints that failed together are not called together.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/10)) //nolint:gosec // no secret
}

// Queue queues deliveries until the context ends.
func Queue(ctx context.Context, s Store, log *slog.Logger) {
	tick := time.NewTicker(queueEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.QueueDeliveries(ctx, lease)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "webhooks are waiting for the job queue", "error", err)
		}
		failing = err != nil
	}
}
