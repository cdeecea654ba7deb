package postgres_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// planNode is a node of the JSON of EXPLAIN ANALYZE. Rows are per loop.
type planNode struct {
	Type          string     `json:"Node Type"`
	Relation      string     `json:"Relation Name"`
	Index         string     `json:"Index Name"`
	Condition     string     `json:"Index Cond"`
	Loops         float64    `json:"Actual Loops"`
	Rows          float64    `json:"Actual Rows"`
	Filtered      float64    `json:"Rows Removed by Filter"`
	JoinFiltered  float64    `json:"Rows Removed by Join Filter"`
	Rechecked     float64    `json:"Rows Removed by Index Recheck"`
	IndexFiltered float64    `json:"Rows Removed by Index Filter"`
	Plans         []planNode `json:"Plans"`
}

// most returns the node of a plan that reads most rows, and their number.
func (n planNode) most() (planNode, float64) {
	node, rows := n, n.Loops*(n.Rows+n.Filtered+n.JoinFiltered+n.Rechecked+n.IndexFiltered)
	for _, child := range n.Plans {
		if found, r := child.most(); r > rows {
			node, rows = found, r
		}
	}
	return node, rows
}

// read returns the number of rows that all nodes read from tables with this prefix.
func (n planNode) read(table string) float64 {
	rows := 0.0
	if strings.HasPrefix(n.Relation, table) {
		rows = n.Loops * (n.Rows + n.Filtered + n.JoinFiltered + n.Rechecked + n.IndexFiltered)
	}
	for _, child := range n.Plans {
		rows += child.read(table)
	}
	return rows
}

// indexes returns the indexes with which tables with this prefix are read.
func (n planNode) indexes(table string) (names []string) {
	if strings.HasPrefix(n.Relation, table) {
		names = append(names, n.Index)
	}
	for _, child := range n.Plans {
		names = append(names, child.indexes(table)...)
	}
	return names
}

