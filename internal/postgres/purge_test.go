package postgres_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// purgedTables are those with many rows per user that belong to neither conversations nor memories.
var purgedTables = []string{"imports", "import_chunks", "import_ledger", "idempotency_keys"}

// fillImports stores finished imports, of which one has a large ledger and a file, and idempotency keys.
func (b *testBundle) fillImports(t *testing.T, scope tenant.Scope, platform string, imports, parts int) {
	t.Helper()
	exec(t, b.owner, `insert into imports (tenant_id, user_id, id, platform, status, finished_at, chunk_bytes)
		select $1, $2, gen_random_uuid(), $3, 'done', clock_timestamp(), case i when 1 then 2 * $5::int else 0 end from generate_series(1, $4::int) i`,
		scope.Tenant, scope.User, platform, imports, parts)
	file := " from imports, generate_series(1, $4::int) i where tenant_id = $1 and user_id = $2 and platform = $3 and chunk_bytes > 0"
	for _, sql := range []string{
		"insert into import_ledger (tenant_id, user_id, import_id, ordinal, outcome) select tenant_id, user_id, id, i, 'skipped'" + file,
		"insert into import_chunks (tenant_id, user_id, import_id, n, data) select tenant_id, user_id, id, i, 'ab'" + file,
		`insert into idempotency_keys (tenant_id, user_id, route, key, body, created_at)
			select $1, $2, $3, int4send(i), 'x', clock_timestamp() from generate_series(1, $4::int) i`,
	} {
		exec(t, b.owner, sql, scope.Tenant, scope.User, platform, parts)
	}
}

// countDeletions records how many rows of each table every transaction deletes.
func (b *testBundle) countDeletions(t *testing.T) {
	t.Helper()
	exec(t, b.owner, "create table deletions_of_test (name text, transaction bigint)")
	exec(t, b.owner, `create function note_deletion() returns trigger language plpgsql security definer set search_path = public as
		$$ begin insert into deletions_of_test values (tg_table_name, txid_current()); return null; end $$`)
	for _, table := range purgedTables {
		exec(t, b.owner, "create trigger note_deletion after delete on "+table+" for each row execute function note_deletion()")
	}
}

// A job has two minutes. The deletion of a user's row cascaded to all imports, and started over after the timeout.
func TestPurgesDeleteImportsInBatches(t *testing.T) {
	t.Parallel()
	const imports, parts = 2*postgres.PurgeImports + 1, 2*postgres.PurgeParts + 1
	for name, tc := range map[string]struct {
		tables []string // without rows afterwards
		purge  func(*testBundle, tenant.Scope) error
	}{
		"tenant": {append([]string{"users"}, purgedTables...), func(b *testBundle, s tenant.Scope) error {
			if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
				return err
			}
			return tenant.Purge(t.Context(), b.DB, droppedAtOnce{}, s.Tenant)
		}},
		"user": {append([]string{"tokens"}, purgedTables...), func(b *testBundle, s tenant.Scope) error { return b.EraseUser(t.Context(), s) }},
		"account": {purgedTables, func(b *testBundle, s tenant.Scope) error {
			cutoff, err := b.Accounts().BeginPurge(t.Context(), s)
			if err != nil {
				return err
			}
			_, err = account.Purge(t.Context(), b.Accounts(), s, cutoff)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			alice := b.users[0]
			b.upload(t, alice)
			b.fillImports(t, alice, "old", imports, parts)
			for _, scope := range b.users[1:] {
				b.fillImports(t, scope, "old", 1, 1)
			}
			b.countDeletions(t)
			if err := tc.purge(b, alice); err != nil {
				t.Fatal(err)
			}
			for _, table := range tc.tables {
				column := "user_id"
				if table == "users" {
					column = "id"
				}
				if n := b.count(t, "select count(*) from "+table+" where "+column+" = $1", alice.User); n > 0 {
					t.Errorf("%d rows of %s are left", n, table)
				}
			}
			for _, table := range purgedTables {
				limit := postgres.PurgeParts
				if table == "imports" {
					limit = postgres.PurgeImports
				}
				if n := b.count(t, "select coalesce(max(n), 0) from (select count(*) as n from deletions_of_test where name = $1 group by transaction) x", table); n == 0 || n > limit {
					t.Errorf("a transaction deleted %d rows of %s, want 1 to %d", n, table, limit)
				}
			}
			for _, scope := range b.users[1:] {
				if scope.Tenant == alice.Tenant && name == "tenant" {
					continue
				}
				for _, table := range purgedTables {
					if n := b.count(t, "select count(*) from "+table+" where user_id = $1", scope.User); n == 0 {
						t.Errorf("rows of %s of another user were deleted", table)
					}
				}
			}
		})
	}
}

// A purge of an account keeps the imports that begin after it.
func TestPurgeKeepsLaterImports(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	b.fillImports(t, alice, "old", 3, 3)
	cutoff, err := b.Accounts().BeginPurge(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	b.fillImports(t, alice, "new", 2, 2)
	b.upload(t, alice)
	if _, err := account.Purge(t.Context(), b.Accounts(), alice, cutoff); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = b.owner.QueryRow(t.Context(), "select array_agg(platform || ' ' || status order by platform, id) from imports where user_id = $1", alice.User).Scan(&got)
	if want := []string{" uploading", "custom failed", "new done", "new done"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("imports after the purge: %q, %v, want %q", got, err, want)
	}
	for table, want := range map[string]int{"import_ledger": 3, "import_chunks": 3, "idempotency_keys": 2} {
		if n := b.count(t, "select count(*) from "+table+" where user_id = $1", alice.User); n != want {
			t.Errorf("%d rows of %s after the purge, want %d", n, table, want)
		}
	}
}

// Batches of imports are found by an index, like those of TestPurgeReadsNoDeletedRows.
func TestPurgeOfImportsReadsNoDeletedRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	for _, table := range purgedTables {
		exec(t, b.owner, "alter table "+table+" set (autovacuum_enabled = off)")
	}
	scope := b.users[0]
	b.fillImports(t, scope, "old", 0, 10_000)
	exec(t, b.owner, `insert into imports (tenant_id, user_id, id, platform, status, finished_at, chunk_bytes)
		select $1, $2, gen_random_uuid(), 'old', 'done', now(), 2 from generate_series(1, 10000)`, scope.Tenant, scope.User)
	exec(t, b.owner, "insert into import_chunks select tenant_id, user_id, id, 0, 'ab' from imports")
	exec(t, b.owner, "insert into import_ledger select tenant_id, user_id, id, 0, 'skipped' from imports")
	conn := session(t, d, scope)
	queries := []string{"PurgeLedgers", "PurgeChunks", "PurgeImports", "PurgeRequests"}
	for _, name := range queries {
		exec(t, conn, "prepare "+name+" (uuid, bigint, bigint, int, int) as "+
			namedQuery(t, "purges.sql", name, "tenant_id", "first_user", "last_user", "imports", "batch"))
	}
	forEachPlan(t, b, conn, "imports, import_chunks, import_ledger, idempotency_keys", func(plans string) {
		for _, name := range queries {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', 0, %d, %d, 64)", name, scope.Tenant, int64(math.MaxInt64), postgres.PurgeImports))
			if node, found := plan.find("Seq Scan"); found {
				t.Errorf("%s, %s: %s of %s", name, plans, node.Type, node.Relation)
			}
		}
	})
}
