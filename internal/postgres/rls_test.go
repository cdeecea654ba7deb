package postgres_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// withoutPolicy are the relations that the application role can use without a
// policy, and why that exposes no user's data.
var withoutPolicy = map[string]string{
	"tenants":                  "control data; a request's tenant is looked up before there is a scope",
	"quotas":                   "control data; limits only",
	"usage":                    "control data; counts only",
	"usage_days":               "control data; counts only",
	"usage_exports":            "control data; a day",
	"usage_reports":            "control data; ids and times",
	"rate_windows":             "control data; counts only",
	"application_rate_windows": "control data; counts only",
	"applications":             "control data; scopes, origins and rates",
	"placements":               "control data; names of collections and partitions",
	"placement_migrations":     "control data; names of collections and partitions",
	"cells":                    "control data; names and capacities of vector stores",
	"tenant_units":             "control data; numbers of units of tenants",
	"index_sweeps":             "control data; times and the id of a unit",
	"embedding_migrations":     "control data; phases and scores of models",
	"embedding_targets":        "control data; names of collections and partitions",
	"embedding_generations":    "control data; names of models",
	"user_placements":          "view with the caller's privileges of control data",
	"users":                    "authentication; a scope is derived from it",
	"removed_users":            "authentication; addresses that are rejected before there is a scope",
	"oidc_domains":             "authentication; a scope is derived from it",
	"tokens":                   "authentication; hashes only, a scope is derived from it",
	"sessions":                 "authentication; hashes only, a scope is derived from it",
	"platform_sessions":        "authentication; hashes only, they belong to no tenant and give no scope",
	"sign_in_attempts":         "authentication; hashes and counts only",
	"oauth_clients":            "registrations of clients; they belong to no tenant",
	"erasures":                 "erasure records; ids and hashes only",
	"erasure_ledger":           "erasure ledger; an id and a position",
	"goose_db_version":         "schema version; read only",
	"schema_oldest":            "schema version; read only",
	"schema_files":             "checksums of functions; read only",
	"database_cell":            "number of the database; read only",

	"river_job":          "job queue of River; arguments are ids only",
	"river_leader":       "job queue of River",
	"river_migration":    "job queue of River",
	"river_notification": "job queue of River",
	"river_queue":        "job queue of River",

	"buckets_id_seq":               "sequence; reveals a count",
	"users_id_seq":                 "sequence; reveals a count",
	"unit_ids":                     "sequence; reveals a count",
	"placement_ids":                "sequence; reveals a count",
	"audit_pending_id_seq":         "sequence; reveals a count",
	"embedding_migrations_id_seq":  "sequence; reveals a count",
	"embedding_generations_id_seq": "sequence; reveals a count",
	"goose_db_version_id_seq":      "sequence; reveals a count",
	"river_job_id_seq":             "sequence; reveals a count",
	"river_notification_id_seq":    "sequence; reveals a count",
}

// reachableFunctions are the functions in our schema that the application role
// can call, and why that exposes no other user's data.
var reachableFunctions = map[string]string{
	"audit_append":               "runs as the owner; only writes, and in a scope only records of its user",
	"audit_expire":               "runs as the owner; deletes old records of the transaction's tenant and returns their number",
	"audit_tenants":              "runs as the owner; returns ids of tenants",
	"webhooks_claim":             "runs as the owner; delays deliveries and returns ids of tenants and names of their webhooks",
	"webhooks_failing":           "runs as the owner; has no arguments and returns counts only",
	"webhook_tenants":            "runs as the owner; has no arguments and returns counts only",
	"tenants_failing_webhooks":   "runs as the owner; has no arguments and returns ids of tenants and counts",
	"audit_backlog":              "runs as the owner; returns a count and an age",
	"imports_wait":               "runs as the owner; has no arguments and returns whether any other user waits",
	"lexical_ranking":            "runs as the owner; compares its arguments with the transaction's scope",
	"merged_tree":                "reads with the policies of its caller",
	"memories_with_text":         "runs as the owner; compares its arguments with the transaction's scope",
	"oauth_app":                  "runs as the owner; requires the hash of a secret and returns the id of a client",
	"oauth_holder":               "runs as the owner; requires the hash of a secret and returns ids only",
	"require_created":            "pure function",
	"require_quota":              "reads with the policies of its caller",
	"upload_bytes":               "runs as the owner; has no arguments and returns sums only",
	"user_token_holder":          "runs as the owner; requires the hash of a token and returns ids, scopes and times",
	"river_job_state_in_bitmask": "pure function of River",
}

// The scope of the transaction, which PostgreSQL evaluates once per statement.
const (
	scopeTenant = `( SELECT (NULLIF(current_setting('mnemo.tenant'::text, true), ''::text))::uuid AS "nullif")`
	everyUser   = `( SELECT (current_setting('mnemo.user'::text, true) = '*'::text))`
	scopeUser   = `( SELECT (NULLIF(NULLIF(current_setting('mnemo.user'::text, true), ''::text), '*'::text))::bigint AS "nullif")`
)

// scopePolicy must be the policy of every relation that is not in withoutPolicy.
const scopePolicy = `((tenant_id = ` + scopeTenant + `) AND (` + everyUser + ` OR (user_id = ` + scopeUser + `)))`

// otherPolicies replace scopePolicy for the audit log, whose records have a pseudonym
// instead of the user.
var otherPolicies = map[string]string{
	"audit_pending": auditPolicy,
	"audit_records": auditPolicy,
	"audit_chains":  tenantPolicy,
	"webhooks":      tenantPolicy,
}

