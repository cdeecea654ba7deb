package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type migrateCommand struct {
	OwnerURL     string        `name:"database-owner-url" env:"DATABASE_OWNER_URL" required:"" help:"PostgreSQL URL of the role that owns the database."`
	AppRole      string        `name:"database-app-role" env:"DATABASE_APP_ROLE" default:"mnemo_app" help:"Role that serve and operator connect as. It must exist."`
	DatabaseCell *int64        `env:"MNEMO_DATABASE_CELL" help:"Number of a new database, 0 to 4095, if the installation has several (docs/cells.md). It cannot be changed. Default: 0, or that of an existing database."`
	WaitTimeout  time.Duration `env:"MNEMO_MIGRATE_WAIT_TIMEOUT" default:"0s" help:"How long to retry while the database or its roles do not exist yet."`
}

// Run migrates the schema.
func (c *migrateCommand) Run(ctx context.Context, log *slog.Logger) error {
	return retry(ctx, log, c.WaitTimeout, func(ctx context.Context) error {
		version, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: c.OwnerURL, AppRole: c.AppRole, Cell: (*tenant.DatabaseCell)(c.DatabaseCell), Log: log})
		if err != nil {
			return err
		}
		log.InfoContext(ctx, "schema migrated", "version", version)
		return nil
	})
}

type waitCommand struct {
	DatabaseURL string        `env:"DATABASE_URL" required:"" help:"PostgreSQL URL of the application role."`
	Timeout     time.Duration `env:"MNEMO_WAIT_TIMEOUT" default:"15m" help:"How long to wait."`
	Erasures    bool          `env:"MNEMO_ERASURE_LEDGER" help:"Also wait until the erasure ledger is applied to the database."`
	RestoreID   string        `env:"MNEMO_RESTORE_ID" help:"The same value as for mnemo serve."`
}

// Run returns once serve and operator can start on the database.
func (c *waitCommand) Run(ctx context.Context, log *slog.Logger) error {
	return retry(ctx, log, c.Timeout, func(ctx context.Context) error {
		db, err := postgres.Open(ctx, postgres.Config{URL: c.DatabaseURL, MaxConns: 1, RestoreID: c.RestoreID, Log: log})
		if err != nil {
			return err
		}
		defer db.Close()
		if c.Erasures {
			if err := db.CheckErasures(ctx); err != nil {
				return err
			}
		}
		log.InfoContext(ctx, "database schema is current", "version", postgres.SchemaVersion())
		return nil
	})
}

// retryInterval is the delay between attempts.
const retryInterval = 2 * time.Second

// retry calls fn until it succeeds or the timeout has passed, and returns the
// last error. It logs each distinct error once. With a timeout of 0 it calls fn
// exactly once.
func retry(ctx context.Context, log *slog.Logger, timeout time.Duration, fn func(context.Context) error) error {
	deadline, logged := time.Now().Add(timeout), ""
	for {
		err := fn(ctx)
		if err == nil || ctx.Err() != nil || !time.Now().Add(retryInterval).Before(deadline) {
			return err
		}
		if err.Error() != logged {
			logged = err.Error()
			log.WarnContext(ctx, "not ready; retrying", "error", err, "deadline", deadline.UTC().Format(time.RFC3339))
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}
