package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// application applies an application to a tenant of the bundle and returns its identity.
func (b *testBundle) application(t testing.TB, spec int, a tenant.ApplicationSpec) tenant.Identity {
	t.Helper()
	b.specs[spec].Applications = append(b.specs[spec].Applications, a)
	if _, err := b.Apply(t.Context(), b.specs[spec]); err != nil {
		t.Fatal(err)
	}
	hash := tenant.HashSecret(fmt.Sprint(spec, a.Name))
	c := tenant.Credential{Generation: 1, TokenHash: hash, Issuer: tenant.IssuerOperator}
	if err := b.Install(t.Context(), b.specs[spec].ID, tenant.KeyHolder(a.Name), c); err != nil {
		t.Fatal(err)
	}
	who, err := b.Identify(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// actFor returns the scope of a user of an application.
func (b *testBundle) actFor(t testing.TB, who tenant.Identity, name string, create bool) tenant.Scope {
	t.Helper()
	acting, err := b.ActFor(tenant.WithActor(t.Context(), who.Actor), who, name, create)
	if err != nil {
		t.Fatalf("ActFor(%q): %v", name, err)
	}
	return acting.Scope
}

func webApplication() tenant.ApplicationSpec {
	return tenant.ApplicationSpec{Name: "web", Scopes: []string{"write", "read"}, Origins: []string{"https://app.acme.test"}, RequestsPerMinute: 60}
}

func TestIdentifyApplication(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	who := b.application(t, 0, webApplication())
	want := tenant.Identity{
		Scope: tenant.Scope{Tenant: b.specs[0].ID, User: who.User}, Actor: tenant.KeyActor(tenant.HashSecret("0web"), "web"),
		Access: tenant.AccessRead | tenant.AccessWrite, TenantName: "acme", UserName: "key-web", Quota: b.specs[0].Quota,
		Application: &tenant.Application{ID: who.User, Name: "web", Origins: []string{"https://app.acme.test"}, RequestsPerMinute: 60},
		Generation:  who.Generation,
	}
	if diff := cmp.Diff(want, who); diff != "" {
		t.Errorf("Identify (-want +got):\n%s", diff)
	}
}

// TestApplicationUsersAreApart: a user of an application is none of the listed users of the
// same name, and none of another tenant's.
func TestApplicationUsersAreApart(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Users = 50 })
	one, two := b.application(t, 0, webApplication()), b.application(t, 1, webApplication())
	batch := b.application(t, 0, tenant.ApplicationSpec{Name: "batch", Scopes: []string{"read"}, RequestsPerMinute: tenant.NoLimit})
	scopes := map[tenant.Scope]string{one.Scope: "the holder of the key", two.Scope: "the holder of the key"}
	for i, u := range b.users {
		scopes[u] = fmt.Sprint("listed user ", i)
	}
	for _, name := range []string{"alice", "bob", "key-web", "app-alice", "oidc-0011223344556677", "Ünï/cödé 株式会社", "web", "'; --"} {
		if got := b.actFor(t, one, name, false); got.User != tenant.NoUser {
			t.Fatalf("a read for the unknown %q is of user %d", name, got.User)
		}
		mine := b.actFor(t, one, name, true)
		if other, taken := scopes[mine]; taken || mine.User == tenant.NoUser || mine.Tenant != one.Tenant {
			t.Errorf("%q is %v: %s", name, mine, other)
		}
		scopes[mine] = name
		if again := b.actFor(t, batch, name, false); again != mine {
			t.Errorf("another application of the tenant has %v as %q, want %v", again, name, mine)
		}
		if got := b.actFor(t, two, name, false); got.User != tenant.NoUser {
			t.Errorf("another tenant has %v as %q", got, name)
		}
		b.remember(t, mine, "of "+name, nil)
	}
	if used, err := b.Usage(t.Context(), one.Tenant); err != nil || used.Users != 10 {
		t.Errorf("usage %+v, %v, want 2 listed users and 8 of applications", used, err)
	}
	// The operator neither lists nor removes them, whatever the policy.
	b.specs[0].DeletionPolicy, b.specs[0].Users = tenant.Delete, []tenant.UserSpec{{Name: "bob"}}
	got, err := b.Apply(t.Context(), b.specs[0])
	if err != nil || len(got.Users) != 1 || len(got.Applications) != 2 || got.Applications[1].Name != "key-web" {
		t.Fatalf("Apply = %+v, %v, want bob and two applications", got, err)
	}
	if got := b.actFor(t, one, "alice", false); scopes[got] != "alice" {
		t.Errorf("after alice was removed from the list, the application's alice is %v", got)
	}
	if users, _, err := b.ListExternalUsers(t.Context(), got.ID); err != nil || len(users) > 0 {
		t.Errorf("users of an identity provider: %+v, %v", users, err)
	}
}

func TestApplicationUserQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Users = 5 }) // two are listed
	who := b.application(t, 0, webApplication())
	var wg sync.WaitGroup
	for i := range 12 { // four times each of three names
		wg.Go(func() {
			_, err := b.ActFor(tenant.WithActor(t.Context(), who.Actor), who, fmt.Sprint("u", i%3), true)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, err := b.ActFor(t.Context(), who, "u3", true)
	if got, ok := errors.AsType[tenant.QuotaExceeded](err); !ok || got.Resource != tenant.ResourceUsers || got.Limit != 5 || !fault.Is(err, fault.Forbidden) {
		t.Errorf("over the quota: %v", err)
	}
	if got := b.actFor(t, who, "u3", false); got.User != tenant.NoUser {
		t.Errorf("a read over the quota is of user %d", got.User)
	}
	if err := b.EraseApplicationUser(t.Context(), who, "u1"); err != nil {
		t.Fatal(err)
	}
	if used, err := b.Usage(t.Context(), who.Tenant); err != nil || used.Users != 4 {
		t.Errorf("usage after an erasure: %+v, %v, want 4 users", used, err)
	}
	b.actFor(t, who, "u3", true)
}

func TestEraseApplicationUser(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	who := b.application(t, 0, webApplication())
	first, other := b.actFor(t, who, "u/1", true), b.actFor(t, who, "u/2", true)
	postgrestest.Fill(t, b.owner, first, 3, 2)
	b.remember(t, other, "stays", nil)
	if err := b.EraseApplicationUser(t.Context(), who, "u/1"); err != nil {
		t.Fatal(err)
	}
	if err := b.EraseApplicationUser(t.Context(), who, "u/1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("erased twice: %v, want NotFound", err)
	}
	second := b.actFor(t, who, "u/1", true) // the name is free at once
	if second == first {
		t.Error("the user was not erased")
	}
	workJobs(t, b.DB, b.owner)
	if rows := b.rowsOfUser(t, first); len(rows) > 0 {
		t.Errorf("rows of the erased user: %v", rows)
	}
	list, err := b.ApplicationUsers(t.Context(), who, "", 10)
	want := []tenant.ApplicationUser{{Name: "u/1"}, {Name: "u/2", Memories: 1}}
	for i := range list {
		list[i].CreatedAt = time.Time{}
	}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("users: %v\n%s", err, diff)
	}
	if page, err := b.ApplicationUsers(t.Context(), who, "u/1", 10); err != nil || len(page) != 1 || page[0].Name != "u/2" {
		t.Errorf("the second page: %+v, %v", page, err)
	}
	// As an administrator does with `mnemo erase`.
	scope, err := b.FindUser(t.Context(), who.Tenant, "app-u/2")
	if err != nil || scope != other {
		t.Fatalf("FindUser = %v, %v, want %v", scope, err, other)
	}
	if err := b.EraseUser(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if rows := b.rowsOfUser(t, other); len(rows) > 0 {
		t.Errorf("rows after mnemo erase: %v", rows)
	}
	if _, err := b.FindUser(t.Context(), who.Tenant, "key-web"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the holder of the key can be erased: %v", err)
	}
}

// TestRemovedApplication: the key is revoked, the users stay and belong to the tenant's
// applications again as soon as there is one.
func TestRemovedApplication(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	who := b.application(t, 0, webApplication())
	user := b.actFor(t, who, "u1", true)
	b.remember(t, user, "stays", nil)
	if origins, err := b.AllowedOrigins(t.Context()); err != nil || !slices.Equal(origins, webApplication().Origins) {
		t.Errorf("allowed origins %v, %v", origins, err)
	}
	b.specs[0].Applications, b.specs[0].DeletionPolicy = nil, tenant.Delete
	got, err := b.Apply(t.Context(), b.specs[0])
	if err != nil || len(got.Applications) != 0 {
		t.Fatalf("Apply = %+v, %v", got, err)
	}
	if _, err := b.Identify(t.Context(), tenant.HashSecret("0web")); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the key of a removed application: %v, want Unauthorized", err)
	}
	if origins, err := b.AllowedOrigins(t.Context()); err != nil || len(origins) > 0 {
		t.Errorf("the origins of a removed application: %v, %v", origins, err)
	}
	b.specs[0].Applications = []tenant.ApplicationSpec{webApplication()}
	if got, err = b.Apply(t.Context(), b.specs[0]); err != nil || len(got.Applications) != 1 {
		t.Fatalf("Apply = %+v, %v", got, err)
	}
	if token := got.Applications[0].Token; token == nil || token.Fingerprint != "" {
		t.Errorf("listed again, the key is %+v, want a revoked one", token)
	}
	if again := b.actFor(t, who, "u1", false); again != user {
		t.Errorf("listed again, u1 is %v, want %v", again, user)
	}
}

// TestApplicationRates: an application has a rate of its own beside the tenant's.
func TestApplicationRates(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	who := b.application(t, 0, webApplication())
	of := tenant.RateLimited{Tenant: who.Tenant, Application: who.Application.ID}
	p, err := b.TakePermits(t.Context(), of, 32)
	if err != nil || p.Granted != 2 || p.Remaining != 30 {
		t.Errorf("permits of the application: %+v, %v", p, err)
	}
	if p, err = b.TakePermits(t.Context(), tenant.RateLimited{Tenant: who.Tenant}, 16); err != nil || p.Remaining != 15 {
		t.Errorf("permits of the tenant: %+v, %v", p, err)
	}
}

// TestPurgedTenantWithApplicationUsers: the purge counts no users.
func TestPurgedTenantWithApplicationUsers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Users = 50 })
	who := b.application(t, 0, webApplication())
	for i := range 20 {
		b.actFor(t, who, fmt.Sprint("u", i), true)
	}
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PurgeRows(t.Context(), who.Tenant); err != nil {
		t.Fatal(err)
	}
	if err := b.DeletePurged(t.Context(), who.Tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Usage(t.Context(), who.Tenant); !fault.Is(err, fault.NotFound) {
		t.Errorf("the purged tenant: %v", err)
	}
}

