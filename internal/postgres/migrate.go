package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// schemaFiles are the versions of the schema, in order, and the functions, views, policies and triggers, which are
// applied again when they change. See migrations/README.md before you change one.
//
//go:embed migrations/*.sql repeatable
var schemaFiles embed.FS

var errInvalidOwnerURL = errors.New("the owner's database URL is invalid: it must have the form postgres://user:password@host:port/database")

// migrationRetry is the interval between checks whether another migration has
// finished.
const migrationRetry = 200 * time.Millisecond

const (
	// lockTimeout is how long a migration waits for the lock of a table, and the export of a day for those of its tenants.
	// Other statements wait behind it. PostgreSQL cancels an autovacuum that has the lock after deadlock_timeout, a second.
	lockTimeout = 2 * time.Second
	// lockRetry is the delay before the lock is requested again, in which other statements run.
	lockRetry = 10 * time.Second
)

// MigrateConfig configures Migrate.
type MigrateConfig struct {
	OwnerURL string // PostgreSQL URL of the role that owns the database
	AppRole  string // existing role that serve and operator connect as
	// Cell is the number of a new database; nil for 0, or for that of an existing one.
	Cell *tenant.DatabaseCell
	Log  *slog.Logger // slog.Default() if nil

	files fs.FS // schemaFiles if nil
}

// Migrate updates the schema and the job queue's tables, grants the
// application role its privileges, and disables JIT compilation in the
// database. Of several concurrent calls one migrates and the others wait. While
// a transaction uses a table that a migration changes, it retries until ctx ends.
// It returns the resulting schema version.
func Migrate(ctx context.Context, c MigrateConfig) (int64, error) {
	config, err := pgxpool.ParseConfig(c.OwnerURL)
	if err != nil {
		return 0, errInvalidOwnerURL
	}
	config.MaxConns = 4
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, fmt.Sprintf("set lock_timeout = %d", lockTimeout.Milliseconds()))
		return err //nolint:wrapcheck // pgxpool wraps it
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, fmt.Errorf("open database: %w", mapError(err))
	}
	defer pool.Close()
	if err := checkRole(ctx, pool, c.AppRole); err != nil {
		return 0, err
	}
	unlock, err := lockMigration(ctx, pool)
	if err != nil {
		return 0, err
	}
	defer unlock()
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.files == nil {
		c.files = schemaFiles
	}
	var version int64
	err = awaitLocks(ctx, func() error {
		var err error
		version, err = migrate(ctx, pool, c)
		return err
	}, func(err error) {
		c.Log.WarnContext(ctx, "waiting for transactions that use the tables, such as a backup or the export of an account; retrying",
			"interval", lockRetry, "error", err)
	})
	return version, err
}

// migrate executes the steps of Migrate. They can be repeated.
func migrate(ctx context.Context, pool *pgxpool.Pool, c MigrateConfig) (int64, error) {
	if _, err := readSchema(ctx, pool); err != nil {
		return 0, err
	}
	if err := disableJIT(ctx, pool); err != nil {
		return 0, err
	}
	if err := dropUnfinishedIndexes(ctx, pool, c.Log); err != nil {
		return 0, err
	}
	version, err := migrateSchema(ctx, pool, c.files)
	if err != nil {
		return 0, err
	}
	if err := setDatabaseCell(ctx, pool, c.Cell); err != nil {
		return 0, err
	}
	if err := migrateJobs(ctx, pool); err != nil {
		return 0, err
	}
	if err := grant(ctx, pool, c.AppRole); err != nil {
		return 0, err
	}
	return version, nil
}

// awaitLocks calls fn again while it fails because of a lock timeout, and warn once with each distinct error.
func awaitLocks(ctx context.Context, fn func() error, warn func(error)) error {
	logged := ""
	for {
		err := fn()
		if !isLockTimeout(err) {
			return err
		}
		if err.Error() != logged {
			logged = err.Error()
			warn(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockRetry):
		}
	}
}

// checkRole returns an error with the required command if the application role
// does not exist, and rejects a role that bypasses row-level security.
func checkRole(ctx context.Context, pool *pgxpool.Pool, role string) error {
	var above bool
	err := pool.QueryRow(ctx, `select rolsuper or rolbypassrls or pg_has_role(oid, current_user, 'member')
		from pg_roles where rolname = $1`, role).Scan(&above)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.Invalid, "role %q does not exist: run `create role %s login password '…'` first", role, pgx.Identifier{role}.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("look the app's role up: %w", mapError(err))
	}
	if above {
		return fault.New(fault.Invalid, "role %q bypasses row-level security: it must not be a superuser, have bypassrls or be a member of the owner role", role)
	}
	return nil
}

// lockMigration waits until no other process migrates. It polls instead of
// waiting in the database: a waiting statement would prevent an index that is
// built concurrently from completing.
func lockMigration(ctx context.Context, pool *pgxpool.Pool) (unlock func(), err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", mapError(err))
	}
	for {
		var locked bool
		if err := conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtext('mnemo.migrate'))").Scan(&locked); err != nil {
			conn.Release()
			return nil, fmt.Errorf("lock migration: %w", mapError(err))
		}
		if locked {
			// The lock is released with the session.
			return func() { _ = conn.Hijack().Close(context.WithoutCancel(ctx)) }, nil
		}
		select {
		case <-ctx.Done():
			conn.Release()
			return nil, fmt.Errorf("wait for another migration: %w", ctx.Err())
		case <-time.After(migrationRetry):
		}
	}
}

