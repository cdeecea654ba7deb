package tenanttest

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// retired applies a tenant with data, retires it with Retain, and returns it with a
// new resource of the same name that is not applied yet.
func retired(t *testing.T, b Backend, memories int) *fixture {
	t.Helper()
	f := applyTenant(t, b)
	b.Fill(t, f.scope(t, "alice"), memories, 0)
	f.retire(t, tenant.Retain)
	f.spec.ID = tenant.ID(uuid.NewString())
	return f
}

// wantConflict applies the spec and checks the reason of the conflict.
func (f *fixture) wantConflict(t *testing.T, want tenant.ConflictReason) {
	t.Helper()
	_, err := f.Store.Apply(t.Context(), f.spec)
	wantKind(t, err, fault.Conflict)
	if got, ok := errors.AsType[tenant.NameConflict](err); !ok || got.Reason != want {
		t.Fatalf("Apply: got error %v, want reason %s", err, want)
	}
}

func adopts(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	placement, err := b.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	hash := f.install(t, "alice", 1)
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	alice, first := f.user(t, "alice").ID, f.got.ID
	f.retire(t, tenant.Retain)

	stranger := f.spec
	stranger.ID, stranger.Name = tenant.ID(uuid.NewString()), "other"
	if got, err := b.Store.Apply(t.Context(), stranger); err != nil || got.ID == first {
		t.Errorf("Apply under another name = %s, %v, want a new tenant", got.ID, err)
	}
	f.spec.ID = tenant.ID(uuid.NewString())
	f.apply(t)
	f.apply(t)
	if f.got.ID != first || f.user(t, "alice").ID != alice {
		t.Errorf("tenant %s with alice %d, want %s with %d", f.got.ID, f.user(t, "alice").ID, first, alice)
	}
	if f.got.Placement.Current.Location != placement {
		t.Errorf("the adopted placement is %+v, was %+v", f.got.Placement.Current.Location, placement)
	}
	if got, err := b.Store.Usage(t.Context(), f.got.ID); err != nil || got.Memories != 3 || got.Conversations != 1 {
		t.Errorf("usage after the adoption is %+v (%v), want 3 memories and 1 conversation", got, err)
	}
	f.wantRevoked(t, hash)
	next := f.install(t, "alice", 2)
	f.wantValid(t, next)
	f.retire(t, tenant.Retain) // by the uid of the adopting resource
	f.wantRevoked(t, next)
}

func adoptsByPolicy(c check) {
	t, b := c.t, c.Backend
	f := retired(t, b, 3)
	f.spec.Adopt = false
	f.wantConflict(t, tenant.AdoptionRequired)
	f.spec.Adopt, f.spec.NamespaceUID = true, "recreated"
	f.wantConflict(t, tenant.AdoptionRefused)
}

func replacesEmpty(c check) {
	t, b := c.t, c.Backend
	for name, change := range map[string]func(*tenant.Spec){
		"without adoption":       func(s *tenant.Spec) { s.Adopt = false },
		"of another namespace":   func(s *tenant.Spec) { s.NamespaceUID = "recreated" },
		"with an older resource": func(s *tenant.Spec) { s.NamespaceUID, s.Adopt = "recreated", false },
	} {
		f := retired(t, b, 0)
		old := f.got.ID
		change(&f.spec)
		f.apply(t)
		if f.got.ID != f.spec.ID || len(f.got.Users) != 2 {
			t.Errorf("%s: the tenant is %+v, want a new one", name, f.got)
		}
		if _, err := b.Store.Usage(t.Context(), old); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: usage of the replaced tenant: %v, want NotFound", name, err)
		}
	}
}

func requiresNamespace(c check) {
	t, b := c.t, c.Backend
	f := &fixture{Backend: b, spec: NewSpec()}
	uid := f.spec.NamespaceUID
	f.spec.NamespaceUID = ""
	if _, err := b.Store.Apply(t.Context(), f.spec); !errors.Is(err, tenant.ErrNamespaceUIDRequired) {
		t.Fatalf("Apply of a new tenant without a namespace: %v, want ErrNamespaceUIDRequired", err)
	}
	f.spec.NamespaceUID = uid
	f.apply(t)
	f.spec.NamespaceUID, f.spec.DisplayName = "", "Acme Inc."
	f.apply(t)
	if got, _ := f.record(t, tenant.RecordsOf{}); got.NamespaceUID != uid {
		t.Errorf("the namespace is %q, want %q", got.NamespaceUID, uid)
	}
}

func reassigns(c check) {
	t, b := c.t, c.Backend
	f := retired(t, b, 3)
	first := f.got.ID
	f.spec.Cluster, f.spec.NamespaceUID = "cluster-2", "recreated"
	to := tenant.Owner{Cluster: f.spec.Cluster, NamespaceUID: f.spec.NamespaceUID}
	if err := b.Records.Reassign(t.Context(), first, to); err != nil {
		t.Fatalf("Reassign: %v", err)
	}
	f.apply(t)
	if f.got.ID != first {
		t.Errorf("the tenant is %s, want %s", f.got.ID, first)
	}
	if got, err := b.Store.Usage(t.Context(), f.got.ID); err != nil || got.Memories != 3 {
		t.Errorf("usage is %+v (%v), want 3 memories", got, err)
	}
	wantKind(t, b.Records.Reassign(t.Context(), first, to), fault.Conflict) // it is active
}
