package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// TestBillingQuery runs the query of docs/operations.md as the owner: it returns
// the usage of active and retained tenants, and none that is being purged.
func TestBillingQuery(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, owner := postgrestest.Open(t, d), ownerPool(t, d)
	specs := []tenant.Spec{tenanttest.NewSpec(), tenanttest.NewSpec(), tenanttest.NewSpec()}
	for i, namespace := range []string{"a", "b", "c"} {
		specs[i].Namespace = namespace
		if _, err := store.Apply(t.Context(), specs[i]); err != nil {
			t.Fatal(err)
		}
		exec(t, owner, "update usage set memories = 10, conversations = 5, blocked = 2, storage = 700 where tenant_id = $1", string(specs[i].ID))
	}
	for i, policy := range map[int]tenant.DeletionPolicy{1: tenant.Retain, 2: tenant.Delete} {
		if _, err := store.Retire(t.Context(), specs[i].ID, policy); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := owner.Query(t.Context(), documentedSQL(t, "../../docs/operations.md", "## Billing"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range got {
		delete(row, "tenant")
		delete(row, "created_at")
	}
	usage := func(namespace, state string, users int64) map[string]any {
		return map[string]any{
			"namespace": namespace, "name": "acme", "state": state, "users": users,
			"memories": int64(10), "conversations": int64(5), "blocked": int64(2), "bytes": int64(700),
		}
	}
	if diff := cmp.Diff([]map[string]any{usage("a", "active", 2), usage("b", "retained", 2)}, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// documentedSQL returns the first SQL block below a heading.
func documentedSQL(t *testing.T, file, heading string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n"+heading+"\n")
	_, block, fenced := strings.Cut(section, "```sql\n")
	if !found || !fenced {
		t.Fatalf("%s has no SQL below %q", file, heading)
	}
	sql, _, _ := strings.Cut(block, "```")
	return sql
}