// tenantPolicy is the policy of rows that belong to no user.
const tenantPolicy = `((tenant_id = ` + scopeTenant + `) AND ` + everyUser + `)`

const auditPolicy = `((tenant_id = ` + scopeTenant + `) AND (` + everyUser + ` OR ` +
	`(subject = ( SELECT u.audit_id FROM users u WHERE ((u.tenant_id = ` + scopeTenant + `) AND (u.id = ` + scopeUser + `))))))`

// relation is what the application role finds in the catalog. Views and foreign
// tables cannot have a policy, so each would need an entry in withoutPolicy.
type relation struct {
	Name      string
	Kind      string // of pg_class.relkind
	Partition bool
	Reachable bool
	Enabled   bool
	Policies  []string
}

func (r relation) hasScopePolicy() bool {
	want := cmp.Or(otherPolicies[r.Name], scopePolicy)
	return r.Enabled && len(r.Policies) == 1 && strings.Join(strings.Fields(r.Policies[0]), " ") == "PERMISSIVE ALL "+want
}

func listRelations(t *testing.T, app *pgxpool.Pool) []relation {
	t.Helper()
	rows, err := app.Query(t.Context(), `select c.relname, c.relkind::text, c.relispartition, case when c.relkind = 'S'
			then has_sequence_privilege(c.oid, 'select, usage, update')
			else has_table_privilege(c.oid, 'select, insert, update, delete, truncate, references, trigger') or has_any_column_privilege(c.oid, 'select, insert, update, references')
		end, c.relrowsecurity,
		array(select concat_ws(' ', p.permissive, p.cmd, coalesce(p.qual, '')) || coalesce(' with check ' || p.with_check, '')
			from pg_policies p where p.schemaname = n.nspname and p.tablename = c.relname order by p.policyname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
		order by c.relname`)
	if err != nil {
		t.Fatal(err)
	}
	relations, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil {
		t.Fatal(err)
	}
	return relations
}

// Every relation that the application role can reach has the scope policy, or
// an entry that explains why it needs none.
func TestRowLevelSecurity(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	for _, user := range b.users {
		b.remember(t, user, "Every user has a memory.", nil)
	}
	app := appPool(t, d)
	listed := map[string]bool{}
	for _, r := range listRelations(t, app) {
		_, exempt := withoutPolicy[r.Name]
		listed[r.Name] = exempt
		switch {
		case exempt && (r.Enabled || len(r.Policies) > 0):
			t.Errorf("%s has row-level security; remove its entry from withoutPolicy", r.Name)
		case exempt:
		case r.Reachable && r.Kind == "v": // with security_invoker, the policies of its tables apply to the role
			wantNoRows(t, app, r.Name)
		case r.Reachable && !r.hasScopePolicy():
			t.Errorf("the application role reaches %s (relkind %s), which lacks the scope policy: enabled %t, policies %q", r.Name, r.Kind, r.Enabled, r.Policies)
		case r.Reachable:
			wantNoRows(t, app, r.Name)
		case r.Partition && !r.hasScopePolicy():
			t.Errorf("partition %s lacks the scope policy: enabled %t, policies %q", r.Name, r.Enabled, r.Policies)
		case r.Partition:
			wantDenied(t, app, r.Name)
		}
	}
	for name := range withoutPolicy {
		if !listed[name] {
			t.Errorf("withoutPolicy lists %s, which does not exist", name)
		}
	}
}

// A transaction without a scope sees no row, although each user has data.
func wantNoRows(t *testing.T, app *pgxpool.Pool, name string) {
	t.Helper()
	var n int
	if err := app.QueryRow(t.Context(), "select count(*) from "+pgx.Identifier{name}.Sanitize()).Scan(&n); err != nil {
		t.Errorf("count rows of %s: %v", name, err)
	}
	if n != 0 {
		t.Errorf("without a scope %s returns %d rows, want none", name, n)
	}
}

func wantDenied(t *testing.T, app *pgxpool.Pool, name string) {
	t.Helper()
	_, err := app.Exec(t.Context(), "select from "+pgx.Identifier{name}.Sanitize())
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
		t.Errorf("select from partition %s: %v, want permission denied", name, err)
	}
}

// The application role cannot change the schema, nor what restricts it.
func TestSchemaBelongsToTheOwner(t *testing.T) {
	t.Parallel()
	app := appPool(t, postgrestest.Create(t))
	for _, sql := range []string{
		"create table x (id int)", "create function x() returns int language sql as 'select 1'", "create schema x", "drop table memories",
		"alter table memories disable row level security", "drop policy scope on memories", "create policy x on memories using (true)",
		"alter table memories owner to current_user", "truncate memories", "alter function audit_expire security invoker",
		"alter role current_user bypassrls", "set session_replication_role = replica",
	} {
		_, err := app.Exec(t.Context(), sql)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "42501" {
			t.Errorf("%s: %v, want permission denied", sql, err)
		}
	}
}

// Every function that the application role can call has an entry that explains
// why it exposes no other user's data.
func TestReachableFunctions(t *testing.T) {
	t.Parallel()
	rows, err := appPool(t, postgrestest.Create(t)).Query(t.Context(), `select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		where n.nspname not in ('pg_catalog', 'information_schema') and has_function_privilege(p.oid, 'execute')
			and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]bool{}, map[string]bool{}
	for name := range reachableFunctions {
		want[name] = true
	}
	for _, name := range names {
		got[name] = true
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("functions that the application role can call (-explained +reachable):\n%s", diff)
	}
}

func appPool(t *testing.T, d postgrestest.Database) *pgxpool.Pool {
	t.Helper()
	app, err := pgxpool.New(t.Context(), d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	return app
}
