package postgres_test

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
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
