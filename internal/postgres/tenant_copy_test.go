package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// copyFixture is a database of two tenants with data of two users each, the first of which is suspended, and an
// empty one.
type copyFixture struct {
	*testBundle // the source
	source      postgrestest.Database
	target      postgrestest.Database
	targetDB    *postgres.DB
	targetOwner *pgxpool.Pool
	token       tenant.Hash
	bob         string // a memory of the second user
}

// otherTables fills the tables of the first tenant that no test of the store's methods needs here.
const otherTables = `
	insert into sessions (hash, tenant_id, user_id, expires_at) select 'session', tenant_id, id, now() + interval '1 day' from users where id = $1;
	insert into oauth_clients (id, name, redirect_uris) values ('client', 'Claude', '{https://claude.example.com}'), ('other', 'Other', '{}');
	insert into oauth_grants (tenant_id, user_id, id, client_id, redirect_uri, challenge)
		select tenant_id, id, '018f0000-0000-7000-8000-000000000001', 'client', 'https://claude.example.com', 'x' from users where id = $1;
	insert into oauth_secrets (hash, tenant_id, user_id, grant_id, kind, expires_at)
		select 'secret', tenant_id, user_id, id, 'access', now() + interval '1 hour' from oauth_grants;
	insert into user_tokens (tenant_id, user_id, hash, name, scopes) select tenant_id, id, 'mine', 'Laptop', '{read}' from users where id = $1;
	insert into idempotency_keys (tenant_id, user_id, route, key, body, answer) select tenant_id, id, 'memory', 'k', 'b', '{"id": 1.50}' from users where id = $1;
	insert into import_chunks (tenant_id, user_id, import_id, n, data) select tenant_id, user_id, id, 7, '\x00ff' from imports where user_id = $1 limit 1;
	update imports i set chunk_bytes = 2 from import_chunks c where c.import_id = i.id;
	insert into import_ledger (tenant_id, user_id, import_id, ordinal, outcome, reason)
		select tenant_id, user_id, id, 7, 'failed', E'a\tb\\\n' from imports where user_id = $1 limit 1;
	insert into extractions (tenant_id, user_id, id, input) select tenant_id, id, gen_random_uuid(), '[{"text": "ü"}]' from users where id = $1;
	insert into deletions (tenant_id, user_id, id, object, kind, content, expires_at)
		select tenant_id, id, gen_random_uuid(), gen_random_uuid(), 'memory', '{}', now() from users where id = $1;
	insert into webhooks (tenant_id, name, url, events, secret, position) select tenant_id, 'hook', 'https://x.example.com', '{}', 's', 0 from users where id = $1;
	insert into oidc_domains (issuer, domain, tenant_id) select 'https://login.example.com', 'acme.test', tenant_id from users where id = $1;
	insert into removed_users (tenant_id, email, administrator) select tenant_id, 'eve@acme.test', true from users where id = $1;
	insert into index_sweeps (tenant_id, began_at, swept_at) select tenant_id, now(), now() from users where id = $1;
	insert into river_job (state, kind, args, queue, max_attempts, priority) select 'running', 'memory.extract',
		jsonb_build_object('tenant', tenant_id, 'user', id), 'extract', 5, 4 from users where id = $1`

func newCopyFixture(t *testing.T) *copyFixture {
	t.Helper()
	f := &copyFixture{source: postgrestest.Create(t), target: postgrestest.CreateInCell(t, 7)}
	f.testBundle = setupIn(t, f.source, nil)
	f.targetDB, f.targetOwner = postgrestest.Open(t, f.target), ownerPool(t, f.target)
	// The generation of both has different numbers.
	for _, g := range []placement.Generation{{Model: "another", Dimensions: 2}, postgrestest.Generation} {
		if _, err := f.targetDB.EnsureGeneration(t.Context(), g, true); err != nil {
			t.Fatal(err)
		}
	}
	f.ensureGeneration(t, postgrestest.Generation)
	alice := f.users[0]
	web := f.application(t, 0, webApplication())
	f.remember(t, f.actFor(t, web, "customer", true), "A user of an application.", nil)
	f.token = tenant.HashSecret(postgrestest.NewToken(t))
	f.install(t, f.specs[0].ID, "alice", f.token)
	f.fillAccount(t, alice, "alice")
	kept := f.remember(t, alice, "alice likes tea", nil)
	f.merge(t, alice, kept, f.remember(t, alice, "alice likes green tea", nil))
	f.bob = f.embedded(t, f.users[1], "bob has a vector")
	f.fillAccount(t, f.users[2], "carol")
	if err := f.SealRecords(t.Context(), alice.Tenant, true); err != nil {
		t.Fatal(err)
	}
	f.suspend(t, f.testBundle.DB, true) // ends sessions, and domains that are not in the specification
	exec(t, f.owner, strings.ReplaceAll(otherTables, "$1", fmt.Sprint(alice.User)))
	return f
}