// migrateSchema applies the pending migrations, and the repeatable files that have changed unless the database has a
// newer schema.
func migrateSchema(ctx context.Context, pool *pgxpool.Pool, files fs.FS) (int64, error) {
	version, newest, err := applyMigrations(ctx, pool, files)
	if err != nil || version > newest {
		return version, err
	}
	return version, applyRepeatable(ctx, pool, files)
}

// applyMigrations applies the pending migrations and returns the version of the database and that of the newest
// migration. Those outside a transaction build or drop an index concurrently, which blocks no statements while it waits
// for old transactions, and starts over if it fails. They have no lock timeout.
func applyMigrations(ctx context.Context, pool *pgxpool.Pool, files fs.FS) (version, newest int64, err error) {
	files, err = fs.Sub(files, "migrations")
	if err != nil {
		return 0, 0, fmt.Errorf("read migrations: %w", err)
	}
	conn, patient := stdlib.OpenDBFromPool(pool), stdlib.OpenDB(*pool.Config().ConnConfig)
	defer func() { _, _ = conn.Close(), patient.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, files)
	if err != nil {
		return 0, 0, fmt.Errorf("prepare migrations: %w", err)
	}
	concurrent, err := goose.NewProvider(goose.DialectPostgres, patient, files)
	if err != nil {
		return 0, 0, fmt.Errorf("prepare migrations: %w", err)
	}
	for _, source := range provider.ListSources() {
		content, err := fs.ReadFile(files, source.Path)
		if err != nil {
			return 0, 0, fmt.Errorf("read migrations: %w", err)
		}
		p := provider
		if strings.Contains(string(content), "-- +goose NO TRANSACTION") {
			p = concurrent
		}
		if _, err := p.UpTo(ctx, source.Version); err != nil {
			return 0, 0, fmt.Errorf("migrate schema: %w", mapError(err))
		}
		newest = source.Version
	}
	version, err = provider.GetDBVersion(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", mapError(err))
	}
	return version, newest, nil
}

// migrateJobs updates the job queue's tables.
func migrateJobs(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return fmt.Errorf("prepare job queue: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate job queue: %w", mapError(err))
	}
	if err := dropUnusedIndexes(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, tenantIndex); err != nil {
		return fmt.Errorf("index job queue: %w", mapError(err))
	}
	return nil
}

// dropUnusedIndexes drops the indexes of the job queue that nothing reads. They have an entry for each unit of an index job, and each change of
// the job's state would add all entries again. As for migrations outside a transaction, there is no lock timeout.
func dropUnusedIndexes(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", mapError(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, name := range queue.UnusedIndexes {
		if _, err := conn.Exec(ctx, "drop index concurrently if exists "+name); err != nil {
			return fmt.Errorf("drop index %s of the job queue: %w", name, mapError(err))
		}
	}
	return nil
}

// grant gives the application role access to rows, but neither to the schema
// nor to partitions, because policies of the partitioned table do not apply to
// them.
func grant(ctx context.Context, pool *pgxpool.Pool, role string) error {
	name := pgx.Identifier{role}.Sanitize()
	rows, err := pool.Query(ctx, `select quote_ident(relname) from pg_class
		where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition`)
	if err != nil {
		return fmt.Errorf("list tables: %w", mapError(err))
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list tables: %w", mapError(err))
	}
	for _, sql := range []string{
		"grant usage on schema public to " + name,
		"grant select, insert, update, delete on " + strings.Join(tables, ", ") + " to " + name,
		"grant usage, select, update on all sequences in schema public to " + name,
		"grant execute on function lexical_ranking, oauth_holder, oauth_app, user_token_holder, upload_bytes, imports_wait, audit_append, audit_tenants, audit_backlog, audit_expire, webhooks_claim, webhooks_failing, webhook_tenants, tenants_failing_webhooks, require_created, require_quota, memories_with_text, merged_tree to " + name,
		"revoke insert, update, delete on goose_db_version, schema_oldest, schema_files, database_cell from " + name,
		// The audit log only grows: audit_append writes it and audit_expire deletes old records.
		"revoke insert, update on audit_pending from " + name,
		"revoke update, delete on audit_records from " + name,
		"revoke delete on audit_chains from " + name,
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("grant to %s: %w", role, mapError(err))
		}
	}
	return nil
}

// disableJIT disables just-in-time compilation for new connections, before servers accept the
// schema and connect. All statements are short, but PostgreSQL overestimates the cost of some,
// and compiles them for each execution, which takes hundreds of milliseconds. The setting is
// not part of the schema because restoring a dump into an existing database omits it.
func disableJIT(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "do $$ begin execute format('alter database %I set jit = off', current_database()); end $$")
	if err != nil {
		return fmt.Errorf("disable JIT compilation: %w", mapError(err))
	}
	return nil
}
