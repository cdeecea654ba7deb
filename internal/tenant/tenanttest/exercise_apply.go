package tenanttest

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func applyCreates(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	want := tenant.Tenant{
		ID: f.spec.ID, Namespace: f.spec.Namespace, Name: "acme", Quota: f.spec.Quota,
		Users: []tenant.User{{Name: "alice", Email: "alice@acme.test"}, {Name: "bob"}},
	}
	if diff := cmp.Diff(want, f.got, cmpopts.IgnoreFields(tenant.User{}, "ID")); diff != "" {
		t.Errorf("Apply (-want +got):\n%s", diff)
	}
	if alice, bob := f.user(t, "alice").ID, f.user(t, "bob").ID; alice == 0 || bob == 0 || alice == bob {
		t.Errorf("user ids are %d and %d, want two different ids other than 0", alice, bob)
	}
}

func applyTwice(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	f.install(t, "alice", 1)
	if _, err := f.Store.EnsurePlacement(t.Context(), f.got.ID); err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	f.apply(t)
	first, version := f.got, f.Version(t, f.got.ID)
	f.spec.Users[0], f.spec.Users[1] = f.spec.Users[1], f.spec.Users[0] // the order is irrelevant
	f.apply(t)
	if diff := cmp.Diff(first, f.got); diff != "" {
		t.Errorf("the second Apply returned another result (-first +second):\n%s", diff)
	}
	if now := f.Version(t, f.got.ID); now != version {
		t.Errorf("the second Apply wrote: version %s became %s", version, now)
	}
}

func applyChanges(c check) {
	t, b := c.t, c.Backend
	for name, change := range map[string]func(*tenant.Spec){
		"display name": func(s *tenant.Spec) { s.DisplayName = "Acme Inc." },
		"suspended":    func(s *tenant.Spec) { s.Suspended = true },
		"policy":       func(s *tenant.Spec) { s.DeletionPolicy = tenant.Delete },
		"isolation":    func(s *tenant.Spec) { s.Isolation = tenant.Shared },
		"quota":        func(s *tenant.Spec) { s.Quota.Conversations, s.Quota.UserMemories = 0, tenant.NoLimit },
		"email": func(s *tenant.Spec) {
			s.Users = []tenant.UserSpec{{Name: "alice"}, {Name: "bob", Email: "b@acme.test"}}
		},
		"administrators": func(s *tenant.Spec) { s.Administrators = []string{"alice", "ann@acme.test"} },
		"more users":     func(s *tenant.Spec) { s.Users = append(s.Users, tenant.UserSpec{Name: "carol"}) },
		"no users":       func(s *tenant.Spec) { s.Users = nil },
	} {
		f := applyTenant(t, b)
		version := f.Version(t, f.got.ID)
		change(&f.spec)
		f.apply(t)
		if f.Version(t, f.got.ID) == version {
			t.Errorf("%s: Apply of a change wrote nothing", name)
		}
		if f.got.Suspended != f.spec.Suspended || f.got.Quota != f.spec.Quota {
			t.Errorf("%s: Apply returned %+v, want suspended and quota of %+v", name, f.got, f.spec)
		}
		emails := map[string]string{}
		for _, u := range f.spec.Users {
			emails[u.Name] = u.Email
		}
		stored := map[string]string{}
		for _, u := range f.got.Users {
			stored[u.Name] = u.Email
		}
		if diff := cmp.Diff(emails, stored); diff != "" {
			t.Errorf("%s: users (-want +got):\n%s", name, diff)
		}
	}
}

func applyUsers(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	alice := f.user(t, "alice").ID
	if alice == other.user(t, "alice").ID {
		t.Fatal("two tenants' users share an id")
	}
	f.spec.Users = []tenant.UserSpec{{Name: "bob"}}
	f.apply(t)
	if len(f.got.Users) != 1 || f.got.Users[0].Name != "bob" {
		t.Fatalf("users are %+v, want bob only", f.got.Users)
	}
	f.spec.Users = []tenant.UserSpec{{Name: "alice"}, {Name: "bob"}}
	f.apply(t)
	if now := f.user(t, "alice").ID; now != alice {
		t.Errorf("alice has id %d after she was listed again, want %d: with Retain her data would be lost", now, alice)
	}
	other.apply(t)
	if len(other.got.Users) != 2 {
		t.Errorf("the other tenant's users became %+v", other.got.Users)
	}
}

func takenName(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	second := f.spec
	second.ID = tenant.ID(uuid.NewString())
	_, err := b.Store.Apply(t.Context(), second)
	wantKind(t, err, fault.Conflict)
	second.Cluster = "cluster-2" // namespaces of clusters are distinct
	if _, err := b.Store.Apply(t.Context(), second); err != nil {
		t.Errorf("Apply of the name in another cluster: %v", err)
	}
}

