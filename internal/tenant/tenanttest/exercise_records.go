package tenanttest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// record returns the record of the fixture's tenant, and false if there is none.
func (f *fixture) record(t *testing.T, of tenant.RecordsOf) (tenant.Record, bool) {
	t.Helper()
	list, err := f.Records.Records(t.Context(), of)
	if err != nil {
		t.Fatalf("Records: %v", err)
	}
	for _, r := range list {
		if r.ID == f.got.ID {
			return r, true
		}
	}
	return tenant.Record{}, false
}

func records(c check) {
	t, b := c.t, c.Backend
	f := &fixture{Backend: b, spec: NewSpec()}
	f.spec.Cluster = "cluster-" + uuid.NewString()
	f.apply(t)
	first, err := b.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	want := tenant.Record{
		ID: f.got.ID, Resource: f.spec.ID, Cluster: f.spec.Cluster, Namespace: f.spec.Namespace, NamespaceUID: f.spec.NamespaceUID, Name: "acme",
		State: tenant.Active, Policy: tenant.Retain, Placement: first,
		Usage: tenant.Usage{Memories: 3, Conversations: 1, Users: 2},
	}
	ignored := cmpopts.IgnoreFields(tenant.Usage{}, "Storage")
	got, _ := f.record(t, tenant.RecordsOf{Cluster: f.spec.Cluster})
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if _, found := f.record(t, tenant.RecordsOf{}); !found {
		t.Error("records of all clusters: the record is missing")
	}
	if _, found := f.record(t, tenant.RecordsOf{Cluster: "another"}); found {
		t.Error("records of another cluster contain the record")
	}
	if _, found := f.record(t, tenant.RecordsOf{Namespace: f.spec.Namespace, Name: f.spec.Name}); !found {
		t.Error("records of the name: the record is missing")
	}
	if _, found := f.record(t, tenant.RecordsOf{Namespace: f.spec.Namespace, Name: "another"}); found {
		t.Error("records of another name contain the record")
	}
	f.retire(t, tenant.Delete)
	got, _ = f.record(t, tenant.RecordsOf{Cluster: f.spec.Cluster})
	if age := time.Since(got.RetiredAt); age < -time.Minute || age > time.Hour {
		t.Errorf("the tenant was retired at %v, want now", got.RetiredAt)
	}
	if got.State != tenant.Purging || got.Policy != tenant.Delete {
		t.Errorf("the record is %+v, want state purging and policy Delete", got)
	}
	b.Work(t)
	if got, found := f.record(t, tenant.RecordsOf{}); found {
		t.Errorf("after the purge, the record is still %+v", got)
	}
}

func orphaned(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	hash, theirs := f.install(t, "alice", 1), other.install(t, "alice", 1)
	f.spec.DeletionPolicy = tenant.Delete
	f.apply(t)
	for range 2 {
		if err := b.Records.MarkOrphaned(t.Context(), f.got.ID); err != nil {
			t.Fatalf("MarkOrphaned: %v", err)
		}
	}
	f.wantRevoked(t, hash)
	other.wantValid(t, theirs)
	got, _ := f.record(t, tenant.RecordsOf{})
	if got.State != tenant.Retained || got.Policy != tenant.Delete || got.RetiredAt.IsZero() {
		t.Errorf("the record is %+v, want state retained and its previous policy", got)
	}
	f.apply(t) // the Tenant existed, or was restored from a backup
	if got, _ := f.record(t, tenant.RecordsOf{}); got.State != tenant.Active || !got.RetiredAt.IsZero() {
		t.Errorf("the record is %+v, want it active again", got)
	}
	f.wantRevoked(t, hash)
	f.wantValid(t, f.install(t, "alice", 2))
}

func orphanedPurge(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first, err := b.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("EnsurePlacement: %v", err)
	}
	b.Fill(t, f.scope(t, "alice"), 2, 1)
	f.spec.Isolation = tenant.Shared
	f.apply(t)
	next := f.reconcilePlacement(t).Migration.Target.Location // the tenant is purged during a migration
	index := &dropRecorder{}
	if err := tenant.Purge(t.Context(), b.Records, index, f.got.ID); err != nil || len(index.locations) > 0 {
		t.Fatalf("Purge of an active tenant = %v and dropped %v, want no change", err, index.locations)
	}
	if err := b.Records.MarkOrphaned(t.Context(), f.got.ID); err != nil {
		t.Fatalf("MarkOrphaned: %v", err)
	}
	remaining := f.retire(t, tenant.Delete)
	if diff := cmp.Diff([]placement.Location{first, next}, remaining.Locations); diff != "" {
		t.Errorf("remaining locations (-want +got):\n%s", diff)
	}
	index.err = fault.New(fault.Unavailable, "Milvus is unavailable")
	wantKind(t, tenant.Purge(t.Context(), b.Records, index, f.got.ID), fault.Unavailable)
	got, _ := f.record(t, tenant.RecordsOf{})
	if got.State != tenant.Purging || got.Usage != (tenant.Usage{}) || got.Placement != first || got.Target != next {
		t.Errorf("with the index unavailable, the record is %+v, want it purging, empty, and with its locations", got)
	}
	index.err = nil
	if err := tenant.Purge(t.Context(), b.Records, index, f.got.ID); err != nil {
		t.Fatalf("Purge: %v", err)
	}
	if diff := cmp.Diff([]placement.Location{first, next}, index.locations); diff != "" {
		t.Errorf("partitions dropped (-want +got):\n%s", diff)
	}
	if got, found := f.record(t, tenant.RecordsOf{}); found {
		t.Errorf("after the purge, the record is still %+v", got)
	}
}

func revokeTenant(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	alice, bob, theirs := f.install(t, "alice", 1), f.install(t, "bob", 1), other.install(t, "alice", 1)
	n, err := b.Records.Revoke(t.Context(), f.got.ID)
	if err != nil || n != 2 {
		t.Errorf("Revoke = %d, %v, want 2 tokens", n, err)
	}
	f.wantRevoked(t, alice)
	f.wantRevoked(t, bob)
	other.wantValid(t, theirs)
	f.apply(t)
	if got := f.user(t, "alice").Token; got.Fingerprint != "" {
		t.Errorf("alice's token is %+v, want no fingerprint, so that the operator issues another", got)
	}
	if n, err := b.Records.Revoke(t.Context(), f.got.ID); err != nil || n != 0 {
		t.Errorf("the second Revoke = %d, %v, want 0", n, err)
	}
}

// dropRecorder records the locations that are dropped.
type dropRecorder struct {
	locations []placement.Location
	err       error
}

// Drop records the location.
func (d *dropRecorder) Drop(_ context.Context, p placement.Location) error {
	if d.err == nil {
		d.locations = append(d.locations, p)
	}
	return d.err
}
