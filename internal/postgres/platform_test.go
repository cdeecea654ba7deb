package postgres_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// overviewNames returns the names of the tenants that a filter selects.
func overviewNames(t *testing.T, store *postgres.DB, f tenant.OverviewFilter) (names []string, hasMore bool) {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 10
	}
	o, err := store.Overview(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, tn := range o.Tenants {
		names = append(names, tn.Name)
	}
	return names, o.HasMore
}

// The overview counts tenants, finds those that need attention with their reasons, and
// sorts, searches and pages them. A tenant that is being deleted is not in it.
func TestOverview(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, owner := postgrestest.Open(t, d), ownerPool(t, d)
	ids := map[string]string{}
	for _, name := range []string{"quiet", "full", "slow", "kept", "gone", "drifting", "broken"} {
		spec := tenanttest.NewSpec()
		spec.Name, spec.DisplayName = name, "Display of "+name
		if _, err := store.Apply(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if name != "broken" {
			if _, err := store.EnsurePlacement(t.Context(), spec.ID); err != nil {
				t.Fatal(err)
			}
		}
		ids[name] = string(spec.ID)
	}
	exec(t, owner, "update tenants set namespace = 'ns', created_at = now() - interval '1 hour'")
	exec(t, owner, "update tenants set state = 'retained', retired_at = now() where id = $1", ids["kept"])
	exec(t, owner, "update tenants set state = 'purging' where id = $1", ids["gone"])
	exec(t, owner, "update usage set memories = 80, storage = 5 where tenant_id = $1", ids["full"])
	exec(t, owner, "update usage set memories = 90, storage = 7 where tenant_id = $1", ids["kept"])
	exec(t, owner, "insert into index_sweeps (tenant_id, began_at, swept_at, drifted_sweeps) values ($1, now(), now(), 4) on conflict (tenant_id) do update set drifted_sweeps = 4", ids["drifting"])
	exec(t, owner, "insert into index_sweeps (tenant_id, began_at, swept_at, drifted_sweeps) values ($1, now(), now(), 2) on conflict (tenant_id) do update set drifted_sweeps = 2", ids["quiet"])
	exec(t, owner, `insert into webhooks (tenant_id, name, url, events, secret, position, failing_since)
		values ($1, 'w', 'https://x.test', '{}', 's', 0, now() - interval '1 hour'), ($1, 'v', 'https://x.test', '{}', 's', 0, now())`, ids["broken"])
	exec(t, owner, "delete from river_job")
	exec(t, owner, `insert into river_job (kind, queue, args, max_attempts, created_at, state)
		select k, 'default', jsonb_build_object('tenant', $1::text), 5, now() - a::interval, 'available'
		from (values ('index.sync', '10 minutes'), ('index.sync', '1 minute'), ('other', '1 day')) as j (k, a)`, ids["slow"])

	o, err := store.Overview(t.Context(), tenant.OverviewFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if o.IndexLag < 10*time.Minute || o.IndexLag > time.Hour {
		t.Errorf("index lag %s, want 10 minutes", o.IndexLag)
	}
	want := tenant.Overview{All: 6, NearQuota: 1, Unhealthy: 3, Retained: 1, Changes: 2}
	if diff := cmp.Diff(want, o, cmpopts.IgnoreFields(tenant.Overview{}, "Tenants", "IndexLag")); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	got := map[string]tenant.OverviewTenant{}
	for _, tn := range o.Tenants {
		if tn.Namespace != "ns" || tn.DisplayName != "Display of "+tn.Name || string(tn.ID) != ids[tn.Name] || tn.Usage.Users != 2 || tn.Hard.Users != 5 || tn.Hard.Memories != 100 {
			t.Errorf("%+v, want its names, users and quotas", tn)
		}
		if lag := tn.IndexLag > 9*time.Minute; lag != (tn.Name == "slow") {
			t.Errorf("%s: index lag %s", tn.Name, tn.IndexLag)
		}
		got[tn.Name] = tn
	}
	rows := map[string]tenant.OverviewTenant{
		"quiet": {}, "full": {NearQuota: true}, "slow": {Unhealthy: true, Lagging: true, Changes: 2}, "kept": {Retained: true},
		"drifting": {Unhealthy: true, DriftedSweeps: 4}, "broken": {Unhealthy: true, Unplaced: true, FailingWebhooks: 1},
	}
	ignored := cmpopts.IgnoreFields(tenant.OverviewTenant{}, "ID", "Namespace", "Name", "DisplayName", "Usage", "Hard", "IndexLag")
	if diff := cmp.Diff(rows, got, ignored); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		f       tenant.OverviewFilter
		want    []string
		hasMore bool
	}{
		{f: tenant.OverviewFilter{Limit: 2}, want: []string{"kept", "full"}, hasMore: true},
		{f: tenant.OverviewFilter{Limit: 2, Offset: 4}, want: []string{"quiet", "slow"}},
		{f: tenant.OverviewFilter{Offset: 6}},
		{f: tenant.OverviewFilter{Group: tenant.OnlyNearQuota}, want: []string{"full"}},
		{f: tenant.OverviewFilter{Group: tenant.OnlyUnhealthy, Order: tenant.ByName}, want: []string{"broken", "drifting", "slow"}},
		{f: tenant.OverviewFilter{Group: tenant.OnlyRetained}, want: []string{"kept"}},
		{f: tenant.OverviewFilter{Order: tenant.ByIndexLag, Limit: 1}, want: []string{"slow"}, hasMore: true},
		{f: tenant.OverviewFilter{Order: tenant.ByStorage, Limit: 2}, want: []string{"kept", "full"}, hasMore: true},
		{f: tenant.OverviewFilter{Name: "NS/Qui"}, want: []string{"quiet"}},
		{f: tenant.OverviewFilter{Name: "of drift"}, want: []string{"drifting"}},
		{f: tenant.OverviewFilter{Name: "%"}},
	} {
		if names, hasMore := overviewNames(t, store, tt.f); !slices.Equal(names, tt.want) || hasMore != tt.hasMore {
			t.Errorf("%+v: %v, more %t; want %v, %t", tt.f, names, hasMore, tt.want, tt.hasMore)
		}
	}
}

// A session of a platform administrator is recorded in the audit log of the installation. It
// ends when it expires, is ended, or the database is restored, and is no session of a user.
func TestPlatformSessions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ops := tenant.PlatformAdministrator{Issuer: "https://id.test", Subject: "42", Email: "ops@id.test"}
	begin := func(n byte, life time.Duration) tenant.Hash {
		t.Helper()
		h := tenant.Hash{n}
		if err := b.SignInPlatform(t.Context(), tenant.PlatformSignIn{PlatformAdministrator: ops, Address: "192.0.2.1", Session: h, Lifetime: life}); err != nil {
			t.Fatal(err)
		}
		return h
	}
	wantEnded := func(h tenant.Hash, why string) {
		t.Helper()
		if _, err := b.PlatformSession(t.Context(), h); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v, want Unauthorized", why, err)
		}
	}
	wantEnded(begin(1, -time.Minute), "an expired session")
	h := begin(2, time.Hour)
	if who, err := b.PlatformSession(t.Context(), h); err != nil || who != ops {
		t.Errorf("PlatformSession() = %+v, %v", who, err)
	}
	if _, err := b.Session(t.Context(), h); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a platform session as that of a user: %v, want Unauthorized", err)
	}
	for range 2 {
		if err := b.EndPlatformSession(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	wantEnded(h, "an ended session")
	restored := begin(3, time.Hour)
	if err := b.Erasures().BeginReplay(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEnded(restored, "a session of a restored database")

	if err := b.SealRecords(t.Context(), audit.Installation, true); err != nil {
		t.Fatal(err)
	}
	var got []audit.Record
	err := b.TenantRecords(t.Context(), audit.Installation, func(_ audit.Head, all iter.Seq2[audit.Record, error]) error {
		for r, err := range all {
			if err != nil {
				return err
			}
			got = append(got, r)
		}
		return nil
	})
	record := func(verb audit.Verb, via string, h tenant.Hash) audit.Record {
		return audit.Record{Tenant: audit.Installation, Actor: string(tenant.ActorAdministrator), Via: via, Fingerprint: h.Fingerprint(), Verb: verb, Objects: []string{h.Fingerprint(), ops.Issuer, ops.Subject}}
	}
	want := []audit.Record{
		record(audit.SessionCreate, tenant.ViaProvider, tenant.Hash{1}), record(audit.SessionCreate, tenant.ViaProvider, h),
		record(audit.SessionDelete, tenant.ViaSession, h), record(audit.SessionCreate, tenant.ViaProvider, restored),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(audit.Record{}, "Sequence", "At", "Previous", "Hash")); err != nil || diff != "" {
		t.Errorf("audit records: %v (-want +got):\n%s", err, diff)
	}
}