func unknown(c check) {
	t, b := c.t, c.Backend
	f, id := applyTenant(t, b), tenant.ID(uuid.NewString())
	_, err := b.Store.Usage(t.Context(), id)
	wantKind(t, err, fault.NotFound)
	_, err = b.Store.EnsurePlacement(t.Context(), id)
	wantKind(t, err, fault.NotFound)
	_, err = b.Store.ReconcilePlacement(t.Context(), id)
	wantKind(t, err, fault.NotFound)
	wantKind(t, b.Store.SetPartitionID(t.Context(), id, placement.Location{Collection: "c", Partition: "p"}, 1), fault.NotFound)
	wantKind(t, b.Tokens.Install(t.Context(), id, "alice", credential(1)), fault.NotFound)
	wantKind(t, b.Tokens.Install(t.Context(), f.got.ID, "nobody", credential(1)), fault.NotFound)
}

func usageCounts(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	b.Fill(t, f.scope(t, "bob"), 2, 1)
	got, err := b.Store.Usage(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("Usage: %v", err)
	}
	want := tenant.Usage{Memories: 5, Conversations: 2, Users: 2}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tenant.Usage{}, "Storage")); diff != "" {
		t.Errorf("Usage (-want +got):\n%s", diff)
	}
	if got.Storage <= 0 {
		t.Errorf("storage used is %d bytes, want some", got.Storage)
	}
	if got, err = b.Store.Usage(t.Context(), other.got.ID); err != nil || got != (tenant.Usage{Users: 2}) {
		t.Errorf("the other tenant's usage is %+v (%v), want 2 users only", got, err)
	}
}

// applyDomains checks that a domain belongs to the first tenant that lists it,
// until that tenant no longer lists it or is retired.
func applyDomains(c check) {
	t, b := c.t, c.Backend
	issuer := "https://id.test/" + uuid.NewString()
	first, second := applyTenant(t, b), applyTenant(t, b)
	apply := func(f *fixture, want []string, domains ...string) {
		t.Helper()
		f.spec.OIDC = tenant.OIDC{Issuer: issuer, Domains: domains}
		f.apply(t)
		if diff := cmp.Diff(want, f.got.DomainsTaken, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("domains taken (-want +got):\n%s", diff)
		}
	}
	apply(first, nil, "acme.test", "acme.example")
	version := b.Version(t, first.got.ID)
	apply(first, nil, "acme.example", "acme.test")
	if b.Version(t, first.got.ID) != version {
		t.Error("Apply of the same domains in another order wrote")
	}
	apply(second, []string{"acme.example"}, "globex.test", "acme.example")
	apply(first, nil, "acme.test")
	apply(second, nil, "globex.test", "acme.example")
	apply(first, []string{"acme.example", "globex.test"}, "globex.test", "acme.example")
	if _, err := b.Store.Retire(t.Context(), second.spec.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	apply(first, nil, "globex.test", "acme.example")
}

func applyApplications(c check) {
	t, b := c.t, c.Backend
	f := &fixture{Backend: b, spec: NewSpec()}
	web := tenant.ApplicationSpec{Name: "alice", Scopes: []string{"read", "admin"}, Origins: []string{"https://a.test"}, RequestsPerMinute: 7}
	f.spec.Applications = []tenant.ApplicationSpec{web}
	f.apply(t)
	if len(f.got.Applications) != 1 || f.got.Applications[0].Name != tenant.KeyHolder("alice") || len(f.got.Users) != 2 {
		t.Fatalf("Apply = %+v, want two users and an application", f.got)
	}
	if used, err := b.Store.Usage(t.Context(), f.got.ID); err != nil || used.Users != 2 {
		t.Errorf("usage %+v, %v, want 2 users", used, err)
	}
	f.install(t, "alice", 1)
	key := f.install(t, tenant.KeyHolder("alice"), 1)
	first, version := f.got, f.Version(t, f.got.ID) // before a use of the key, which is recorded later
	f.apply(t)
	if now := f.Version(t, f.got.ID); now != version {
		t.Errorf("the second Apply wrote: version %s became %s", version, now)
	}
	who := f.wantValid(t, key)
	if who.Access != tenant.AccessRead|tenant.AccessAdmin || who.Application == nil || who.Application.Name != "alice" || who.Scope == f.scope(t, "alice") {
		t.Errorf("Identify = %+v, want the application", who)
	}
	f.spec.Applications[0].Scopes = []string{"write"}
	f.apply(t)
	if who := f.wantValid(t, key); who.Access != tenant.AccessWrite {
		t.Errorf("with another scope: %+v", who)
	}
	f.spec.Applications, f.spec.DeletionPolicy = nil, tenant.Delete
	f.apply(t)
	f.wantRevoked(t, key)
	if len(f.got.Applications) != 0 || len(f.got.Users) != len(first.Users) {
		t.Errorf("Apply without applications = %+v", f.got)
	}
}
