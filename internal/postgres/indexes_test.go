package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// holdSnapshot keeps concurrent builds of indexes from completing until release is called.
func holdSnapshot(t *testing.T, owner *pgxpool.Pool) (release func()) {
	t.Helper()
	tx, err := owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }
	t.Cleanup(release)
	if _, err := tx.Exec(t.Context(), "select from goose_db_version"); err != nil {
		t.Fatal(err)
	}
	return release
}

// building selects the concurrent builds that wait for an older transaction.
const building = "select from pg_stat_activity where datname = current_database() and wait_event = 'virtualxid' and query ilike '%create index concurrently%'"

// interruptBuild cancels the build of an index, which leaves it invalid.
func interruptBuild(t *testing.T, owner *pgxpool.Pool, build func(context.Context) error) {
	t.Helper()
	release := holdSnapshot(t, owner)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- build(ctx) }()
	awaitRow(t, owner, done, building)
	cancel()
	if err := <-done; err == nil {
		t.Fatal("the build was not interrupted")
	}
	for count(t, owner, "select count(*) from ("+building+") x") > 0 { // the server cancels it later than the client
	}
}

// buildIndex returns a function that executes a statement.
func buildIndex(owner *pgxpool.Pool, sql string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := owner.Exec(ctx, sql)
		return err
	}
}

// indexes returns the number of indexes with the name that queries can use, and the number of all others that they cannot.
func indexes(t *testing.T, owner *pgxpool.Pool, name string) (valid, invalid int) {
	t.Helper()
	return count(t, owner, "select count(*) from pg_index where indisvalid and indexrelid = to_regclass($1)", name),
		count(t, owner, "select count(*) from pg_index where not indisvalid")
}

// indexMigration builds an index in the next schema version.
const indexMigration = `-- +goose NO TRANSACTION
-- +goose Up
create index concurrently if not exists memories_run on memories (run_id);
`

// A killed process leaves an invalid index, which a build with "if not exists" would accept.
func TestMigrateAfterInterruptedBuild(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner, next := ownerPool(t, d), withMigration(t, indexMigration)
	interruptBuild(t, owner, func(ctx context.Context) error { return <-startMigrate(ctx, d, next) })
	if valid, invalid := indexes(t, owner, "memories_run"); valid != 0 || invalid != 1 {
		t.Fatalf("%d valid and %d invalid indexes after the interruption, want 0 and 1", valid, invalid)
	}
	if err := <-startMigrate(t.Context(), d, next); err != nil {
		t.Fatal(err)
	}
	if valid, invalid := indexes(t, owner, "memories_run"); valid != 1 || invalid != 0 {
		t.Errorf("%d valid and %d invalid indexes, want 1 and 0", valid, invalid)
	}
}

// PostgreSQL completes a build of a process that was killed, but the version is not recorded.
func TestMigrateAfterUnrecordedBuild(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	release := holdSnapshot(t, owner)
	built := startMemoryIndex(t, owner)
	awaitRow(t, owner, built, building)
	migrated := startMigrate(t.Context(), d, withMigration(t, indexMigration))
	awaitRow(t, owner, migrated, "select from pg_locks where relation = 'memories'::regclass and not granted")
	release()
	awaitMigratedIndex(t, owner, built, migrated)
}

// startMemoryIndex starts a build of the index memories_run.
func startMemoryIndex(t *testing.T, owner *pgxpool.Pool) <-chan error {
	t.Helper()
	built := make(chan error, 1)
	go func() {
		built <- buildIndex(owner, "create index concurrently memories_run on memories (run_id)")(t.Context())
	}()
	return built
}

