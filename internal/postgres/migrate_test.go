package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestMigrateIsIdempotent(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	for range 2 {
		version, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"})
		if err != nil {
			t.Fatal(err)
		}
		if version != postgres.SchemaVersion() {
			t.Errorf("Migrate = %d, want %d", version, postgres.SchemaVersion())
		}
	}
	postgrestest.Open(t, d)
}

// Several Pods can migrate an empty database at the same time.
func TestMigrateConcurrently(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	exec(t, owner, "drop schema public cascade")
	exec(t, owner, "create schema public")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b := setupIn(t, d, nil)
	b.remember(t, b.users[0], "The migration granted all privileges.", nil)
}

// The versions of earlier development schemas have the numbers of ours or higher ones, but
// other tables.
func TestDatabaseOfEarlyDevelopmentIsRejected(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	exec(t, owner, "drop schema public cascade")
	exec(t, owner, "create schema public")
	exec(t, owner, "grant usage on schema public to mnemo_test_app")
	exec(t, owner, `create table goose_db_version (id serial primary key, version_id bigint not null, is_applied boolean not null,
		tstamp timestamp not null default now())`)
	exec(t, owner, "insert into goose_db_version (version_id, is_applied) select generate_series(0, 13), true")
	exec(t, owner, "create table schema_oldest as select 0::bigint as version")
	exec(t, owner, "create table memories (id uuid primary key)")
	exec(t, owner, "alter table memories enable row level security")
	exec(t, owner, "grant select on goose_db_version, schema_oldest, memories to mnemo_test_app")
	wantRejected := func(step string, err error) {
		t.Helper()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "make reset") {
			t.Errorf("%s: %v, want an error that says to run `make reset`", step, err)
		}
	}
	_, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"})
	wantRejected("Migrate", err)
	_, err = postgres.Open(t.Context(), postgres.Config{URL: d.AppURL})
	wantRejected("Open", err)
}

func TestMigrateRejectsRoles(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	admin, err := pgx.Connect(t.Context(), testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	var superuser string
	if err := admin.QueryRow(t.Context(), "select current_user").Scan(&superuser); err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct{ role, want string }{
		"missing role": {"nobody-" + fmt.Sprint(len(d.AppURL)), "create role"},
		"owner":        {"mnemo_test_owner", "row-level security"},
		"superuser":    {superuser, "row-level security"},
	} {
		_, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: tc.role})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("grant to %s: %v, want an error that contains %q", reason, err, tc.want)
		}
	}
}

// An index job has hundreds of units in its arguments. Nothing searches for them.
func TestJobArgumentsAreNotIndexed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var found []string
	err := b.owner.QueryRow(t.Context(), "select coalesce(array_agg(indexdef), '{}') from pg_indexes where tablename = 'river_job' and indexdef ilike '% using gin %'").Scan(&found)
	if err != nil || len(found) > 0 {
		t.Errorf("river_job has the indexes %q, %v", found, err)
	}
}

func TestMigrateDisablesJIT(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	jit := func() (setting string) {
		conn := session(t, d, tenant.Scope{})
		if err := conn.QueryRow(t.Context(), "show jit").Scan(&setting); err != nil {
			t.Fatal(err)
		}
		return setting
	}
	if got := jit(); got != "on" { // a copy of a database does not have its settings
		t.Fatalf("jit is %s before the migration, want on", got)
	}
	if _, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"}); err != nil {
		t.Fatal(err)
	}
	if got := jit(); got != "off" {
		t.Errorf("jit is %s after the migration, want off", got)
	}
}

// createAt returns an empty database with an older version of the schema.
func createAt(t *testing.T, version int64) (postgrestest.Database, *pgxpool.Pool) {
	t.Helper()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	exec(t, owner, "drop schema public cascade")
	exec(t, owner, "create schema public")
	conn := stdlib.OpenDBFromPool(owner)
	defer func() { _ = conn.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return d, owner
}

// startMigrate migrates in the background until ctx ends. The result arrives in the channel.
func startMigrate(ctx context.Context, d postgrestest.Database) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"})
		done <- err
	}()
	return done
}

// awaitRow waits until the query returns a row, while the migration is running.
func awaitRow(t *testing.T, pool *pgxpool.Pool, migrated <-chan error, sql string) {
	t.Helper()
	for count(t, pool, "select count(*) from ("+sql+") x") == 0 {
		select {
		case err := <-migrated:
			t.Fatalf("Migrate = %v before %q", err, sql)
		default:
		}
	}
}

// pg_dump and the export of an account read tables in one transaction, which can last an hour. A statement that waits for
// the exclusive lock of a migration would wait for them, too.
func TestMigrateDoesNotBlockStatements(t *testing.T) {
	t.Parallel()
	d, owner := createAt(t, 33) // the next version changes the policies of all tables
	backup, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := backup.Exec(t.Context(), "lock table memories in access share mode"); err != nil {
		t.Fatal(err)
	}
	migrated := startMigrate(t.Context(), d)
	awaitRow(t, owner, migrated, "select from pg_locks where relation = 'memories'::regclass and mode = 'AccessExclusiveLock' and not granted")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := owner.Exec(ctx, "select from memories"); err != nil {
		t.Errorf("a statement during the migration: %v", err)
	}
	if err := backup.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	if n := count(t, owner, "select max(version_id) from goose_db_version"); int64(n) != postgres.SchemaVersion() {
		t.Errorf("schema %d after the migration, want %d", n, postgres.SchemaVersion())
	}
	postgrestest.Open(t, d)
}

// A concurrent drop of an index waits for the transactions that use its table, too. If it failed meanwhile, the index would be invalid.
func TestMigrateDropsIndexOnce(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	exec(t, owner, "create index river_job_args_index on river_job using gin (args)")
	backup, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := backup.Exec(t.Context(), "select from river_job"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	migrated := startMigrate(ctx, d)
	awaitRow(t, owner, migrated, fmt.Sprintf(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
		and query like 'drop index concurrently%%river_job_args_index' and query_start < clock_timestamp() - interval '%d ms'`, 2*postgres.LockTimeout.Milliseconds()))
	if err := backup.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
}

// A concurrent build of an index waits for all older transactions. It must not fail and start over meanwhile.
func TestMigrateBuildsIndexOnce(t *testing.T) {
	t.Parallel()
	d, owner := createAt(t, 24) // the next version builds memories_id
	backup, err := owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := backup.Exec(t.Context(), "select from memories"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	migrated := startMigrate(ctx, d)
	awaitRow(t, owner, migrated, fmt.Sprintf(`select from pg_stat_activity where datname = current_database() and wait_event = 'virtualxid'
		and query like '%%create index concurrently memories_id%%' and query_start < clock_timestamp() - interval '%d ms'`, 2*postgres.LockTimeout.Milliseconds()))
	if err := backup.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
}
