package postgres_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

func wantChanges(t *testing.T, r *postgres.ChangeReader, want tenant.Changes) {
	t.Helper()
	got, err := r.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got.Tenants)
	slices.Sort(want.Tenants)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// Each change is reported once, and only for the tenant that changed.
func TestChangesAreReported(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, owner := postgrestest.Open(t, d), ownerPool(t, d)
	a, b := tenanttest.NewSpec(), tenanttest.NewSpec()
	for _, s := range []tenant.Spec{a, b} {
		if _, err := store.Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	r := store.ChangeReader()
	wantChanges(t, r, tenant.Changes{Reset: true})
	wantChanges(t, r, tenant.Changes{})
	for _, test := range []struct {
		name   string
		change string // of the tenant $1
		want   tenant.Changes
	}{
		{"usage", "update usage set memories = memories + 1 where tenant_id = $1", tenant.Changes{Usage: []tenant.ID{a.ID}}},
		{"settings", "update tenants set suspended = true where id = $1", tenant.Changes{Tenants: []tenant.ID{a.ID}}},
		{"placement", "insert into placements values ($1, 'g', 'c', 'p')", tenant.Changes{Tenants: []tenant.ID{a.ID}}},
		{"lost partition", "update placements set partition_id = 0 where tenant_id = $1", tenant.Changes{Tenants: []tenant.ID{a.ID}}},
		{"a write of a user", "update users set memory_seq = memory_seq + 1 where tenant_id = $1", tenant.Changes{}},
		{"use of a token", "update tokens set last_used_at = now() where tenant_id = $1", tenant.Changes{}},
	} {
		exec(t, owner, test.change, string(a.ID))
		t.Log(test.name)
		wantChanges(t, r, test.want)
		wantChanges(t, r, tenant.Changes{})
	}
	exec(t, owner, "update usage set storage = 1")
	exec(t, owner, "update tenants set suspended = false where id = $1", string(b.ID))
	wantChanges(t, r, tenant.Changes{Tenants: []tenant.ID{b.ID}, Usage: []tenant.ID{a.ID}})
}

// A repeated pass of a deletion or purge is no change: the operator would start the next one
// immediately, even while Milvus is unavailable.
func TestRepeatedDeletionIsNoChange(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, s := postgrestest.Open(t, d), tenanttest.NewSpec()
	applied, err := store.Apply(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r := store.ChangeReader()
	wantChanges(t, r, tenant.Changes{Reset: true})
	for _, policy := range []tenant.DeletionPolicy{tenant.Retain, tenant.Delete} {
		for _, want := range [][]tenant.ID{{s.ID}, nil, nil} {
			remaining, err := store.Retire(t.Context(), s.ID, policy)
			if err != nil || remaining.Done() != (policy == tenant.Retain) {
				t.Fatalf("Retire with %s: %+v, %v", policy, remaining, err)
			}
			wantChanges(t, r, tenant.Changes{Tenants: want})
		}
	}
	for range 2 {
		if _, err := store.PurgeRows(t.Context(), applied.ID); err != nil {
			t.Fatal(err)
		}
		wantChanges(t, r, tenant.Changes{})
	}
}

// A transaction that commits after a newer one is not missed, and what committed
// while it was running is reported once.
func TestChangesOfOverlappingTransactions(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, owner := postgrestest.Open(t, d), ownerPool(t, d)
	a, b := tenanttest.NewSpec(), tenanttest.NewSpec()
	for _, s := range []tenant.Spec{a, b} {
		if _, err := store.Apply(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	r := store.ChangeReader()
	wantChanges(t, r, tenant.Changes{Reset: true})
	late, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), "update usage set memories = 1 where tenant_id = $1", string(a.ID)); err != nil {
		t.Fatal(err)
	}
	exec(t, owner, "update usage set memories = 2 where tenant_id = $1", string(b.ID))
	wantChanges(t, r, tenant.Changes{Usage: []tenant.ID{b.ID}})
	wantChanges(t, r, tenant.Changes{})
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, r, tenant.Changes{Usage: []tenant.ID{a.ID}})
	wantChanges(t, r, tenant.Changes{})
}