// partitions returns the partitions of units that are read or written, each once.
func (n planNode) partitions() (names []string) {
	if strings.HasPrefix(n.Relation, "units_") {
		names = append(names, n.Relation)
	}
	for _, child := range n.Plans {
		names = append(names, child.partitions()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// find returns the first node of a type.
func (n planNode) find(kind string) (planNode, bool) {
	if n.Type == kind {
		return n, true
	}
	for _, child := range n.Plans {
		if found, ok := child.find(kind); ok {
			return found, true
		}
	}
	return planNode{}, false
}

// Describing units reads no row twice, also without statistics, as after an import, and
// with a generic plan.
func TestDescribeReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	const chats, length, every = 40, 50, 20
	var ids []retrieve.UnitID
	for i := range chats {
		for j, id := range b.unitsOf(t, b.upsert(t, scope, newConversation(fmt.Sprint(i), i, length)).Conversation.ID) {
			if j%every == 0 { // with the first, which has a title
				ids = append(ids, id)
			}
		}
	}
	conn := session(t, d, scope)
	exec(t, conn, "prepare described (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "DescribeUnits", "tenant_id", "user_id", "ids", "group_id"))
	exec(t, conn, "prepare resolved (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "ResolveChatUnits", "tenant_id", "user_id", "ids", "group_id"))
	forEachPlan(t, b, conn, "units, messages, conversations", func(plans string) {
		args := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")
		plan := explain(t, conn, fmt.Sprintf("execute described ('%s', %d, '{%s}', 0)", scope.Tenant, scope.User, args))
		if least := float64(2 * len(ids)); plan.Rows < least {
			t.Errorf("%s: %v rows, want at least %v: units and neighbors", plans, plan.Rows, least)
		}
		if node, rows := plan.most(); rows > chats*length {
			t.Errorf("%s: %s of %s reads %v rows, want at most each unit once, %d", plans, node.Type, node.Relation, rows, chats*length)
		}
		statement := fmt.Sprintf("execute resolved ('%s', %d, '{%s}', 0)", scope.Tenant, scope.User, args)
		if plan := explain(t, conn, statement); plan.Rows != float64(len(ids)) {
			t.Errorf("%s: %v units are resolved, want %d", plans, plan.Rows, len(ids))
		}
		if rows := readRows(t, conn, "messages", statement); rows > int64(2*len(ids)) {
			t.Errorf("%s: %d messages are read to resolve %d units", plans, rows, len(ids))
		}
	})
}

// A search of a user with a message of thousands of units does not read them all.
func TestLongMessageReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	found := b.unitsOf(t, b.upsert(t, scope, newConversation("long", 0, 3)).Conversation.ID)[0]
	const units, most = 3000, 1000
	exec(t, b.owner, `insert into units (tenant_id, user_id, kind, group_id, conversation_id, seq, span_start, span_end, tsv, embedding, generation_id, indexed_at)
		select tenant_id, user_id, 2, group_id, conversation_id, seq, n, n + 1, tsv, decode(repeat('0028', 384), 'hex'), 1, now() - interval '1 hour'
		from units, generate_series(1, $1::int) n where seq = 1`, units)
	var list string // of as many units as candidates
	if err := b.owner.QueryRow(t.Context(), "select string_agg(id::text, ',') from (select id from units order by id desc limit 400) u").Scan(&list); err != nil {
		t.Fatal(err)
	}
	conn := session(t, d, scope)
	exec(t, conn, "prepare described (uuid, bigint, bigint[], bigint, smallint) as "+
		namedQuery(t, "units.sql", "DescribeUnits", "tenant_id", "user_id", "ids", "group_id", "generation_id"))
	exec(t, conn, "prepare vectors (uuid, bigint, bigint[], smallint) as "+namedQuery(t, "units.sql", "Embeddings", "tenant_id", "user_id", "ids", "generation_id"))
	exec(t, conn, "prepare unconfirmed (uuid, bigint, smallint, int, int, int, int) as "+postgres.Unconfirmed)
	forEachPlan(t, b, conn, "units, messages, conversations", func(plans string) {
		for query, args := range map[string]string{
			"described": fmt.Sprintf("'{%d}', 0, 1", found), "vectors": fmt.Sprintf("'{%s}', 1", list), "unconfirmed": "2, 0, 0, 0, 5001",
		} {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', %d, %s)", query, scope.Tenant, scope.User, args))
			limit := most
			if query == "described" && plans == "with statistics, force_generic_plan" {
				limit = units + 10 // it sorts the units; PostgreSQL estimates a few for each message
			}
			if n := plan.read("units"); n > float64(limit) {
				t.Errorf("%s, %s: %v rows of units are read, want at most %d of %d", query, plans, n, limit, units)
			}
		}
	})
}

// Passages reads only the messages around the positions and, once there are statistics, only their conversations.
func TestPassagesReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	const chats, length, positions, around = 400, 10, 5, 2
	var ids []string
	for i := range chats {
		id := b.upsert(t, scope, newConversation(fmt.Sprint(i), i, length)).Conversation.ID
		if i < positions {
			ids = append(ids, id)
		}
	}
	conn := session(t, d, scope)
	exec(t, conn, "prepare passages (uuid, bigint, uuid[], int[], int[], int[], bigint[], int, int, bigint) as "+strings.ReplaceAll(
		namedQuery(t, "messages.sql", "Passages", "tenant_id", "user_id", "ids", "seqs", "starts", "ends", "units", "around", "most", "bytes"), "sqlc.embed(c)", "c.*"))
	forEachPlan(t, b, conn, "units, messages, conversations", func(plans string) {
		statement := fmt.Sprintf("execute passages ('%s', %d, '{%s}', '{5,5,5,5,5}', '{0,0,0,0,0}', '{1,1,1,1,1}', '{0,0,0,0,0}', %d, %d, 100000)", scope.Tenant, scope.User, strings.Join(ids, ","), around, 2*around+1)
		const want = positions * (2*around + 1)
		if plan := explain(t, conn, statement); plan.Rows != want {
			t.Errorf("%s: %v rows, want %d", plans, plan.Rows, want)
		}
		for table, least := range map[string]int64{"messages": want, "conversations": positions} {
			most := 3 * least
			if table == "conversations" && strings.HasPrefix(plans, "without") {
				most = chats // each at most once
			}
			if rows := readRows(t, conn, table, statement); rows < least || rows > most {
				t.Errorf("%s: %d rows of %s, want %d to %d", plans, rows, table, least, most)
			}
		}
	})
}

// Describing and resolving memories reads no row twice either.
func TestDescribeMemoriesReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	first := b.remember(t, scope, "first", nil)
	const memories, every = 1000, 10
	defer exec(t, b.owner, "delete from memories where id <> $1", first) // the counters do not include them
	exec(t, b.owner, `with m as (insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source)
		select tenant_id, user_id, gen_random_uuid(), seq + n, bucket_id, 'text ' || n, 1, '' from memories, generate_series(1, $2::int) n where id = $1 returning *)
		insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv, embedding, generation_id)
		select tenant_id, user_id, 1, bucket_id, id, 0, 4, to_tsvector('english', text), decode(repeat('0028', 384), 'hex'), 1 from m order by seq`, first, memories)
	var ids string
	if err := b.owner.QueryRow(t.Context(), "select string_agg(id::text, ',') from units where kind = 1 and id % $1::int = 0", every).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	conn := session(t, d, scope)
	exec(t, conn, "prepare described (uuid, bigint, bigint[], bigint, smallint) as "+
		namedQuery(t, "units.sql", "DescribeMemoryUnits", "tenant_id", "user_id", "ids", "group_id", "generation_id"))
	exec(t, conn, "prepare resolved (uuid, bigint, bigint[], bigint) as "+namedQuery(t, "units.sql", "ResolveMemoryUnits", "tenant_id", "user_id", "ids", "group_id"))
	forEachPlan(t, b, conn, "units, memories", func(plans string) {
		for query, parameter := range map[string]string{"described": ", 1", "resolved": ""} {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', %d, '{%s}', 0%s)", query, scope.Tenant, scope.User, ids, parameter))
			if least := float64(memories/every - 1); plan.Rows < least {
				t.Errorf("%s, %s: %v rows, want at least %v", query, plans, plan.Rows, least)
			}
			if node, rows := plan.most(); rows > memories+1 {
				t.Errorf("%s, %s: %s of %s reads %v rows, want at most each unit once, %d", query, plans, node.Type, node.Relation, rows, memories)
			}
		}
	})
}

// Index jobs load a few units, and read only these.
func TestLoadReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	first := b.remember(t, scope, "first", nil)
	unit := b.unitsOf(t, first)[0]
	message := b.unitsOf(t, b.upsert(t, scope, newConversation("chat", 1, 200)).Conversation.ID)[0]
	const memories = 1000
	defer exec(t, b.owner, "delete from memories where id <> $1", first) // the counters do not include them
	exec(t, b.owner, `with m as (insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source)
		select tenant_id, user_id, gen_random_uuid(), seq + n, bucket_id, 'text ' || n, 1, '' from memories, generate_series(1, $2::int) n where id = $1 returning *)
		insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv)
		select tenant_id, user_id, 1, bucket_id, id, 0, 4, to_tsvector('english', text) from m`, first, memories)
	conn := session(t, d, scope)
	exec(t, conn, "prepare loaded (uuid, bigint[]) as "+namedQuery(t, "units.sql", "LoadUnits", "tenant_id", "ids"))
	exec(t, conn, "prepare live (uuid, bigint[]) as "+namedQuery(t, "units.sql", "LiveUnitsOf", "tenant_id", "ids"))
	forEachPlan(t, b, conn, "units, memories, messages", func(plans string) {
		for _, statement := range []string{"loaded", "live"} {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', '{%d,%d}')", statement, scope.Tenant, unit, message))
			if plan.Rows != 2 {
				t.Errorf("%s, %s: %v rows, want 2", statement, plans, plan.Rows)
			}
			if node, rows := plan.most(); rows > 4 {
				t.Errorf("%s, %s: %s of %s reads %v rows, want at most 4", statement, plans, node.Type, node.Relation, rows)
			}
		}
	})
}

