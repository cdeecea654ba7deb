package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A plan that was made when the tables were small, and is kept until they have statistics, reads few rows of the tables that have grown.
func TestPlansOfSmallTablesReadFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	const chats, length, every, small = 20, 100, 100, 160
	// Some indexes of so many rows have one level, and others have two.
	ids := b.unitsOf(t, b.upsert(t, scope, newConversation("first", 1, small)).Conversation.ID)[:1]
	memory := b.unitsOf(t, b.remember(t, scope, "first", nil))[0]
	defer func() { // the counters do not include them
		exec(t, b.owner, "delete from memories where text <> 'first'")
		exec(t, b.owner, "delete from conversations where external_id like 'added %'")
	}()
	addRows := func(from, to int) {
		exec(t, b.owner, `with m as (insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source)
			select m.tenant_id, m.user_id, gen_random_uuid(), m.seq + n, bucket_id, 'text ' || n, 1, '' from memories m join units u on u.memory_id = m.id,
				generate_series($2::int, $3::int) n where u.id = $1 returning *)
			insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv)
			select tenant_id, user_id, 1, bucket_id, id, 0, 4, to_tsvector('english', text) from m`, memory, from, to)
		exec(t, b.owner, `insert into conversations (tenant_id, user_id, id, external_id, platform, status, import_id, created_at, updated_at)
			select tenant_id, user_id, gen_random_uuid(), 'added ' || n, platform, status, import_id, created_at, updated_at from conversations,
				generate_series($1::int, $2::int) n where external_id = 'first'`, from, to)
	}
	addRows(1, small-1)
	conn := session(t, d, scope)
	exec(t, conn, "select set_config('mnemo.user', '*', false), set_config('plan_cache_mode', 'force_generic_plan', false)")
	exec(t, conn, "prepare loaded (uuid, bigint[]) as "+namedQuery(t, "units.sql", "LoadUnits", "tenant_id", "ids"))
	exec(t, conn, "prepare live (uuid, bigint[]) as "+namedQuery(t, "units.sql", "LiveUnitsOf", "tenant_id", "ids"))
	exec(t, conn, "prepare resolved (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "ResolveChatUnits", "tenant_id", "user_id", "ids", "group_id"))
	exec(t, conn, "prepare described (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "DescribeUnits", "tenant_id", "user_id", "ids", "group_id"))
	exec(t, conn, "prepare memories (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "ResolveMemoryUnits", "tenant_id", "user_id", "ids", "group_id"))
	list := func() string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",") }
	var memories string
	statements := func() []string {
		return []string{
			fmt.Sprintf("execute loaded ('%s', '{%s%s}')", scope.Tenant, list(), memories),
			fmt.Sprintf("execute memories ('%s', %d, '{%d%s}', 0)", scope.Tenant, scope.User, memory, memories),
			fmt.Sprintf("execute live ('%s', '{%s}')", scope.Tenant, list()),
			fmt.Sprintf("execute resolved ('%s', %d, '{%s}', 0)", scope.Tenant, scope.User, list()),
			fmt.Sprintf("execute described ('%s', %d, '{%s}', 0)", scope.Tenant, scope.User, list()),
		}
	}
	for _, statement := range statements() { // makes the plan
		exec(t, conn, statement)
	}
	for i := range chats {
		for j, id := range b.unitsOf(t, b.upsert(t, scope, newConversation(fmt.Sprint(i), i, length)).Conversation.ID) {
			if j%every == 0 {
				ids = append(ids, id)
			}
		}
	}
	addRows(small, 3000)
	if err := b.owner.QueryRow(t.Context(), "select string_agg(',' || id, '') from (select id from units where kind = 1 order by random() limit $1) u", chats).Scan(&memories); err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements() {
		plan := explain(t, conn, statement)
		if plan.Rows < chats {
			t.Errorf("%.18s: %v rows, want at least %d", statement, plan.Rows, chats)
		}
		// Each unit with its neighbors, and the first messages of its conversation. Titles, which few units have, may need more.
		for _, table := range []string{"units", "messages", "memories"} {
			if rows := plan.read(table); rows > 16*(2*chats+1) {
				t.Errorf("%.18s: %v rows of %s are read for %d units", statement, rows, table, chats)
			}
		}
		// Others have columns between these, so PostgreSQL would read the entries of all units of the tenant.
		for _, index := range plan.indexes("units") {
			if strings.HasPrefix(statement, "execute l") && !strings.HasSuffix(index, "_tenant_id_id_idx") {
				t.Errorf("%.18s: units are read with %s", statement, index)
			}
		}
	}
}

