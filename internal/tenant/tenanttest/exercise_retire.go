package tenanttest

import (
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (f *fixture) retire(t *testing.T, policy tenant.DeletionPolicy) tenant.Remaining {
	t.Helper()
	got, err := f.Store.Retire(t.Context(), f.spec.ID, policy)
	if err != nil {
		t.Fatalf("Retire with %s: %v", policy, err)
	}
	return got
}

func retireRetain(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	hash, theirs := f.install(t, "alice", 1), other.install(t, "alice", 1)
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	for range 2 {
		if got := f.retire(t, tenant.Retain); !got.Done() {
			t.Errorf("Retire with Retain = %+v, want nothing remaining", got)
		}
	}
	b.Work(t)
	f.wantRevoked(t, hash)
	other.wantValid(t, theirs)
}

func retireDelete(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	placement, err := b.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	hash := f.install(t, "alice", 1)
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	b.Fill(t, other.scope(t, "alice"), 3, 1)

	if got := f.retire(t, tenant.Delete); got.Memories != 3 || got.Conversations != 1 {
		t.Errorf("before the purge, %+v remains, want 3 memories and 1 conversation", got)
	}
	f.wantRevoked(t, hash)
	b.Work(t)
	for range 2 {
		if got := f.retire(t, tenant.Delete); !got.Done() {
			t.Errorf("after the purge, %+v remains, want none", got)
		}
	}
	_, err = b.Store.Usage(t.Context(), f.got.ID)
	wantKind(t, err, fault.NotFound)
	if got, err := b.Store.Usage(t.Context(), other.got.ID); err != nil || got.Memories != 3 {
		t.Errorf("the other tenant's usage is %+v (%v), want 3 memories", got, err)
	}

	f.spec.ID = tenant.ID(uuid.NewString()) // the name is free
	f.apply(t)
	if got, err := b.Store.EnsurePlacement(t.Context(), f.got.ID); err != nil || got == placement {
		t.Errorf("EnsurePlacement = %+v, %v: the location of the purged tenant was reused", got, err)
	}
}

func retireUnknown(c check) {
	t, b := c.t, c.Backend
	for _, policy := range []tenant.DeletionPolicy{tenant.Retain, tenant.Delete} {
		got, err := b.Store.Retire(t.Context(), tenant.ID(uuid.NewString()), policy)
		if err != nil || !got.Done() {
			t.Errorf("Retire with %s of an unknown tenant = %+v, %v, want nothing and nil", policy, got, err)
		}
	}
}