// Statements that cut pieces from texts convert each text once, with any plan: a message of megabytes may have tens of thousands of pieces.
func TestTextsAreConvertedOnce(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	c := newConversation("chat", 1, 3)
	c.Messages[1].Text = strings.Repeat("A line of a pasted log with a few words.\n", 600)
	conversation := b.upsert(t, scope, c).Conversation.ID
	chats := b.unitsOf(t, conversation)
	memories := b.unitsOf(t, b.remember(t, scope, "short", nil))
	exec(t, b.owner, "update units set embedding = decode(repeat('0028', 384), 'hex'), generation_id = 0, next_embedding = decode(repeat('0028', 384), 'hex'), next_generation_id = 1")
	// A function in a schema that is searched before pg_catalog counts its calls.
	exec(t, b.owner, `create schema counting; create sequence counting.calls; grant usage on schema counting to public; grant usage on sequence counting.calls to public;
		create function counting.convert_to(text, name) returns bytea stable strict language plpgsql as $$
			begin perform nextval('counting.calls'); return pg_catalog.convert_to($1, $2); end $$`)
	conn := session(t, d, scope)
	exec(t, conn, "set search_path = counting, pg_catalog, public")
	exec(t, conn, "prepare loaded (uuid, bigint[]) as "+namedQuery(t, "units.sql", "LoadUnits", "tenant_id", "ids"))
	exec(t, conn, "prepare described (uuid, bigint, bigint[], bigint, smallint) as "+
		namedQuery(t, "units.sql", "DescribeUnits", "tenant_id", "user_id", "ids", "group_id", "generation_id"))
	exec(t, conn, "prepare passages (uuid, bigint, uuid[], int[], int[], int[], bigint[], int, int, bigint) as "+strings.ReplaceAll(
		namedQuery(t, "messages.sql", "Passages", "tenant_id", "user_id", "ids", "seqs", "starts", "ends", "units", "around", "most", "bytes"), "sqlc.embed(c)", "c.*"))
	exec(t, conn, "prepare probed (uuid, bigint, smallint, bigint) as "+namedQuery(t, "embedding_migrations.sql", "ProbeUnits", "tenant_id", "user_id", "kind", "most"))
	list := func(units []retrieve.UnitID) string {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(units), "[]"), " ", ",")
	}
	const positions = 3
	forEachPlan(t, b, conn, "units, messages, conversations, memories", func(plans string) {
		for statement, want := range map[string]struct{ rows, texts int }{
			fmt.Sprintf("execute loaded ('%s', '{%s,%s}')", scope.Tenant, list(chats), list(memories)):       {len(chats) + 1, 3 + 1},
			fmt.Sprintf("execute described ('%s', %d, '{%s}', 0, 0)", scope.Tenant, scope.User, list(chats)): {len(chats), 3},
			fmt.Sprintf("execute probed ('%s', %d, 2, 1000)", scope.Tenant, scope.User):                      {len(chats), 3},
			fmt.Sprintf("execute passages ('%s', %d, '{%s}', '{1,1,1}', '{0,9,900}', '{9,90,990}', '{0,0,0}', 0, 1, 100000)", scope.Tenant, scope.User,
				strings.Join([]string{conversation, conversation, conversation}, ",")): {positions, 1},
		} {
			before := b.count(t, "select last_value from counting.calls")
			if plan := explain(t, conn, statement); plan.Rows != float64(want.rows) {
				t.Errorf("%s, %.20s: %v rows, want %d", plans, statement, plan.Rows, want.rows)
			}
			if calls := b.count(t, "select last_value from counting.calls") - before; calls > want.texts {
				t.Errorf("%s, %.20s: %d conversions of %d texts", plans, statement, calls, want.texts)
			}
		}
	})
}

