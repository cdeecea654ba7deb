package postgres_test

import (
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The owner of a secret and a user of an application are found without reading the users and placements of other tenants.
func TestIdentifyReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	g := newGrantIn(t, b)
	b.actFor(t, b.application(t, 0, webApplication()), "carol", true)
	const tenants, most = 2000, 20
	b.fillTenants(t, tenants)
	conn := session(t, d, b.users[0])
	exec(t, conn, "prepare identify (bytea) as "+namedQuery(t, "tokens.sql", "Identify", "hash"))
	exec(t, conn, "prepare holder (bytea, text) as "+namedQuery(t, "oauth.sql", "IdentifyHolder", "hash", "kind"))
	exec(t, conn, "prepare session (bytea) as "+namedQuery(t, "sessions.sql", "GetSession", "hash"))
	exec(t, conn, "prepare acting (uuid, text) as "+namedQuery(t, "applications.sql", "FindApplicationUser", "tenant_id", "name"))
	forEachPlan(t, b, conn, "tokens, user_tokens, oauth_secrets, oauth_grants, sessions", func(plans string) {
		for _, statement := range []string{
			fmt.Sprintf(`execute identify ('\x%x')`, tenant.Hash{99, 1}),
			fmt.Sprintf(`execute holder ('\x%x', 'access')`, tenant.Hash{1, 1}),
			fmt.Sprintf(`execute session ('\x%x')`, g.session),
			fmt.Sprintf("execute acting ('%s', '%s')", g.scope.Tenant, tenant.StoredUser("carol")),
		} {
			if plan := explain(t, conn, statement); plan.Rows != 1 {
				t.Fatalf("%s: %v rows, want 1", statement, plan.Rows)
			}
			for _, table := range []string{"users", "tenants", "placements", "quotas"} {
				if rows := readRows(t, conn, table, statement); rows > most || table == "users" && rows < 1 {
					t.Errorf("%s, %.15s: %d rows of %s, want at most %d, and at least one user", plans, statement, rows, table, most)
				}
			}
		}
	})
}
