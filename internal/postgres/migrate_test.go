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