// TestPurgeDeletesUsersInBatches: the users of a large tenant do not fit into one attempt of the job, and the
// next attempt continues the work.
func TestPurgeDeletesUsersInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	who := b.application(t, 0, webApplication())
	b.fillUsers(t, who, 4500)
	exec(t, b.owner, "create table deletions_of_users (users bigint)")
	exec(t, b.owner, `create function note_deletion() returns trigger language plpgsql security definer as $$
		begin insert into deletions_of_users select count(*) from gone; return null; end $$`)
	exec(t, b.owner, `create trigger note_deletion after delete on users referencing old table as gone
		for each statement execute function note_deletion()`)
	if _, err := b.Retire(t.Context(), who.Tenant, tenant.Delete); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Purge(t.Context(), b.DB, droppedAtOnce{}, who.Tenant); err != nil {
		t.Fatal(err)
	}
	var most, all int64
	if err := b.owner.QueryRow(t.Context(), "select max(users), sum(users)::bigint from deletions_of_users").Scan(&most, &all); err != nil {
		t.Fatal(err)
	}
	if most > 2000 {
		t.Errorf("a statement deletes %d users, want at most 2000", most)
	}
	if want := int64(4500 + 3); all != want { // and two listed ones, and the application
		t.Errorf("%d users were deleted, want %d", all, want)
	}
}

// fillUsers adds users of an application, as first writes do, without one transaction each.
func (b *testBundle) fillUsers(t testing.TB, who tenant.Identity, count int) {
	t.Helper()
	exec(t, b.owner, "alter table users disable trigger count_insert") // it would update one row for each user
	exec(t, b.owner, `insert into users (tenant_id, name, kind) select $1, 'app-user-' || lpad(i::text, 7, '0'), 'application_user'
		from generate_series(1, $2::int) i`, who.Tenant, count)
	exec(t, b.owner, "update usage set application_users = application_users + $2 where tenant_id = $1", who.Tenant, count)
	exec(t, b.owner, "alter table users enable trigger count_insert")
}

// A page of users is read without the others, also before PostgreSQL has statistics.
func TestListApplicationUsersReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	exec(t, b.owner, "alter table users set (autovacuum_enabled = off)")
	who := b.application(t, 0, webApplication())
	const users, page = 5000, 100
	b.fillUsers(t, who, users)
	conn := session(t, d, who.Scope)
	exec(t, conn, "prepare listed (uuid, text, bigint) as "+namedQuery(t, "applications.sql", "ListApplicationUsers", "tenant_id", "after", "most"))
	forEachPlan(t, b, conn, "users", func(plans string) {
		for _, after := range []string{"", "app-user-0002500"} {
			plan := explain(t, conn, fmt.Sprintf("execute listed ('%s', '%s', %d)", who.Tenant, after, page))
			if plan.Rows != page {
				t.Errorf("%s, after %q: %v rows, want %d", plans, after, plan.Rows, page)
			}
			if node, rows := plan.most(); rows > page {
				t.Errorf("%s, after %q: %s of %s reads %v rows, want at most the page of %d", plans, after, node.Type, node.Relation, rows, page)
			}
		}
	})
}

