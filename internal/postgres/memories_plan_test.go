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
	list := "from memories m where m.tenant_id = $1 and m.user_id = $2 order by m.seq offset $3"
	page := "select m.* " + list + " limit " + postgres.PageLimit(list)
	then := "select m.* from memories m where m.tenant_id = $1 and m.user_id = $2 and m.created_at < $5 order by m.seq offset $3 limit $4"
	exec(t, conn, "prepare listed (uuid, bigint, int, int) as "+postgres.SelectMemories(page, "")+" order by m.seq")
	exec(t, conn, "prepare listed_then (uuid, bigint, int, int, timestamptz) as "+postgres.SelectMemories(then, "$5")+" order by m.seq")
	exec(t, conn, "prepare selected (uuid, bigint, uuid[]) as "+postgres.SelectMemories(postgres.MemoriesByID, ""))
	var ids string
	if err := conn.QueryRow(t.Context(), "select string_agg(id::text, ',') from memories where seq <= $1", wanted).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	forEachPlan(t, b, conn, "memories, memory_versions, buckets", func(plans string) {
		for query, args := range map[string]string{
			"listed": fmt.Sprintf("0, %d", wanted), "listed_then": fmt.Sprintf("0, %d, now()", wanted), "selected": "'{" + ids + "}'",
		} {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', %d, %s)", query, scope.Tenant, scope.User, args))
			if plan.Rows != wanted {
				t.Errorf("%s, %s: %v rows, want %d", query, plans, plan.Rows, wanted)
			}
			if node, rows := plan.most(); rows > memories {
				t.Errorf("%s, %s: %s of %s reads %v rows, want at most each memory once, %d", query, plans, node.Type, node.Relation, rows, memories)
			}
		}
	})
}

// Storing a memory reads no memories of other users, also if they have the same text, as many users of an application do.
func TestCreateReadsNoMemoriesOfOthers(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	b.remember(t, scope, "Has finished the tour", nil)
	who := b.application(t, 0, webApplication())
	const others, most = 2000, 10
	b.fillUsers(t, who, others)
	defer exec(t, b.owner, "delete from memories where user_id <> $1", int64(scope.User)) // the counters do not include them
	exec(t, b.owner, `with b as (insert into buckets (tenant_id, user_id, name, name_key, is_default)
			select tenant_id, id, 'General', 'general', true from users where kind = 'application_user' returning *)
		insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens)
		select tenant_id, user_id, gen_random_uuid(), 1, id, 'Has finished the tour', 1 from b`)
	conn := session(t, d, scope)
	exec(t, conn, "prepare prepared (uuid, bigint, bigint, text, text, text, text[], jsonb, text[], text[], int) as "+
		namedQuery(t, "memories.sql", "PrepareMemory", "tenant_id", "user_id", "bucket_id", "text", "agent_id", "run_id", "tags", "metadata", "repeats", "days", "units"))
	exec(t, conn, "prepare created (uuid, bigint, uuid, bigint, text, int, text, text, text, text[], jsonb, int, bigint, bigint) as "+
		namedQuery(t, "memories.sql", "CreateMemory", "tenant_id", "user_id", "id", "bucket_id", "text", "tokens", "source", "agent_id", "run_id",
			"tags", "metadata", "attribute_bytes", "storage", "embedded"))
	var bucket int64
	if err := b.owner.QueryRow(t.Context(), "select id from buckets where user_id = $1", int64(scope.User)).Scan(&bucket); err != nil {
		t.Fatal(err)
	}
	forEachPlan(t, b, conn, "memories, buckets, users", func(plans string) {
		for query, test := range map[string]struct {
			statement string
			least     int64
		}{
			"prepared": {"execute prepared ('%s', %d, 0, 'Has finished the tour', '', '', '{}', '{}', '{}', '{}', 1)", 1},
			"repeated": {"execute prepared ('%s', %d, 0, '2025-05-09 Has finished the tour', '', '', '{}', '{}', '{Has finished the tour}', '{2025-05-09}', 1)", 1},
			"created":  {"execute created ('%s', %d, gen_random_uuid(), " + fmt.Sprint(bucket) + ", 'Likes the tour', 1, '', '', '', '{}', '{}', 0, 1, 1)", 0},
		} {
			if rows := readRows(t, conn, "memories", fmt.Sprintf(test.statement, scope.Tenant, scope.User)); rows < test.least || rows > most {
				t.Errorf("%s, %s: %d memories are read, want %d to %d", query, plans, rows, test.least, most)
			}
		}
	})
}
