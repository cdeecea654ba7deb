package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// erasuresCommand groups the commands of the erasure ledger (docs/backup.md).
type erasuresCommand struct {
	Record recordErasuresCommand `cmd:"" help:"Copy erasures to the ledger until stopped. Repeats them first if the database was restored from a backup."`
	Apply  applyErasuresCommand  `cmd:"" help:"Repeat the erasures of a ledger in a restored database once."`
	Stop   stopErasuresCommand   `cmd:"" help:"Stop recording erasures after disabling the ledger, and discard pending ones."`
}

type ledgerFlags struct {
	databaseFlags
	Ledger     string        `env:"MNEMO_ERASURE_LEDGER_DIR" required:"" type:"existingdir" help:"Directory of the erasure ledger, outside the database."`
	Keep       time.Duration `env:"MNEMO_ERASURE_LEDGER_KEEP" default:"0s" help:"How long entries are kept; older backups cannot be restored. 0s keeps them forever."`
	AcceptLoss bool          `env:"MNEMO_ERASURE_ACCEPT_LOSS" help:"Apply a ledger that may lack erasures since the backup. Erased data may reappear."`
}

// with calls fn with a recorder on the database and the ledger.
func (f ledgerFlags) with(ctx context.Context, log *slog.Logger, fn func(*erasure.Recorder) error) error {
	db, err := f.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	r, err := erasure.Open(erasure.Config{Store: db.Erasures(), Dir: f.Ledger, Keep: f.Keep, AcceptLoss: f.AcceptLoss, Log: log})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // everything is synced
	return fn(r)
}

type recordErasuresCommand struct{ ledgerFlags }

// Run records erasures until the context ends.
func (c *recordErasuresCommand) Run(ctx context.Context, log *slog.Logger) error {
	limitMemory(ctx, memlimit.FromCgroup, defaultMemoryRatio, log)
	return c.with(ctx, log, func(r *erasure.Recorder) error { return r.Run(ctx) })
}

type applyErasuresCommand struct{ ledgerFlags }

// Run applies the ledger once and records what is pending.
func (c *applyErasuresCommand) Run(ctx context.Context, log *slog.Logger) error {
	return c.with(ctx, log, func(r *erasure.Recorder) error {
		repeated, err := r.Attach(ctx)
		if err != nil {
			return err
		}
		recorded := 0
		for n := 1; n > 0; recorded += n {
			if n, err = r.Record(ctx); err != nil {
				return err
			}
		}
		_, err = fmt.Printf("repeated %d erasures and recorded %d\n", repeated, recorded)
		return err
	})
}

type stopErasuresCommand struct{ databaseFlags }

// Run stops the recording.
func (c *stopErasuresCommand) Run(ctx context.Context) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.StopErasures(ctx); err != nil {
		return err
	}
	_, err = fmt.Println("erasures are no longer recorded; to record them again, start with an empty ledger")
	return err
}

const (
	// erasureTimeout is how long serve waits at startup for the erasure ledger.
	erasureTimeout = 15 * time.Minute
	// restoreCheck is the interval at which serve checks whether the database was
	// restored.
	restoreCheck = 5 * time.Second
)

// untilRestored returns a function that runs fn and fails when the database was
// restored. After a restart, serve waits for the erasure ledger.
func untilRestored(db *postgres.DB, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return fn(ctx) })
		g.Go(func() error {
			tick := time.NewTicker(restoreCheck)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
				// Errors are those of any request, which report them.
				if s, err := db.Erasures().State(ctx); err == nil && !s.Current {
					return errors.New("the database was restored from a backup; restarting to wait for the erasure ledger")
				}
			}
		})
		return g.Wait()
	}
}
