package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// sequence is a sequence of ids.
type sequence struct {
	Name     string
	Min, Max int64
	Last     *int64 // nil if none was assigned
}

func sequencesOf(t *testing.T, owner *pgxpool.Pool) []sequence {
	t.Helper()
	rows, err := owner.Query(t.Context(), `select sequencename::text, min_value, max_value, last_value from pg_sequences
		where schemaname = 'public' and sequencename not like 'river%' and sequencename not like 'goose%' order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sequence])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func migrateCell(ctx context.Context, d postgrestest.Database, cell *tenant.DatabaseCell) error {
	_, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: d.OwnerURL, AppRole: "mnemo_test_app", Cell: cell})
	return err
}

// Every id of a database is of its range, also that of a later migration. Embedding generations are numbered
// per database.
func TestSequencesOfCell(t *testing.T) {
	t.Parallel()
	for _, cell := range []tenant.DatabaseCell{0, 7, tenant.MaxDatabaseCell} {
		d := postgrestest.CreateInCell(t, cell)
		for _, s := range sequencesOf(t, ownerPool(t, d)) {
			if s.Name != "embedding_generations_id_seq" && (s.Min != cell.FirstID() || s.Max != cell.LastID()) {
				t.Errorf("cell %d: %s has the range %d to %d, want %d to %d", cell, s.Name, s.Min, s.Max, cell.FirstID(), cell.LastID())
			}
		}
	}
}

// The whole range works: ids of users, buckets and units are stored and returned completely.
func TestIDsOfTheLastCell(t *testing.T) {
	t.Parallel()
	b := setupIn(t, postgrestest.CreateInCell(t, tenant.MaxDatabaseCell), nil)
	wantInRange := func(name string, id int64) {
		t.Helper()
		if first, last := tenant.MaxDatabaseCell.FirstID(), tenant.MaxDatabaseCell.LastID(); id < first || id > last {
			t.Errorf("the %s has the id %d, want %d to %d", name, id, first, last)
		}
	}
	if got := b.DatabaseCell(); got != tenant.MaxDatabaseCell {
		t.Errorf("DatabaseCell = %d", got)
	}
	for _, user := range b.users {
		wantInRange("user", int64(user.User))
	}
	id := b.remember(t, b.users[0], "The last database has large numbers.", nil)
	for _, unit := range b.unitsOf(t, id) {
		wantInRange("unit", int64(unit))
	}
	bucket, err := b.Memories().CreateBucket(t.Context(), b.users[1], memory.BucketInput{Name: "Work"})
	if err != nil {
		t.Fatal(err)
	}
	wantInRange("bucket", bucket)
}

func TestDatabaseCellCannotBeChanged(t *testing.T) {
	t.Parallel()
	cell := func(n tenant.DatabaseCell) *tenant.DatabaseCell { return &n }
	d := postgrestest.CreateInCell(t, 5)
	for _, again := range []*tenant.DatabaseCell{nil, cell(5)} {
		if err := migrateCell(t.Context(), d, again); err != nil {
			t.Errorf("migrate again: %v", err)
		}
	}
	if err := migrateCell(t.Context(), d, cell(6)); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "5, which cannot be changed to 6") {
		t.Errorf("migrate to another cell: %v, want a conflict that names both", err)
	}
	for _, n := range []tenant.DatabaseCell{-1, tenant.MaxDatabaseCell + 1} {
		if err := migrateCell(t.Context(), d, cell(n)); !fault.Is(err, fault.Invalid) {
			t.Errorf("migrate to cell %d: %v, want %v", n, err, fault.Invalid)
		}
	}
	if got := postgrestest.Open(t, d).DatabaseCell(); got != 5 {
		t.Errorf("DatabaseCell = %d, want 5", got)
	}
	_, err := appPool(t, d).Exec(t.Context(), "update database_cell set cell = 6")
	if err == nil {
		t.Error("the application role changed the cell")
	}
}

// A migration neither changes the number of a database nor where its sequences continue.
func TestMigrateKeepsIDs(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	first := b.unitsOf(t, b.remember(t, b.users[0], "Stored before the migration.", nil))
	before := sequencesOf(t, b.owner)
	n := tenant.DatabaseCell(3)
	if err := migrateCell(t.Context(), d, &n); !fault.Is(err, fault.Conflict) {
		t.Errorf("migrate to cell 3: %v, want %v", err, fault.Conflict)
	}
	if err := migrateCell(t.Context(), d, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, sequencesOf(t, b.owner)); diff != "" {
		t.Errorf("the migration changed sequences (-before +after):\n%s", diff)
	}
	next := b.unitsOf(t, b.remember(t, b.users[0], "Stored afterwards.", nil))
	if next[0] <= first[0] || next[0] > 10 {
		t.Errorf("the unit after %d has the id %d", first[0], next[0])
	}
}