func (b *testBundle) install(t *testing.T, id tenant.ID, user string, token tenant.Hash) {
	t.Helper()
	c := tenant.Credential{Generation: 1, TokenHash: token, Issuer: tenant.IssuerOperator}
	if err := b.Install(t.Context(), id, user, c); err != nil {
		t.Fatal(err)
	}
}

// embedded stores a memory with a vector of generation 1.
func (b *testBundle) embedded(t *testing.T, scope tenant.Scope, text string) string {
	t.Helper()
	m := newMemory(text)
	for i := range m.Units {
		m.Units[i].Vector, m.Units[i].Generation = make([]float32, postgrestest.Generation.Dimensions), 1
		m.Units[i].Vector[3] = 1
	}
	created, err := b.Memories().Create(t.Context(), scope, m)
	if err != nil {
		t.Fatal(err)
	}
	return created.ID
}

// suspend suspends or resumes the first tenant in a database.
func (f *copyFixture) suspend(t *testing.T, db *postgres.DB, suspended bool) {
	t.Helper()
	spec := f.specs[0]
	spec.Suspended = suspended
	if _, err := db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func (f *copyFixture) copyTenant(ctx context.Context) (tenant.CopyReport, error) {
	spec := f.specs[0]
	return postgres.CopyTenant(ctx, postgres.CopyConfig{SourceURL: f.source.OwnerURL, TargetURL: f.target.OwnerURL, Tenant: spec.Namespace + "/" + spec.Name})
}

// notCompared are the tables with a column tenant_id that a copy omits.
var notCompared = []string{"erasures", "placements", "placement_migrations", "embedding_targets", "index_sweeps", "tenant_units", "rate_windows"}

// rowsOf returns the rows of a tenant in each table, in order, without the number of their generation.
func rowsOf(t *testing.T, owner *pgxpool.Pool, id tenant.ID) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	rows, err := owner.Query(t.Context(), `select c.relname::text, a.attname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and not a.attisdropped
			and (a.attname = 'tenant_id' or c.relname = 'tenants' and a.attname = 'id') and c.relname <> all($1)`, notCompared)
	if err != nil {
		t.Fatal(err)
	}
	type table struct{ Name, Key string }
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tables {
		rows, err := owner.Query(t.Context(), `select (to_jsonb(r) - '{generation_id}'::text[])::text from `+x.Name+` r where `+x.Key+` = $1 order by 1`, string(id))
		if err != nil {
			t.Fatal(err)
		}
		if out[x.Name], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A copy has the same rows of both users, and none of the other tenant.
func TestCopyTenant(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	id, other := f.users[0].Tenant, f.users[2].Tenant
	otherBefore := rowsOf(t, f.owner, other)
	report, err := f.copyTenant(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := rowsOf(t, f.owner, id)
	if diff := cmp.Diff(want, rowsOf(t, f.targetOwner, id)); diff != "" {
		t.Errorf("rows of the tenant (-source +target):\n%s", diff)
	}
	for table, rows := range want {
		if len(rows) == 0 {
			t.Errorf("the test has no row in %s", table)
		}
	}
	for _, c := range report.Tables {
		if c.Rows != int64(len(want[c.Table])) {
			t.Errorf("the report has %d rows of %s, want %d", c.Rows, c.Table, len(want[c.Table]))
		}
	}
	if len(report.Tables) != len(want) {
		t.Errorf("the report has %d tables, want %d", len(report.Tables), len(want))
	}
	if report.SourceCell != 0 || report.TargetCell != 7 {
		t.Errorf("copied from cell %d to %d, want 0 to 7", report.SourceCell, report.TargetCell)
	}
	for table, rows := range rowsOf(t, f.targetOwner, other) {
		if len(rows) > 0 {
			t.Errorf("the target has %d rows of the other tenant in %s", len(rows), table)
		}
	}
	if diff := cmp.Diff(otherBefore, rowsOf(t, f.owner, other)); diff != "" {
		t.Errorf("rows of the other tenant in the source (-before +after):\n%s", diff)
	}
	wrong, err := postgrestest.WrongCounters(t.Context(), f.targetOwner)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Errorf("counters of the target: %s", w)
	}
}

// The credentials, the data and the audit chain of the tenant work in the target, and new ids are those of its cell.
func TestCopiedTenantIsUsable(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	if _, err := f.copyTenant(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved := &testBundle{DB: f.targetDB, owner: f.targetOwner, specs: f.specs[:1], users: f.users[:2]}
	if who, err := moved.Identify(t.Context(), f.token); err != nil || !who.Suspended {
		t.Errorf("the token identifies %+v, %v, want a user of a suspended tenant", who, err)
	}
	f.suspend(t, f.targetDB, false)
	who, err := moved.Identify(t.Context(), f.token)
	if err != nil || who.Scope != f.users[0] {
		t.Errorf("the token identifies %v, %v, want %v", who.Scope, err, f.users[0])
	}
	hits, err := moved.Lexical(t.Context(), f.users[1], retrieve.Request{Kind: retrieve.Memory, Text: "vector", Limit: 5})
	if err != nil || len(hits) != 1 {
		t.Errorf("search by word = %v, %v, want one unit", hits, err)
	}
	hits, err = moved.Lexical(t.Context(), f.users[0], retrieve.Request{Kind: retrieve.Memory, Text: "vector", Limit: 5})
	if err != nil || len(hits) != 0 {
		t.Errorf("the other user found %v, %v, want nothing", hits, err)
	}
	added := moved.remember(t, f.users[0], "Stored after the copy.", nil)
	if units := moved.unitsOf(t, added); int64(units[0]) < tenant.DatabaseCell(7).FirstID() {
		t.Errorf("the new unit has the id %d", units[0])
	}
	records := moved.auditOf(t, f.users[0].Tenant)
	if !slices.ContainsFunc(records, func(r audit.Record) bool { return r.Verb == audit.TenantCopy }) {
		t.Error("the audit log of the target has no record of the copy")
	}
	source := f.auditOf(t, f.users[0].Tenant)
	if last := source[len(source)-1]; last.Verb != audit.TenantCopy {
		t.Errorf("the last audit record of the source is %s, want %s", last.Verb, audit.TenantCopy)
	}
	moved.checkCounters(t)
}

// A vector is copied only if the target places new tenants in its generation. Otherwise the next sweep computes it.
func TestCopyTenantMapsGenerations(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	report, err := f.copyTenant(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Vectors != 1 || report.VectorsToCompute == 0 {
		t.Errorf("%d vectors were copied and %d are to be computed, want 1 and more", report.Vectors, report.VectorsToCompute)
	}
	var generation int16
	const query = "select generation_id from units where memory_id = $1 and embedding is not null"
	if err := f.targetOwner.QueryRow(t.Context(), query, f.bob).Scan(&generation); err != nil || generation != 2 {
		t.Errorf("the vector has generation %d, %v, want 2", generation, err)
	}

	other := newCopyFixture(t)
	if _, err := other.targetDB.EnsureGeneration(t.Context(), placement.Generation{Model: "another", Dimensions: 2}, true); err != nil {
		t.Fatal(err)
	}
	exec(t, other.owner, "update units set indexed_at = now()")
	if report, err = other.copyTenant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report.Vectors != 0 {
		t.Errorf("%d vectors of another model were copied", report.Vectors)
	}
	if _, err := other.targetDB.EnsurePlacement(t.Context(), other.users[0].Tenant); err != nil {
		t.Fatal(err)
	}
	missing, err := other.targetDB.Unconfirmed(t.Context(), other.users[0].Tenant, 0, 100)
	if err != nil || int64(len(missing)) != report.VectorsToCompute {
		t.Errorf("the sweep finds %d units without a vector, %v, want %d", len(missing), err, report.VectorsToCompute)
	}
}

// Jobs of the tenant that are not about the index continue in the target.
func TestCopyTenantQueuesJobs(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	report, err := f.copyTenant(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := f.targetOwner.Query(t.Context(), "select kind || ' ' || state || ' ' || (args ->> 'user') from river_job where args ->> 'tenant' = $1", string(f.users[0].Tenant))
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"memory.extract available " + fmt.Sprint(f.users[0].User)}; !slices.Equal(jobs, want) || report.Jobs != 1 {
		t.Errorf("jobs in the target = %v (%d in the report), want %v", jobs, report.Jobs, want)
	}
}

// A copy that fails in the middle leaves nothing in the target, and can be repeated.
func TestFailedCopyChangesNothing(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	id := f.users[0].Tenant
	records := len(f.auditOf(t, id)) // seals the pending records
	before := rowsOf(t, f.owner, id)
	for name, breakTarget := range map[string]string{
		"an insert fails": `create function broken() returns trigger language plpgsql as $$ begin raise exception 'disk is full'; end $$;
			create trigger broken before insert on messages for each row execute function broken()`,
		"a row changes": `create function broken() returns trigger language plpgsql as $$ begin new.text := 'x'; return new; end $$;
			create trigger broken before insert on messages for each row execute function broken()`,
		"a row is omitted": `create function broken() returns trigger language plpgsql as $$ begin return null; end $$;
			create trigger broken before insert on messages for each row execute function broken()`,
	} {
		exec(t, f.targetOwner, breakTarget)
		if _, err := f.copyTenant(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		exec(t, f.targetOwner, "drop function broken cascade")
		for table, rows := range rowsOf(t, f.targetOwner, id) {
			if len(rows) > 0 {
				t.Errorf("%s: the target has %d rows in %s", name, len(rows), table)
			}
		}
		if n := count(t, f.targetOwner, "select (select count(*) from river_job) + (select count(*) from oauth_clients)"); n != 0 {
			t.Errorf("%s: the target has %d jobs and clients", name, n)
		}
	}
	if diff := cmp.Diff(before, rowsOf(t, f.owner, id)); diff != "" {
		t.Errorf("rows of the source (-before +after):\n%s", diff)
	}
	if n := len(f.auditOf(t, id)); n != records {
		t.Errorf("the source has %d audit records, want %d", n, records)
	}
	if _, err := f.copyTenant(t.Context()); err != nil {
		t.Errorf("repeat the copy: %v", err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCopyTenantRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(*copyFixture) // may be nil
		change  func(*copyFixture, *postgres.CopyConfig)
		kind    fault.Kind
		want    string
	}{
		"unknown tenant": {
			change: func(_ *copyFixture, c *postgres.CopyConfig) { c.Tenant = "nobody/nothing" }, kind: fault.NotFound, want: "not found"},
		"writable tenant": {
			prepare: func(f *copyFixture) { f.suspend(t, f.testBundle.DB, false) }, kind: fault.Conflict, want: "spec.suspended"},
		"purging tenant": {
			prepare: func(f *copyFixture) {
				exec(t, f.owner, "update tenants set state = 'purging' where id = $1", string(f.specs[0].ID))
			},
			kind: fault.Conflict, want: "is being purged"},
		"the same database": {
			change: func(f *copyFixture, c *postgres.CopyConfig) { c.TargetURL = f.source.OwnerURL }, kind: fault.Conflict, want: "the cell 0"},
		"the same cell": {
			change: func(_ *copyFixture, c *postgres.CopyConfig) { c.TargetURL = postgrestest.Create(t).OwnerURL }, kind: fault.Conflict, want: "the cell 0"},
		"the application role": {
			change: func(f *copyFixture, c *postgres.CopyConfig) { c.SourceURL = f.source.AppURL }, kind: fault.Invalid, want: "source database does not own it"},
		"the application role of the target": {
			change: func(f *copyFixture, c *postgres.CopyConfig) { c.TargetURL = f.target.AppURL }, kind: fault.Invalid, want: "target database does not own it"},
		"an invalid URL": {
			change: func(_ *copyFixture, c *postgres.CopyConfig) { c.TargetURL = "postgres://a:secret@:x" }, kind: fault.Invalid, want: "must have the form"},
		"another schema": {
			prepare: func(f *copyFixture) {
				exec(t, f.targetOwner, "delete from goose_db_version where version_id = $1", postgres.SchemaVersion())
			},
			kind: fault.Invalid, want: "the target database has schema"},
		"no model": {
			change: func(_ *copyFixture, c *postgres.CopyConfig) { c.TargetURL = postgrestest.CreateInCell(t, 8).OwnerURL }, kind: fault.Conflict, want: "no embedding model"},
		"a tenant of the name": {
			prepare: func(f *copyFixture) {
				spec := f.specs[0]
				spec.ID = f.specs[1].ID
				if _, err := f.targetDB.Apply(t.Context(), spec); err != nil {
					t.Error(err)
				}
			}, kind: fault.Conflict, want: "already contains tenant"},
		"rows from an earlier stay": {
			prepare: func(f *copyFixture) {
				exec(t, f.targetOwner, "insert into audit_chains (tenant_id) values ($1)", string(f.specs[0].ID))
			},
			kind: fault.Conflict, want: "rows in audit_chains remain"},
		"a domain of another tenant": {
			prepare: func(f *copyFixture) {
				if _, err := f.targetDB.Apply(t.Context(), f.specs[1]); err != nil {
					t.Error(err)
				}
				exec(t, f.targetOwner, "insert into oidc_domains (issuer, domain, tenant_id) values ('https://login.example.com', 'acme.test', $1)", string(f.specs[1].ID))
			}, kind: fault.Conflict, want: "oidc_domains_pkey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newCopyFixture(t)
			c := postgres.CopyConfig{SourceURL: f.source.OwnerURL, TargetURL: f.target.OwnerURL, Tenant: string(f.specs[0].ID)}
			if tc.prepare != nil {
				tc.prepare(f)
			}
			if tc.change != nil {
				tc.change(f, &c)
			}
			_, err := postgres.CopyTenant(t.Context(), c)
			if !fault.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("CopyTenant = %v, want %v with %q", err, tc.kind, tc.want)
			}
		})
	}
}

// A retained tenant, which accepts no writes either, is copied. Copying the tenant again fails.
func TestCopyRetainedTenant(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	f.suspend(t, f.testBundle.DB, false)
	if _, err := f.Retire(t.Context(), f.specs[0].ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	if _, err := f.copyTenant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := count(t, f.targetOwner, "select count(*) from tenants where state = 'retained'"); got != 1 {
		t.Errorf("the target has %d retained tenants, want 1", got)
	}
	_, err := f.copyTenant(t.Context())
	wantKind(t, "copy the tenant again", err, fault.Conflict)
}

// A tenant that was copied moves on to a third database with the ids of both.
func TestCopyTenantOnward(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	if _, err := f.copyTenant(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved := f.users[0]
	f.suspend(t, f.targetDB, false)
	if _, err := f.targetDB.Memories().Create(t.Context(), moved, newMemory("Stored meanwhile.")); err != nil {
		t.Fatal(err)
	}
	f.suspend(t, f.targetDB, true)
	third := postgrestest.CreateInCell(t, 1)
	if _, err := postgrestest.Open(t, third).EnsureGeneration(t.Context(), postgrestest.Generation, true); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.CopyTenant(t.Context(), postgres.CopyConfig{SourceURL: f.target.OwnerURL, TargetURL: third.OwnerURL, Tenant: string(moved.Tenant)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rowsOf(t, f.targetOwner, moved.Tenant), rowsOf(t, ownerPool(t, third), moved.Tenant)); diff != "" {
		t.Errorf("rows of the tenant (-second +third database):\n%s", diff)
	}
}

// Every table belongs to a tenant, or is listed here with the reason why a copy of a tenant does not contain it.
func TestTablesWithoutTenant(t *testing.T) {
	t.Parallel()
	known := []string{
		"application_rate_windows", "sign_in_attempts", // unlogged counters
		"cells", "embedding_generations", "embedding_migrations", "erasure_ledger", // of the installation
		"database_cell", "goose_db_version", "schema_files", "schema_oldest", "usage_exports", "usage_reports", // of the database
		"oauth_clients",     // copied if a user granted them access
		"platform_sessions", // of platform administrators
		"tenants",           // copied
	}
	rows, err := ownerPool(t, postgrestest.Create(t)).Query(t.Context(), `select c.relname::text from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname not like 'river\_%'
			and not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id')`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(known)
	slices.Sort(got)
	if diff := cmp.Diff(known, got); diff != "" {
		t.Errorf("tables without a tenant (-listed +found); if rows of a new one belong to a tenant, copy them in tenant_copy.go:\n%s", diff)
	}
}
