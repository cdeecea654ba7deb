package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const (
	erasureTenants = 10
	erasureUsers   = 100 // per tenant
)

// canaries finds the marks in a row: of users who are erased or kept, and of single
// objects that are deleted.
const canaries = `canary(?:erased|kept|deleted)[0-9]+x`

// populated is a database with users whose every text contains a mark.
type populated struct {
	*env
	ledger  string
	specs   []tenant.Spec
	tenants []tenant.Tenant
	erased  placement.Location // of the first tenant, which is erased
}

// mark returns the text that all data of a user contains. The users of the first
// three tenants are erased.
func mark(tenantIndex, user int) string {
	kind := "kept"
	if tenantIndex < 3 {
		kind = "erased"
	}
	return fmt.Sprintf("canary%s%dx", kind, tenantIndex*erasureUsers+user)
}

// populate creates 1,000 users with memories, edits, buckets, conversations and
// tokens, and indexes them.
func populate(t *testing.T) *populated {
	t.Helper()
	p := &populated{env: openEnv(t, postgrestest.Create(t)), ledger: t.TempDir()}
	for i := range erasureTenants {
		spec := tenanttest.NewSpec()
		spec.Quota.Users, spec.Quota.Memories, spec.Quota.Conversations, spec.Quota.Storage = erasureUsers, 1e6, 1e6, 1<<40
		spec.DeletionPolicy, spec.Users = tenant.Delete, nil
		for u := range erasureUsers {
			name := fmt.Sprintf("user-%02d", u)
			if i < 2 {
				name += "-" + mark(i, u) // the third tenant's users delete their accounts and stay
			}
			spec.Users = append(spec.Users, tenant.UserSpec{Name: name})
		}
		p.specs, p.tenants = append(p.specs, spec), append(p.tenants, p.apply(t, spec))
	}
	p.erased = p.placement(t, p.tenants[0].ID)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	for i, tn := range p.tenants {
		for u, user := range tn.Users {
			g.Go(func() error { return p.fill(ctx, tn.ID, user, mark(i, u)) })
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// Vectors of length 1, which need no model.
	p.exec(t, `update units set embedding = set_byte(decode(repeat('00', 768), 'hex'), (id % 384)::int * 2 + 1, 60)`)
	p.mnemo(t, "index", "rebuild", "--all")
	return p
}

// fill stores data of every kind for one user.
func (p *populated) fill(ctx context.Context, id tenant.ID, user tenant.User, mark string) error {
	scope := tenant.Scope{Tenant: id, User: user.ID}
	c := tenant.Credential{Generation: 1, TokenHash: tokenHash(scope, 1), PasswordHash: tenant.HashSecret("first"), Issuer: tenant.IssuerOperator}
	if err := p.db.Install(ctx, id, user.Name, c); err != nil {
		return err
	}
	bucket, err := p.db.CreateBucket(ctx, scope, memory.BucketInput{Name: "Bucket " + mark, Description: "of " + mark})
	if err != nil {
		return err
	}
	var first string
	for i, text := range []string{"I like %s.", "I know %s."} {
		m := newTestMemory(fmt.Sprintf(text, mark))
		m.Bucket = bucket
		stored, err := p.db.Memories().Create(ctx, scope, m)
		if err != nil {
			return err
		}
		if i == 0 {
			first = stored.ID
		}
	}
	text := "I love " + mark + "."
	edit := memory.Edit{UpdateInput: memory.UpdateInput{ID: first, Text: &text}, Tokens: 5, Units: retrieve.MemoryUnits(text)}
	if _, err := p.db.Memories().Update(ctx, scope, edit); err != nil {
		return err
	}
	_, err = p.db.Conversations().Upsert(ctx, scope, testConversation(mark))
	return err
}

func newTestMemory(text string) memory.NewMemory {
	return memory.NewMemory{CreateInput: memory.CreateInput{Text: text}, Tokens: 5, Units: retrieve.MemoryUnits(text)}
}

func testConversation(mark string) chat.Upsert {
	at := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	return chat.Upsert{ExternalID: "c-" + mark, Platform: "custom", PlatformName: "Custom", Title: "About " + mark, CreatedAt: at, Messages: []chat.Message{
		{ExternalID: "m1", Sender: chat.Human, Text: "What is " + mark + "?", Tokens: 5, CreatedAt: at},
		{ExternalID: "m2", Sender: chat.Assistant, Text: mark + " is a word.", Tokens: 5, CreatedAt: at.Add(time.Minute)},
	}}
}

func tokenHash(scope tenant.Scope, generation int) tenant.Hash {
	return tenant.HashSecret(fmt.Sprint(scope.Tenant, scope.User, generation))
}

func (p *populated) scope(i, u int) tenant.Scope {
	return tenant.Scope{Tenant: p.tenants[i].ID, User: p.tenants[i].Users[u].ID}
}

// erase erases 300 users in three ways: with their tenant, by removing them from the
// Tenant, and by deleting their accounts.
func (p *populated) erase(t *testing.T) {
	t.Helper()
	if _, err := p.db.Retire(t.Context(), p.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if _, err := p.db.PurgeRows(t.Context(), p.tenants[0].ID); err != nil {
		t.Fatal(err)
	}
	spec := p.specs[1]
	spec.Users = []tenant.UserSpec{{Name: "somebody-else"}}
	p.apply(t, spec)
	for u := range erasureUsers {
		if err := p.db.PurgeUser(t.Context(), p.scope(1, u)); err != nil {
			t.Fatal(err)
		}
	}
	accounts, confirm := account.NewService(account.Config{Store: p.db.Accounts()}), account.Confirmation
	for u := range erasureUsers {
		if _, err := accounts.Delete(t.Context(), tenant.Identity{Scope: p.scope(2, u)}, &confirm); err != nil {
			t.Fatal(err)
		}
	}
}

// addSingles gives kept users a memory, a conversation and a bucket to delete.
func (p *populated) addSingles(t *testing.T) (remove func(t *testing.T)) {
	t.Helper()
	scope, text := p.scope(3, 0), "canarydeleted1x"
	m, err := p.db.Memories().Create(t.Context(), scope, newTestMemory("Not for long: "+text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.db.Conversations().Upsert(t.Context(), scope, testConversation(text))
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := p.db.CreateBucket(t.Context(), scope, memory.BucketInput{Name: text})
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		if _, err := p.db.Memories().Delete(t.Context(), scope, []string{m.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.db.Conversations().Delete(t.Context(), scope, []string{c.Conversation.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.db.DeleteBucket(t.Context(), scope, bucket); err != nil {
			t.Fatal(err)
		}
	}
}

// replaceToken issues the next token of a user and revokes the first.
func (p *populated) replaceToken(t *testing.T, i, u int) {
	t.Helper()
	c := tenant.Credential{Generation: 2, TokenHash: tokenHash(p.scope(i, u), 2), PasswordHash: tenant.HashSecret("second"), Issuer: tenant.IssuerOperator}
	if err := p.db.Install(t.Context(), p.tenants[i].ID, p.tenants[i].Users[u].Name, c); err != nil {
		t.Fatal(err)
	}
	if err := p.db.RevokeOlder(t.Context(), p.tenants[i].ID, p.tenants[i].Users[u].Name, 2, 0); err != nil {
		t.Fatal(err)
	}
}

// signIn signs a user in with a password and returns the session.
func (p *populated) signIn(t *testing.T, i, u int, password string) (tenant.Hash, error) {
	t.Helper()
	session := tenant.HashSecret(uuid.NewString())
	return session, p.db.SignIn(t.Context(), tenant.SignIn{
		Name:     tenant.SignInName{Namespace: p.specs[i].Namespace, Tenant: p.specs[i].Name, User: p.tenants[i].Users[u].Name},
		Password: tenant.HashSecret(password), Address: "192.0.2.1", Session: session, Lifetime: time.Hour,
	})
}

func (e *env) exec(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// found searches every column of every table, as text and as bytes, and returns
// the number of distinct marks of each kind.
func (e *env) found(t *testing.T) map[string]int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), `select format('%I.%I', schemaname, tablename) from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	marks := map[string]bool{}
	for _, table := range tables {
		// Binary columns are in hexadecimal.
		rows, err := conn.Query(t.Context(), `select distinct m[1] from `+table+` r, regexp_matches(r::text, $1, 'g') m
			union select 'canaryerased in bytes' from `+table+` r where strpos(r::text, encode('canaryerased', 'hex')) > 0`, "("+canaries+")")
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		for _, m := range list {
			marks[m] = true
		}
	}
	out := map[string]int{}
	for m := range marks {
		out[strings.TrimRight(strings.TrimPrefix(m, "canary"), "0123456789x")]++
	}
	return out
}

// runJobs runs the background jobs until none is left.
func (e *env) runJobs(t *testing.T) {
	t.Helper()
	addr := testkit.Milvus(t)
	s, err := openStores(t.Context(), databaseFlags{DatabaseURL: e.AppURL, DatabaseConnections: 20},
		milvusFlags{MilvusAddress: addr.Addr, MilvusUsername: addr.User, MilvusPassword: addr.Password}, defaultGeneration, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	embedders, err := openEmbedders(t.Context(), s, nil, embedderFlags{
		Embedder: "local", Model: defaultGeneration.Model, ModelDir: testkit.ModelDir(t), ONNXRuntime: testkit.ONNXRuntime(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, counts := newMetrics()
	workers, err := startJobs(t.Context(), s, embedders, counts, nil, &extract.Runner{Store: s.db}, telemetry.NewLogger(os.Stderr, telemetry.LogConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = workers.Stop(context.WithoutCancel(t.Context())) }()
	// A partition is dropped after a delay.
	const due = "finalized_at is null and scheduled_at <= now()"
	deadline := time.After(5 * time.Minute)
	for tick := time.Tick(200 * time.Millisecond); e.number(t, "select count(*) from river_job where "+due) > 0; {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("jobs are left: %s", e.text(t, "select jsonb_agg(distinct jsonb_build_object(kind, errors[1] -> 'error')) from river_job where "+due))
		}
	}
}

func (e *env) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	e.query(t, &n, sql, args...)
	return n
}

func (e *env) text(t *testing.T, sql string) (s string) {
	t.Helper()
	e.query(t, &s, sql)
	return s
}

func (e *env) query(t *testing.T, out any, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(out); err != nil {
		t.Fatal(err)
	}
}

// strayVectors returns the number of vectors of a tenant without a row.
func (p *populated) strayVectors(t *testing.T, restored *env, i int) int {
	t.Helper()
	index, location := openIndex(t), p.placement(t, p.tenants[i].ID)
	var all []retrieve.UnitID
	for after := retrieve.UnitID(0); ; {
		page, err := index.List(t.Context(), p.tenants[i].ID, location, after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		all, after = append(all, page...), page[len(page)-1]
	}
	return len(all) - restored.number(t, "select count(*) from units where id = any($1)", all)
}

// TestErasureSurvivesRestore makes a backup of 1,000 users with pg_dump, erases 300
// of them and restores the backup. Every column of every table is searched for
// what was erased, and the index is compared with the rows. Without the ledger
// the same search finds all 300 again.
func TestErasureSurvivesRestore(t *testing.T) {
	p := populate(t)
	p.expectOutput(t, "repeated 0 erasures", "erasures", "apply", "--ledger", p.ledger)
	removeSingles := p.addSingles(t)
	signedOut, err := p.signIn(t, 4, 0, "first")
	if err != nil {
		t.Fatal(err)
	}
	signedIn, err := p.signIn(t, 4, 1, "first")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"erased": 300, "kept": 700, "deleted": 1}, p.found(t)); diff != "" {
		t.Fatalf("before the backup (-want +got):\n%s", diff)
	}
	before := tokenHash(p.scope(5, 0), 1)
	dump := postgrestest.Dump(t, p.Database)

	p.erase(t)
	removeSingles(t)
	p.replaceToken(t, 5, 0)
	if err := p.db.EndSession(t.Context(), signedOut); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"kept": 700}, p.found(t)); diff != "" {
		t.Fatalf("after the erasure (-want +got):\n%s", diff)
	}
	p.expectOutput(t, "repeated 0 erasures", "erasures", "apply", "--ledger", p.ledger)

	t.Run("without the ledger erased data is found", func(t *testing.T) {
		restored := openEnv(t, postgrestest.Restore(t, dump))
		if diff := cmp.Diff(map[string]int{"erased": 300, "kept": 700, "deleted": 1}, restored.found(t)); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
		restored.expectValid(t, "the revoked token", before)
		if n := p.strayVectors(t, restored, 1); n != 0 {
			t.Errorf("%d vectors of removed users have no row, want all of them restored", n)
		}
	})
	t.Run("with the ledger nothing erased is found", func(t *testing.T) {
		restored := openEnv(t, postgrestest.Restore(t, dump))
		if err := restored.db.CheckErasures(t.Context()); err == nil {
			t.Error("the API would be ready before the ledger was applied")
		}
		restored.mnemo(t, "erasures", "apply", "--ledger", p.ledger)
		if err := restored.db.CheckErasures(t.Context()); err != nil {
			t.Errorf("after the ledger was applied: %v", err)
		}
		if diff := cmp.Diff(map[string]int{"kept": 700}, restored.found(t)); diff != "" {
			t.Errorf("restored (-want +got):\n%s", diff)
		}
		if n := p.strayVectors(t, restored, 1); n == 0 {
			t.Error("the index has no vector of a removed user; the next check proves nothing")
		}
		restored.runJobs(t)
		if _, err := openIndex(t).List(t.Context(), p.tenants[0].ID, p.erased, 0, 1); !errors.Is(err, placement.ErrNoPartition) {
			t.Errorf("partition of the erased tenant: %v, want that it does not exist", err)
		}
		for i := 1; i < erasureTenants; i++ {
			if n := p.strayVectors(t, restored, i); n != 0 {
				t.Errorf("tenant %d has %d vectors without a row", i, n)
			}
		}
		p.expectCredentials(t, restored, before, signedOut, signedIn)
	})
}

// expectCredentials checks that credentials of the backup are valid unless they
// were revoked afterwards.
func (p *populated) expectCredentials(t *testing.T, restored *env, revoked, signedOut, signedIn tenant.Hash) {
	t.Helper()
	restored.expectRevoked(t, "the replaced token", revoked)
	for i := 3; i < erasureTenants; i++ {
		for u := range erasureUsers {
			if i != 5 || u != 0 {
				restored.expectValid(t, fmt.Sprint("token of kept user ", i, " ", u), tokenHash(p.scope(i, u), 1))
			}
		}
	}
	if _, err := restored.db.Session(t.Context(), signedOut); err == nil {
		t.Error("a session that was ended is valid again")
	}
	if _, err := restored.db.Session(t.Context(), signedIn); err != nil {
		t.Errorf("a session of the backup: %v, want it valid", err)
	}
	onRestored := &populated{env: restored, specs: p.specs, tenants: p.tenants}
	if _, err := onRestored.signIn(t, 5, 0, "first"); err == nil {
		t.Error("a password that was replaced is valid again")
	}
	if _, err := onRestored.signIn(t, 6, 0, "first"); err != nil {
		t.Errorf("a password of the backup: %v, want it valid", err)
	}
}