// The owners of memories and the users of audit records are found without reading the other users of the tenant.
func TestUserNamesReadFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	exec(t, b.owner, "alter table users set (autovacuum_enabled = off)")
	who := b.application(t, 0, webApplication())
	const users, owners = 5000, 5
	b.fillUsers(t, who, users)
	var ids []string
	for i := range owners {
		ids = append(ids, b.remember(t, b.actFor(t, who, fmt.Sprintf("user-%07d", i+1), false), "one", nil))
	}
	if err := b.SealRecords(t.Context(), who.Tenant, true); err != nil {
		t.Fatal(err)
	}
	conn := session(t, d, who.Scope)
	exec(t, conn, "select set_config('mnemo.user', '*', false)")
	exec(t, conn, "prepare owners (uuid, uuid[]) as "+namedQuery(t, "memories.sql", "MemoryOwners", "tenant_id", "ids"))
	exec(t, conn, "prepare records (uuid, bigint, bigint) as "+namedQuery(t, "webhooks.sql", "NextWebhookRecords", "tenant_id", "after", "page"))
	forEachPlan(t, b, conn, "users, memories, audit_records", func(plans string) {
		for _, statement := range []string{
			fmt.Sprintf("execute owners ('%s', '{%s}')", who.Tenant, strings.Join(ids, ",")),
			fmt.Sprintf("execute records ('%s', 0, 100)", who.Tenant),
		} {
			plan := explain(t, conn, statement)
			if rows := readRows(t, conn, "users", statement); plan.Rows < owners || rows < owners || rows > 10*int64(plan.Rows) {
				t.Errorf("%s, %.15s: %v rows, %d of users are read", plans, statement, plan.Rows, rows)
			}
		}
	})
}

// BenchmarkApplicationUsers measures the first write for a user, and a later lookup, in a
// tenant with few and with many users.
func BenchmarkApplicationUsers(b *testing.B) {
	for _, users := range []int{10, 1_000, 100_000} {
		d := setupIn(b, postgrestest.Create(b), func(q *tenant.Quota) { q.Users = 1 << 40 })
		who := d.application(b, 0, webApplication())
		d.fillUsers(b, who, users)
		if _, err := d.owner.Exec(b.Context(), "vacuum analyze users"); err != nil {
			b.Fatal(err)
		}
		n := 0
		for name, create := range map[string]func() (string, bool){
			"FirstWrite": func() (string, bool) { n++; return fmt.Sprint("new-", users, "-", n), true },
			"Lookup":     func() (string, bool) { return "user-7", false },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, users), func(b *testing.B) {
				for b.Loop() {
					user, create := create()
					if _, err := d.ActFor(b.Context(), who, user, create); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("Apply/%d", users), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				d.specs[0].DisplayName = fmt.Sprint(i)
				if _, err := d.Apply(b.Context(), d.specs[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// During a canary, each user of an application is served with the location of the generation of its vectors, which may be
// another one than that of the key.
func TestActForDuringCanary(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Users = 30 })
	key := b.application(t, 0, webApplication())
	exec(t, b.owner, `with target as (insert into embedding_generations (name, dimensions) values ('next', 2) returning id)
		insert into embedding_migrations (target_id, phase, canary_percent, canary_seconds, rate) select id, 'canary', 50, 3600, 0 from target`)
	exec(t, b.owner, `insert into embedding_targets (tenant_id, generation, collection, partition, shared, state)
		values ($1, 'next', 'next_vectors', 'next_partition', false, 'ready')`, string(key.Tenant))
	next := placement.GenerationID(b.number(t, "select id from embedding_generations where name = 'next'"))
	locations := map[placement.GenerationID]placement.Location{
		key.Generation: key.Placement, next: {Collection: "next_vectors", Partition: "next_partition"},
	}
	if key.Generation == next {
		t.Fatal("the key is in the canary, so that users outside of it are not tested")
	}
	served := map[placement.GenerationID]int{}
	for i := range 20 {
		acting, err := b.ActFor(t.Context(), key, fmt.Sprint("user", i), true)
		if err != nil {
			t.Fatal(err)
		}
		served[acting.Generation]++
		if acting.Placement != locations[acting.Generation] {
			t.Errorf("user %d is served with generation %d at %+v, want %+v", acting.User, acting.Generation, acting.Placement, locations[acting.Generation])
		}
		id, err := b.CreateExtraction(t.Context(), acting.Scope, extract.Input{})
		if err != nil {
			t.Fatal(err)
		}
		who, _, err := b.OpenExtraction(t.Context(), extract.Args{Tenant: acting.Tenant, User: acting.User, Extraction: id})
		if err != nil {
			t.Fatal(err)
		}
		if who.Placement != acting.Placement || who.Generation != acting.Generation {
			t.Errorf("the extraction is stored with generation %d at %+v, want %d at %+v", who.Generation, who.Placement, acting.Generation, acting.Placement)
		}
	}
	if served[key.Generation] == 0 || served[next] == 0 {
		t.Errorf("%v users are served with each generation, want some with both", served)
	}
}
