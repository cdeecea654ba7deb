package erasure

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// poll is the interval at which new erasures are copied.
	poll = time.Second
	// batch is the maximum number of erasures per write.
	batch = 1000
	// compactEvery is the interval at which old entries are removed.
	compactEvery = 24 * time.Hour
)

// Config holds the dependencies of a Recorder. Store, Dir and Log are required.
type Config struct {
	Store Store
	Dir   string // contains the ledger
	// Keep is how long entries are kept, at least as long as the oldest backup;
	// 0 keeps them forever.
	Keep time.Duration
	// AcceptLoss applies a ledger that may lack erasures since the backup.
	AcceptLoss bool
	Now        func() time.Time // time.Now if nil
	Log        *slog.Logger
}

// Recorder copies erasures from the database to the ledger.
type Recorder struct {
	Config
	ledger *Ledger
}

// Open opens the ledger. The caller closes the Recorder.
func Open(c Config) (*Recorder, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	l, err := OpenLedger(c.Dir, c.Now())
	if err != nil {
		return nil, err
	}
	return &Recorder{Config: c, ledger: l}, nil
}

// Close closes the ledger.
func (r *Recorder) Close() error { return r.ledger.Close() }

// Run attaches the database and then copies its erasures until the context ends.
// It returns an error that a retry does not solve, such as an incomplete ledger.
func (r *Recorder) Run(ctx context.Context) error {
	compacted := time.Time{}
	for ctx.Err() == nil {
		if r.Keep > 0 && r.Now().Sub(compacted) >= compactEvery {
			n, err := r.ledger.Compact(r.Now().Add(-r.Keep))
			if err != nil {
				return err
			}
			r.Log.InfoContext(ctx, "erasure ledger compacted", "removed", n)
			compacted = r.Now()
		}
		_, err := r.Attach(ctx)
		if err == nil {
			err = r.follow(ctx, compacted.Add(compactEvery))
		}
		switch {
		case err == nil || ctx.Err() != nil:
			continue
		case fault.Is(err, fault.Invalid):
			return err
		}
		r.Log.WarnContext(ctx, "erasures are not recorded; will be retried", "error", err)
		wait(ctx, poll)
		// A failed write may have left a part of a line.
		if err := r.reopen(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) reopen() error {
	if err := r.ledger.Close(); err != nil {
		return fmt.Errorf("close erasure ledger: %w", err)
	}
	l, err := OpenLedger(r.Dir, r.Now())
	if err != nil {
		return err
	}
	r.ledger = l
	return nil
}

// follow copies erasures until an error, the context's end, the given time, or
// until the database was restored.
func (r *Recorder) follow(ctx context.Context, until time.Time) error {
	for ctx.Err() == nil && (r.Keep == 0 || r.Now().Before(until)) {
		s, err := r.Store.State(ctx)
		if err != nil || s != (State{Ledger: r.ledger.ID(), Position: r.ledger.Last(), Current: true}) {
			return err
		}
		n, err := r.Record(ctx)
		if err != nil {
			return err
		}
		if n < batch {
			wait(ctx, poll)
		}
	}
	return nil
}

// Record copies one batch of erasures and returns its size.
func (r *Recorder) Record(ctx context.Context) (int, error) {
	entries, err := r.Store.Pending(ctx, batch)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	from := r.ledger.Last()
	if err := r.ledger.Append(entries); err != nil {
		return 0, err
	}
	return len(entries), r.Store.Acknowledge(ctx, r.ledger.ID(), from, r.ledger.Last(), ids(entries))
}

// Attach compares the database with the ledger. If the ledger is ahead, the
// database was restored from a backup: Attach repeats the missing erasures and
// returns their number.
func (r *Recorder) Attach(ctx context.Context) (repeated int, err error) {
	s, err := r.Store.State(ctx)
	if err != nil {
		return 0, err
	}
	after, lost, err := r.start(ctx, s)
	if err != nil {
		return 0, err
	}
	repeated, recorded, err := r.repeat(ctx, s, after)
	if err != nil {
		return 0, err
	}
	if lost {
		if err := r.ledger.AppendLoss(r.Now(), s.Position); err != nil {
			return 0, err
		}
	}
	return repeated, r.Store.Attach(ctx, r.ledger.ID(), r.ledger.Last(), recorded)
}

// start returns the position after which the database may lack entries. lost means that the ledger lacks entries
// that belong after its end.
func (r *Recorder) start(ctx context.Context, s State) (after int64, lost bool, err error) {
	other, used := s.Ledger != r.ledger.ID(), r.ledger.Last() > 0
	switch {
	case s.Ledger == "" && s.Current && used:
		// Its entries are older than data that was stored since.
		return 0, false, fault.New(fault.Invalid, "the recording of erasures was stopped, and ledger %s cannot be continued: "+
			"keep a copy for earlier backups, and provide an empty directory", r.ledger.ID())
	case s.Ledger == "":
		return r.ledger.After, false, nil
	case other && s.Current:
		r.Log.WarnContext(ctx, "the database used another erasure ledger; backups made until now cannot be restored with this one",
			"previous", s.Ledger, "ledger", r.ledger.ID())
		return r.ledger.Last(), used, nil
	}
	if err := r.missing(s); err != nil && !r.AcceptLoss {
		return 0, false, err
	} else if err != nil {
		r.Log.WarnContext(ctx, "applying a ledger that may lack erasures since the backup", "ledger", r.ledger.ID())
	}
	if other { // positions of another ledger say nothing
		return r.ledger.After, used, nil
	}
	return min(max(s.Position, r.ledger.After), r.ledger.Last()), s.Position > r.ledger.Last(), nil
}

// missing returns an error if the ledger lacks entries that the database may lack.
func (r *Recorder) missing(s State) error {
	switch {
	case s.Ledger != r.ledger.ID():
		return lossError("the database was restored from a backup made with erasure ledger %s, but this is ledger %s", s.Ledger, r.ledger.ID())
	case s.Position > r.ledger.Last():
		return lossError("the ledger ends at entry %d, but the database reflects entry %d: the ledger is an old copy", r.ledger.Last(), s.Position)
	case s.Position < r.ledger.After:
		return lossError("the backup reflects entry %d, but older entries than %d were removed from the ledger", s.Position, r.ledger.After+1)
	case s.Position < r.ledger.complete:
		return lossError("the backup reflects entry %d, but the ledger lost entries that followed it", s.Position)
	}
	return nil
}

func lossError(format string, args ...any) error {
	return fault.New(fault.Invalid, "%s; provide the complete ledger, or accept with --accept-loss that erased data may reappear",
		fmt.Sprintf(format, args...))
}

// repeat repeats the entries after a position that the database lacks. It returns their number, and the
// ids of those that are still pending in it: they were written just before a crash or a backup.
// It reads the ledger in batches, because a ledger may be larger than the memory.
func (r *Recorder) repeat(ctx context.Context, s State, after int64) (repeated int, recorded []string, err error) {
	log := r.Log.With("ledger", r.ledger.ID(), "from", s.Position, "to", r.ledger.Last())
	begun := false
	begin := func() error {
		if begun {
			return nil
		}
		begun = true
		log.WarnContext(ctx, "the database was restored from a backup; repeating erasures")
		return r.Store.BeginReplay(ctx)
	}
	if !s.Current && s.Ledger != "" {
		if err := begin(); err != nil {
			return 0, nil, err
		}
	}
	err = r.ledger.Batches(after, batch, func(entries []Entry) error {
		known, err := r.Store.Known(ctx, ids(entries))
		if err != nil {
			return err
		}
		recorded = append(recorded, known...)
		for _, e := range entries {
			if slices.Contains(known, e.ID) {
				continue
			}
			if err := begin(); err != nil {
				return err
			}
			if err := r.Store.Replay(ctx, e); err != nil {
				return fmt.Errorf("repeat erasure %d (%s): %w", e.Position, e.Kind, err)
			}
			repeated++
		}
		return nil
	})
	if err == nil && begun {
		log.InfoContext(ctx, "erasures repeated", "erasures", repeated)
	}
	return repeated, recorded, err
}

func ids(entries []Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID
	}
	return out
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