// The restore of an export looks up the conversations of a batch by their ids, even if the import has many others.
func TestBlockedOfImportReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope, of := b.users[0], uuid.NewString()
	const blocked, every = 2000, 100
	b.insertBlocked(t, scope, blocked)
	exec(t, b.owner, "update conversations set import_id = $1", of)
	var ids string
	const pick = "select string_agg(id::text, ',') from (select id, row_number() over (order by id) as n from conversations) c where n % $1::int = 0"
	if err := b.owner.QueryRow(t.Context(), pick, every).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	conn := session(t, d, scope)
	exec(t, conn, "prepare blocked (uuid, bigint, uuid[], uuid) as "+namedQuery(t, "restore.sql", "BlockedOfImport", "tenant_id", "user_id", "ids", "import_id"))
	forEachPlan(t, b, conn, "conversations", func(plans string) {
		statement := fmt.Sprintf("execute blocked ('%s', %d, '{%s}', '%s')", scope.Tenant, scope.User, ids, of)
		if plan := explain(t, conn, statement); plan.Rows != blocked/every {
			t.Errorf("%s: %v rows, want %d", plans, plan.Rows, blocked/every)
		}
		if rows := readRows(t, conn, "conversations", statement); rows < blocked/every || rows > 2*blocked/every {
			t.Errorf("%s: %d conversations are read to find %d of them", plans, rows, blocked/every)
		}
	})
}

