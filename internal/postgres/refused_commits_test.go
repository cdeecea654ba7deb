package postgres_test

import (
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// TestRefusedCommits checks that a commit that PostgreSQL refuses is reported as
// temporary, also if it refuses every attempt of a transaction.
func TestRefusedCommits(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"Full":        "53100",
		"NoMemory":    "53200",
		"NoLocks":     "53000",
		"IOError":     "58030",
		"MissingFile": "58P01",
		"Conflict":    "40001",
		"Deadlock":    "40P01",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.Create(t)
			b := setupIn(t, d, nil)
			_, err := b.owner.Exec(t.Context(), fmt.Sprintf(`
				create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused' using errcode = '%s'; end $$;
				create constraint trigger refuse after insert on memories deferrable initially deferred for each row execute function refuse()`, code))
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Memories().Create(t.Context(), b.users[0], newMemory("The harbour is closed."))
			wantUnavailable(t, "create", err)
		})
	}
}
