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

// record returns what is stored of the fixture's tenant; false when nothing is.
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
		t.Fatalf("Place: %v", err)
	}
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	want := tenant.Record{
		ID: f.got.ID, Resource: f.spec.ID, Cluster: f.spec.Cluster, Namespace: f.spec.Namespace, Name: "acme",
		State: tenant.Active, Policy: tenant.Retain, Placement: first,
		Usage: tenant.Usage{Memories: 3, Conversations: 1, Users: 2},
	}
	ignored := cmpopts.IgnoreFields(tenant.Usage{}, "Storage")
	got, _ := f.record(t, tenant.RecordsOf{Cluster: f.spec.Cluster})
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("its record (-want +got):\n%s", diff)
	}
	if _, there := f.record(t, tenant.RecordsOf{}); !there {
		t.Error("the record is not among those of all clusters")
	}
	if _, there := f.record(t, tenant.RecordsOf{Cluster: "another"}); there {
		t.Error("the record is among those of another cluster")
	}
	if _, there := f.record(t, tenant.RecordsOf{Namespace: f.spec.Namespace, Name: f.spec.Name}); !there {
		t.Error("the record is not among those of its name")
	}
	if _, there := f.record(t, tenant.RecordsOf{Namespace: f.spec.Namespace, Name: "another"}); there {
		t.Error("the record is among those of another name")
	}
	f.retire(t, tenant.Delete)
	got, _ = f.record(t, tenant.RecordsOf{Cluster: f.spec.Cluster})
	if age := time.Since(got.RetiredAt); age < -time.Minute || age > time.Hour {
		t.Errorf("it was retired at %v, want now", got.RetiredAt)
	}
	if got.State != tenant.Purging || got.Policy != tenant.Delete {
		t.Errorf("its record is %+v, want it purging by Delete", got)
	}
	b.Work(t)
	if got, there := f.record(t, tenant.RecordsOf{}); there {
		t.Errorf("after the purge there is %+v", got)
	}
}

func abandoned(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
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
		t.Errorf("its record is %+v, want it retained, with the policy it had", got)
	}
	f.apply(t) // the Tenant was there after all, or came back with a backup
	if got, _ := f.record(t, tenant.RecordsOf{}); got.State != tenant.Active || !got.RetiredAt.IsZero() {
		t.Errorf("its record is %+v, want it active again", got)
	}
	f.wantRevoked(t, hash)
	f.wantValid(t, f.install(t, "alice", 2))
}

func discarded(c check) {
	t, b := c.t, c.Backend
	f := applied(t, b)
	first, err := b.Store.EnsurePlacement(t.Context(), f.got.ID)
	if err != nil {
		t.Fatalf("Place: %v", err)
	}
	b.Fill(t, f.scope(t, "alice"), 2, 1)
	f.spec.Isolation = tenant.Shared
	f.apply(t)
	next := f.move(t).Migration.Target.Location // it goes in the middle of a move
	partitions := &dropped{}
	retention := tenant.Retention{Records: b.Records, Store: b.Store, Partitions: partitions}
	record, _ := f.record(t, tenant.RecordsOf{})
	if err := retention.Purge(t.Context(), record); err != nil || len(partitions.places) > 0 {
		t.Fatalf("Discard of an active tenant = %v and dropped %v, want nothing done", err, partitions.places)
	}
	if err := b.Records.MarkOrphaned(t.Context(), f.got.ID); err != nil {
		t.Fatalf("MarkOrphaned: %v", err)
	}
	record, _ = f.record(t, tenant.RecordsOf{})
	partitions.err = fault.New(fault.Unavailable, "Milvus is away")
	wantKind(t, retention.Purge(t.Context(), record), fault.Unavailable)
	if got, _ := f.record(t, tenant.RecordsOf{}); got.State != tenant.Retained {
		t.Errorf("with the index away its record is %+v, want it retained still", got)
	}
	partitions.err = nil
	if err := retention.Purge(t.Context(), record); err != nil {
		t.Fatalf("Purge: %v", err)
	}
	if diff := cmp.Diff([]placement.Location{first, next}, partitions.places); diff != "" {
		t.Errorf("partitions dropped (-want +got):\n%s", diff)
	}
	if err := b.Records.Purge(t.Context(), f.got.ID); err != nil {
		t.Fatalf("Purge: %v", err)
	}
	if got, there := f.record(t, tenant.RecordsOf{}); there {
		t.Errorf("after the purge there is %+v", got)
	}
}

func claimFromAfar(c check) {
	t, b := c.t, c.Backend
	f := applied(t, b)
	hash := f.install(t, "alice", 1)
	b.Fill(t, f.scope(t, "alice"), 3, 1)
	first, alice, there := f.got.ID, f.user(t, "alice").ID, f.spec.Cluster

	here := f.spec
	here.ID, here.Cluster, here.Claim = tenant.ID(uuid.NewString()), "cluster-2", first
	_, err := b.Store.Apply(t.Context(), here)
	wantKind(t, err, fault.Conflict) // the other cluster has it still
	if err := b.Records.MarkOrphaned(t.Context(), first); err != nil {
		t.Fatalf("MarkOrphaned: %v", err)
	}
	stranger := here
	stranger.ID, stranger.Namespace = tenant.ID(uuid.NewString()), "elsewhere"
	_, err = b.Store.Apply(t.Context(), stranger)
	wantKind(t, err, fault.Conflict)

	f.spec = here
	f.apply(t)
	f.apply(t)
	if f.got.ID != first || f.user(t, "alice").ID != alice {
		t.Errorf("the claimed tenant is %s with alice %d, want %s with %d", f.got.ID, f.user(t, "alice").ID, first, alice)
	}
	if got, _ := f.record(t, tenant.RecordsOf{Cluster: "cluster-2"}); got.State != tenant.Active || got.Resource != here.ID || got.Usage.Memories != 3 {
		t.Errorf("its record is %+v, want it active in the new cluster", got)
	}
	if got, still := f.record(t, tenant.RecordsOf{Cluster: there}); still {
		t.Errorf("the old cluster still has %+v", got)
	}
	f.wantRevoked(t, hash)
}

func revokeTenant(c check) {
	t, b := c.t, c.Backend
	f, other := applied(t, b), applied(t, b)
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
		t.Errorf("her token is %+v, want it without a fingerprint, so that another is issued", got)
	}
	if n, err := b.Records.Revoke(t.Context(), f.got.ID); err != nil || n != 0 {
		t.Errorf("a second Revoke = %d, %v, want none", n, err)
	}
}

// dropped is an index that notes which partitions it is to drop.
type dropped struct {
	placement.Partitions
	places []placement.Location
	err    error
}

// Drop notes the partition.
func (d *dropped) Drop(_ context.Context, p placement.Location) error {
	if d.err == nil {
		d.places = append(d.places, p)
	}
	return d.err
}