// Saving vectors and confirming units reads few rows of a table without statistics, however large it is when the statement is planned. One
// partition is planned.
func TestSaveVectorsReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	conn := session(t, d, scope)
	exec(t, conn, "select set_config('mnemo.user', '*', false), set_config('plan_cache_mode', 'force_custom_plan', false)")
	exec(t, conn, "prepare saved (uuid, bigint[], bigint[], bytea[], bigint[], boolean[], smallint) as "+
		namedQuery(t, "units.sql", "SaveVectors", "tenant_id", "user_ids", "ids", "embeddings", "tokens", "confirmed", "generation_id"))
	exec(t, conn, "prepare confirmed (uuid, bigint[], bigint[]) as "+namedQuery(t, "units.sql", "ConfirmUnits", "tenant_id", "user_ids", "ids"))
	const saved = 20
	for _, length := range []int{100, 1000, 5000} {
		ids := b.unitsOf(t, b.upsert(t, scope, newConversation(fmt.Sprint(length), 1, length)).Conversation.ID)[:saved]
		plan := explain(t, conn, fmt.Sprintf("execute saved ('%s', '{%d}', '{%s}', array_fill('\\x0028'::bytea, '{%d}'), array_fill(1, '{%d}'), array_fill(true, '{%d}'), 1)",
			scope.Tenant, scope.User, strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ","), saved, saved, saved))
		if n := b.count(t, "select count(*) from units where embedding is not null and id = any($1)", ids); n != saved {
			t.Errorf("%d units have a vector, want %d", n, saved)
		}
		confirmed := explain(t, conn, fmt.Sprintf("execute confirmed ('%s', '{%d}', '{%s}')",
			scope.Tenant, scope.User, strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")))
		for _, p := range []planNode{plan, confirmed} {
			if got := p.partitions(); len(got) != 1 {
				t.Errorf("partitions %q are planned for a user, want one", got)
			}
			if node, ok := p.readsAllOfUser(); ok && length > 100 {
				t.Errorf("beside %d units: units are read with %s and the condition %s", length, node.Index, node.Condition)
			}
		}
		// Once to count tokens, once to update, and the updated ones.
		if rows := plan.read("units"); length > 100 && rows > 3*saved {
			t.Errorf("beside %d units: %v rows are read, want at most %d", length, rows, 3*saved)
		}
	}
}

// readsAllOfUser returns a node that reads the entries of all units of a user in an index, because a column before the id has no condition.
func (n planNode) readsAllOfUser() (planNode, bool) {
	pastKind := strings.Contains(n.Index, "_kind_id_idx") && strings.Contains(n.Condition, "kind =")
	if strings.HasPrefix(n.Index, "units_") && !pastKind && !strings.HasSuffix(n.Index, "_pkey") && !strings.HasSuffix(n.Index, "_tenant_id_id_idx") {
		return n, true
	}
	for _, child := range n.Plans {
		if found, ok := child.readsAllOfUser(); ok {
			return found, true
		}
	}
	return planNode{}, false
}

// The statements that save vectors and confirm units are planned for each execution.
func TestWritesOfUnitsArePlannedEachTime(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	exec(t, b.owner, `create function check_mode() returns trigger language plpgsql as $$ begin
		if current_setting('plan_cache_mode') <> 'force_custom_plan' then raise exception 'plan_cache_mode is %', current_setting('plan_cache_mode'); end if;
		return new; end $$`)
	exec(t, b.owner, "create trigger check_mode before update on units for each row execute function check_mode()")
	saved := b.unitsOf(t, b.remember(t, alice, "first", nil))[0]
	if err := b.SaveVectors(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, 0, []retrieve.Unit{{ID: saved, Vector: []float32{1, 0}}}, nil); err != nil {
		t.Error(err)
	}
	if err := b.Confirm(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, []retrieve.UnitID{saved}); err != nil {
		t.Error(err)
	}
	if n := b.count(t, "select count(*) from units where embedding is not null and indexed_at is not null"); n != 1 {
		t.Errorf("%d units have a vector and are confirmed, want 1", n)
	}
}
