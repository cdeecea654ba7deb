package postgres_test

import (
	"fmt"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// Listing memories, and reading some by id, reads no memory for each of them, also without statistics and with a generic plan.
func TestListReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	const memories, wanted = 200, 20
	for i := range memories {
		b.remember(t, scope, fmt.Sprintf("note %d", i), nil)
	}
	exec(t, b.owner, "update memories m set superseded_by = n.id, superseded_at = now() from memories n where n.seq = m.seq + 1 and m.seq % 10 = 0")
	conn := session(t, d, scope)
	page := "select m.* from memories m where m.tenant_id = $1 and m.user_id = $2 order by m.seq offset $4 limit $5"
	exec(t, conn, "prepare listed (uuid, bigint, timestamptz, int, int) as "+postgres.SelectMemories(page)+" order by m.seq")
	exec(t, conn, "prepare selected (uuid, bigint, timestamptz, uuid[]) as "+postgres.SelectMemories(postgres.MemoriesByID))
	var ids string
	if err := conn.QueryRow(t.Context(), "select string_agg(id::text, ',') from memories where seq <= $1", wanted).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	forEachPlan(t, b, conn, "memories, memory_versions, buckets", func(plans string) {
		for query, args := range map[string]string{"listed": fmt.Sprintf("0, %d", wanted), "selected": "'{" + ids + "}'"} {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', %d, null, %s)", query, scope.Tenant, scope.User, args))
			if plan.Rows != wanted {
				t.Errorf("%s, %s: %v rows, want %d", query, plans, plan.Rows, wanted)
			}
			if node, rows := plan.most(); rows > memories {
				t.Errorf("%s, %s: %s of %s reads %v rows, want at most each memory once, %d", query, plans, node.Type, node.Relation, rows, memories)
			}
		}
	})
}
