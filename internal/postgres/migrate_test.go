package postgres_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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

// Schemas before 0.1.0 have the version numbers of ours or higher ones, but other tables.
func TestDatabaseBeforeTheFirstReleaseIsRejected(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 59} {
		d := postgrestest.Create(t)
		owner := ownerPool(t, d)
		for _, sql := range []string{
			"drop schema public cascade", "create schema public", "grant usage on schema public to mnemo_test_app",
			`create table goose_db_version (id serial primary key, version_id bigint not null, is_applied boolean not null,
				tstamp timestamp not null default now())`,
			fmt.Sprintf("insert into goose_db_version (version_id, is_applied) select generate_series(0, %d), true", version),
			"create table schema_oldest as select 0::bigint as version",
			"create table memories (id uuid primary key)", "alter table memories enable row level security",
			"grant select on goose_db_version, schema_oldest, memories to mnemo_test_app",
		} {
			exec(t, owner, sql)
		}
		_, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"})
		wantBeforeFirstRelease(t, fmt.Sprintf("Migrate schema %d", version), err)
		_, err = postgres.Open(t.Context(), postgres.Config{URL: d.AppURL})
		wantBeforeFirstRelease(t, fmt.Sprintf("Open schema %d", version), err)
	}
}

func wantBeforeFirstRelease(t *testing.T, step string, err error) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "before 0.1.0") ||
		!strings.Contains(err.Error(), "empty database") {
		t.Errorf("%s: %v, want an error that names the version and what to do", step, err)
	}
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

// binaryFiles returns the files of this binary, for a test to change.
func binaryFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(postgres.SchemaFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := postgres.SchemaFiles.ReadFile(path)
		files[path] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// withMigration returns the files of a binary of the next schema version.
func withMigration(t *testing.T, sql string) fstest.MapFS {
	t.Helper()
	files := binaryFiles(t)
	files[fmt.Sprintf("migrations/%05d_next.sql", postgres.SchemaVersion()+1)] = &fstest.MapFile{Data: []byte(sql)}
	return files
}

// changedFile changes a file of the schema.
func changedFile(t *testing.T, files fstest.MapFS, path, old, changed string) fstest.MapFS {
	t.Helper()
	before := string(files[path].Data)
	after := strings.ReplaceAll(before, old, changed)
	if after == before {
		t.Fatalf("%s does not contain %q", path, old)
	}
	files[path] = &fstest.MapFile{Data: []byte(after)}
	return files
}

// startMigrate migrates in the background until ctx ends, with other files than those of this binary unless they are
// nil. The result arrives in the channel.
func startMigrate(ctx context.Context, d postgrestest.Database, files fs.FS) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := postgres.MigrateWith(ctx, postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"}, files)
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
	for name, files := range map[string]fstest.MapFS{
		"migration": withMigration(t, "-- +goose Up\nalter table memories add column next text;"),
		"policies":  changedFile(t, binaryFiles(t), "repeatable/policies.sql", "do $$", "-- Changed.\ndo $$"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.Create(t)
			wantUnblocked(t, d, files)
			postgrestest.Open(t, d)
		})
	}
}

// wantUnblocked migrates during a backup, and fails if a statement waits until the end of the backup.
func wantUnblocked(t *testing.T, d postgrestest.Database, files fs.FS) {
	t.Helper()
	owner := ownerPool(t, d)
	backup, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := backup.Exec(t.Context(), "lock table memories in access share mode"); err != nil {
		t.Fatal(err)
	}
	migrated := startMigrate(t.Context(), d, files)
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
}

const (
	functionFile = "repeatable/functions/memories.sql"
	functionText = "'not created'" // in the body of require_created
)

// functionHas reports whether the body of require_created contains the text.
func functionHas(t *testing.T, owner *pgxpool.Pool, text string) bool {
	t.Helper()
	const sql = "select count(*) from pg_proc where proname = 'require_created' and strpos(prosrc, $1) > 0"
	return count(t, owner, sql, text) == 1
}

// A changed function is replaced without a migration. A rollback to a binary of the same schema version restores it.
func TestMigrateReplacesChangedFunctions(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	changed := changedFile(t, binaryFiles(t), functionFile, functionText, "'changed'")
	for _, step := range []struct {
		name  string
		files fs.FS
		want  string
	}{{"upgrade", changed, "'changed'"}, {"rollback", nil, functionText}, {"second upgrade", changed, "'changed'"}} {
		if err := <-startMigrate(t.Context(), d, step.files); err != nil {
			t.Fatal(err)
		}
		if !functionHas(t, owner, step.want) {
			t.Errorf("%s: the function does not contain %s", step.name, step.want)
		}
		postgrestest.Open(t, d) // a binary whose files were applied before runs on newer ones
	}
}

// A file that fails changes nothing, so that the next attempt applies it as a whole.
func TestMigrateAppliesAFileAsAWhole(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	files := changedFile(t, binaryFiles(t), functionFile, functionText, "'changed'")
	files[functionFile].Data = append(files[functionFile].Data, "select 1 / 0;"...)
	if err := <-startMigrate(t.Context(), d, files); err == nil || !strings.Contains(err.Error(), functionFile) {
		t.Fatalf("Migrate = %v, want an error that names the file", err)
	}
	if !functionHas(t, owner, functionText) {
		t.Error("the function was replaced")
	}
}

// A rollback to a binary of an older schema version keeps the newer functions, which the newer binaries still use.
func TestMigrateKeepsTheFunctionsOfANewerSchema(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	next := withMigration(t, "-- +goose Up\nalter table memories add column next text;")
	for _, files := range []fs.FS{changedFile(t, next, functionFile, functionText, "'next'"), nil} {
		if err := <-startMigrate(t.Context(), d, files); err != nil {
			t.Fatal(err)
		}
		if !functionHas(t, owner, "'next'") {
			t.Error("the function is not that of the newer schema")
		}
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
	migrated := startMigrate(ctx, d, nil)
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
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
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
	migrated := startMigrate(ctx, d, withMigration(t, indexMigration))
	awaitRow(t, owner, migrated, fmt.Sprintf(`select from pg_stat_activity where datname = current_database() and wait_event = 'virtualxid'
		and query like '%%create index concurrently if not exists memories_run%%' and query_start < clock_timestamp() - interval '%d ms'`, 2*postgres.LockTimeout.Milliseconds()))
	if err := backup.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
}
