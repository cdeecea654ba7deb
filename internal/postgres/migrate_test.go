package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

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