// The conversations of a user that become active are read without the user's other blocked ones, and without those of others.
func TestNewestBlockedOfUserReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	const blocked, batch = 500, 5
	for _, scope := range b.users {
		b.insertBlocked(t, scope, blocked)
	}
	scope := b.users[0]
	conn := session(t, d, scope)
	exec(t, conn, "select set_config('mnemo.user', '*', false)") // as in a re-balance
	exec(t, conn, "prepare newest (uuid, bigint, int) as "+namedQuery(t, "conversation_states.sql", "NewestBlockedOfUser", "tenant_id", "user_id", "batch"))
	forEachPlan(t, b, conn, "conversations", func(plans string) {
		statement := fmt.Sprintf("execute newest ('%s', %d, %d)", scope.Tenant, scope.User, batch)
		if plan := explain(t, conn, statement); plan.Rows != batch {
			t.Errorf("%s: %v rows, want %d", plans, plan.Rows, batch)
		}
		if rows := readRows(t, conn, "conversations", statement); rows < batch || rows > 2*batch {
			t.Errorf("%s: %d conversations are read to find %d of them", plans, rows, batch)
		}
	})
}

// forEachPlan calls fn for the custom and the generic plans of a session, without and then with
// statistics of the tables.
func forEachPlan(t *testing.T, b *testBundle, conn *pgxpool.Pool, tables string, fn func(plans string)) {
	t.Helper()
	for _, statistics := range []string{"without statistics", "with statistics"} {
		if statistics == "with statistics" {
			exec(t, b.owner, "analyze "+tables)
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			exec(t, conn, "set plan_cache_mode = "+mode)
			fn(statistics + ", " + mode)
		}
	}
}

// disableAutovacuum keeps the tables of memories and conversations without statistics.
func disableAutovacuum(t testing.TB, b *testBundle) {
	t.Helper()
	exec(t, b.owner, `do $$ declare name text; begin
		for name in select oid::regclass::text from pg_class where relkind = 'r' and (relname like 'units\_%' or relname in ('messages', 'conversations', 'memories', 'memory_versions')) loop
			execute 'alter table ' || name || ' set (autovacuum_enabled = off)';
		end loop; end $$`)
}

// session returns a single connection of the application role with a user's scope.
func session(t *testing.T, d postgrestest.Database, scope tenant.Scope) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1 // the settings are those of a session
	conn, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	exec(t, conn, "select set_config('mnemo.tenant', $1, false), set_config('mnemo.user', $2, false)", string(scope.Tenant), fmt.Sprint(scope.User))
	return conn
}

// explain executes a statement and returns its plan.
func explain(t *testing.T, conn *pgxpool.Pool, sql string) planNode {
	t.Helper()
	var raw []byte
	if err := conn.QueryRow(t.Context(), "explain (analyze, format json) "+sql, pgx.QueryExecModeSimpleProtocol).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// readRows executes a statement, without its changes, and returns the number of rows that it reads from a table, also in functions.
func readRows(t *testing.T, conn *pgxpool.Pool, table, sql string) (rows int64) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The counters include transactions that the server has not reported yet.
	const counters = "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = $1"
	var before int64
	if err := tx.QueryRow(t.Context(), counters, table).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), counters, table).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rows - before
}

var optionalParameter = regexp.MustCompile(`sqlc\.narg\('\w+'\)`)

var embedded = regexp.MustCompile(`sqlc\.embed\((\w+)\)`)

// namedQuery returns a query of queries/ with numbered parameters. Optional ones are
// null.
func namedQuery(t *testing.T, file, name string, parameters ...string) string {
	t.Helper()
	raw, err := os.ReadFile("queries/" + file)
	if err != nil {
		t.Fatal(err)
	}
	_, query, ok := strings.Cut(string(raw), "-- name: "+name+" ")
	if !ok {
		t.Fatalf("%s has no query %s", file, name)
	}
	_, query, _ = strings.Cut(query, "\n")
	query, _, _ = strings.Cut(query, "-- name: ")
	for i, p := range parameters {
		query = strings.ReplaceAll(query, "@"+p, fmt.Sprintf("$%d", i+1))
	}
	query = embedded.ReplaceAllString(query, "$1.*")
	return optionalParameter.ReplaceAllString(query, "null::timestamptz")
}
