package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestMigrateTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	for range 2 {
		version, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app"})
		if err != nil || version != postgres.SchemaVersion() {
			t.Errorf("Migrate = %d, %v; want %d", version, err, postgres.SchemaVersion())
		}
	}
	postgrestest.Open(t, d)
}

// Pods of a new revision start together, on a database that may be empty.
func TestMigrateFromNothingAtOnce(t *testing.T) {
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
	b.remember(t, b.users[0], "The grants are whole.", nil)
}

func TestMigrateRefusesRoles(t *testing.T) {
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
	for reason, tc := range map[string]struct{ role, says string }{
		"one that is not there": {"nobody-" + fmt.Sprint(len(d.AppURL)), "create role"},
		"the owner":             {"mnemo_test_owner", "row-level security"},
		"a superuser":           {superuser, "row-level security"},
	} {
		_, err := postgres.Migrate(t.Context(), postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: tc.role})
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("grant to %s: %v, want it to say %q", reason, err, tc.says)
		}
	}
}