// awaitMigratedIndex waits until the build and the migration have succeeded, and fails unless memories_run is valid.
func awaitMigratedIndex(t *testing.T, owner *pgxpool.Pool, built, migrated <-chan error) {
	t.Helper()
	if err := <-built; err != nil {
		t.Error(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if valid, invalid := indexes(t, owner, "memories_run"); valid != 1 || invalid != 0 {
		t.Errorf("%d valid and %d invalid indexes, want 1 and 0", valid, invalid)
	}
}

// A build releases the lock of the table before it commits. The index then cannot be dropped: "tuple concurrently updated".
func TestMigrateWhileBuildCommits(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	next := withMigration(t, indexMigration)
	commit := holdCommits(t, d, owner)
	built := startMemoryIndex(t, owner)
	awaitRow(t, owner, built, "select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()) and not granted")
	waiting := make(chan struct{}, 1)
	migrated := make(chan error, 1)
	go func() {
		_, err := postgres.MigrateWith(t.Context(), postgres.MigrateConfig{
			OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app", Log: slog.New(signalHandler{"waiting for the build of an index", waiting}),
		}, next)
		migrated <- err
	}()
	for done := false; !done; {
		select {
		case <-waiting:
			done = true
		default:
			if count(t, owner, "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'") > 0 {
				t.Error("the migration drops the index before the build has committed")
				done = true
			}
		}
	}
	commit()
	awaitMigratedIndex(t, owner, built, migrated)
}

// holdCommits keeps builds of indexes from committing until release is called.
func holdCommits(t *testing.T, d postgrestest.Database, owner *pgxpool.Pool) (release func()) {
	t.Helper()
	name, err := pgx.ParseConfig(d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Database = name.Database
	admin, err := pgx.ConnectConfig(t.Context(), config) // only a superuser can create event triggers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	for _, sql := range []string{
		"create schema hold", "grant usage on schema hold to public",
		"create function hold.commits() returns event_trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1); end $$",
		"create event trigger hold_commits on ddl_command_end when tag in ('CREATE INDEX') execute function hold.commits()",
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }
	t.Cleanup(release)
	if _, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock(1)"); err != nil {
		t.Fatal(err)
	}
	return release
}

// signalHandler sends a signal for each log record with the message.
type signalHandler struct {
	message string
	signals chan<- struct{}
}

func (signalHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h signalHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		select {
		case h.signals <- struct{}{}:
		default:
		}
	}
	return nil
}

func (h signalHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h signalHandler) WithGroup(string) slog.Handler { return h }

// Administrators may build indexes of their own during the migration, in another schema or by partition.
func TestMigrateKeepsOtherIndexes(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	exec(t, owner, "create table parts (id bigint) partition by range (id)")
	exec(t, owner, "create table part partition of parts for values from (0) to (10)")
	exec(t, owner, "create index parts_id on only parts (id)") // invalid until each partition has one
	exec(t, owner, "create schema other")
	exec(t, owner, "create table other.items (id bigint)")
	interruptBuild(t, owner, buildIndex(owner, "create index concurrently items_id on other.items (id)"))
	release := holdSnapshot(t, owner)
	built := make(chan error, 1)
	go func() {
		built <- buildIndex(owner, "create index concurrently memories_run on memories (run_id)")(t.Context())
	}()
	awaitRow(t, owner, built, building)
	id := count(t, owner, "select 'memories_run'::regclass::oid::bigint")
	migrated := startMigrate(t.Context(), d, nil)
	awaitRow(t, owner, migrated, "select from pg_locks where relation = 'memories'::regclass and not granted")
	release()
	if err := <-built; err != nil {
		t.Error(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"memories_run": true, "parts_id": false, "other.items_id": false} {
		var valid bool
		if err := owner.QueryRow(t.Context(), "select indisvalid from pg_index where indexrelid = to_regclass($1)", name).Scan(&valid); err != nil || valid != want {
			t.Errorf("%s: valid %t, %v, want %t", name, valid, err, want)
		}
	}
	if n := count(t, owner, fmt.Sprintf("select count(*) from pg_class where oid = %d", id)); n != 1 {
		t.Error("the index that was being built was built again")
	}
}
