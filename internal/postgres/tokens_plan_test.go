package postgres_test

import (
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The user of a token is found without reading those of other tenants.
func TestIdentifyReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	g := newGrantIn(t, b)
	const tenants, few = 2000, 20
	b.fillTenants(t, tenants)
	conn := session(t, d, b.users[0])
	exec(t, conn, "prepare identify (bytea) as "+namedQuery(t, "tokens.sql", "Identify", "hash"))
	exec(t, conn, "prepare holder (bytea, text) as "+namedQuery(t, "oauth.sql", "IdentifyHolder", "hash", "kind"))
	exec(t, conn, "prepare session (bytea) as "+namedQuery(t, "sessions.sql", "GetSession", "hash"))
	forEachPlan(t, b, conn, "tokens, user_tokens, oauth_secrets, oauth_grants, sessions", func(plans string) {
		for _, statement := range []string{
			fmt.Sprintf(`execute identify ('\x%x')`, tenant.Hash{99, 1}),
			fmt.Sprintf(`execute holder ('\x%x', 'access')`, tenant.Hash{1, 1}),
			fmt.Sprintf(`execute session ('\x%x')`, g.session),
		} {
			if plan := explain(t, conn, statement); plan.Rows != 1 {
				t.Fatalf("%s: %v rows, want 1", statement, plan.Rows)
			}
			for _, table := range []string{"users", "tenants", "placements", "quotas"} {
				if rows := readRows(t, conn, table, statement); rows < 1 || rows > few {
					t.Errorf("%s, %.15s: %d rows of %s, want 1 to %d", plans, statement, rows, table, few)
				}
			}
		}
	})
}
