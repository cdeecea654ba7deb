package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// Stats reports every tenant's usage and quotas, highest relative usage first,
// and unfinished jobs.
func TestStats(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store := postgrestest.Open(t, d)
	owner := ownerPool(t, d)
	specs := []tenant.Spec{tenanttest.NewSpec(), tenanttest.NewSpec(), tenanttest.NewSpec()}
	specs[2].Quota.Users = 2 // both exist
	for i := range specs {
		if _, err := store.Apply(t.Context(), specs[i]); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, owner, "update usage set memories = 10, blocked = 2 where tenant_id = $1", string(specs[0].ID))
	exec(t, owner, "update usage set conversations = 9, blocked = 3, storage = 7 where tenant_id = $1", string(specs[1].ID))
	exec(t, owner, "delete from river_job")
	for _, job := range []string{"'available', null", "'running', now()", "'completed', now()"} {
		exec(t, owner, `insert into river_job (kind, queue, args, max_attempts, created_at, state, finalized_at)
			select 'index.sync', 'default', '{}', 5, now() - interval '1 minute', s.state::river_job_state,
				case when s.state = 'completed' then now() end
			from (select `+job+`) as s (state, at)`)
	}

	stats, err := store.Stats(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Blocked != 5 {
		t.Fatalf("stats.Blocked = %d, want 5", stats.Blocked)
	}
	if len(stats.Tenants) != 3 {
		t.Fatalf("len(stats.Tenants) = %d, want 3", len(stats.Tenants))
	}
	want := []postgres.TenantStats{{
		ID: specs[2].ID, Namespace: specs[2].Namespace, Name: "acme",
		Usage: tenant.Usage{Users: 2},
		Hard:  tenant.Quota{Memories: 100, Conversations: 10, Storage: 1 << 20, Users: 2},
	}, {
		ID: specs[1].ID, Namespace: specs[1].Namespace, Name: "acme",
		Usage: tenant.Usage{Conversations: 9, Blocked: 3, Storage: 7, Users: 2},
		Hard:  tenant.Quota{Memories: 100, Conversations: 10, Storage: 1 << 20, Users: 5},
	}}
	if diff := cmp.Diff(want, stats.Tenants[:2]); diff != "" {
		t.Errorf("tenants with the highest usage (-want +got):\n%s", diff)
	}
	if len(stats.Jobs) != 1 || stats.Jobs[0].Queued != 1 || stats.Jobs[0].Running != 1 || stats.IndexLag.Seconds() < 60 || stats.IndexLag != stats.Jobs[0].Oldest {
		t.Errorf("jobs %+v, lag %s; want one queued and one running, a minute old", stats.Jobs, stats.IndexLag)
	}
	// Only tenants with a placement are swept. One was swept an hour ago.
	if stats.SweepAge != 0 {
		t.Errorf("the oldest sweep is %s old without a placement, want 0", stats.SweepAge)
	}
	for _, s := range specs[:2] {
		if _, err := store.EnsurePlacement(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if err := store.BeginSweep(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if err := store.CompleteSweep(t.Context(), indexing.SweepState{Tenant: s.ID}); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, owner, "update index_sweeps set swept_at = now() - interval '1 hour' where tenant_id = $1", string(specs[1].ID))
	if stats, err = store.Stats(t.Context(), 0); err != nil || stats.SweepAge < time.Hour || stats.SweepAge > 2*time.Hour {
		t.Errorf("the oldest sweep is %s old (%v), want an hour", stats.SweepAge, err)
	}
	// The records of the changes above are not sealed yet. One is an hour old.
	exec(t, owner, "update audit_pending set at = now() - interval '1 hour' where id = (select min(id) from audit_pending)")
	var pending int64
	if err := owner.QueryRow(t.Context(), "select count(*) from audit_pending").Scan(&pending); err != nil {
		t.Fatal(err)
	}
	if stats, err = store.Stats(t.Context(), 0); err != nil || stats.Unsealed.Records != pending || pending == 0 {
		t.Errorf("%d unsealed records (%v), want %d", stats.Unsealed.Records, err, pending)
	}
	if age := stats.Unsealed.Oldest; age < time.Hour || age > 2*time.Hour {
		t.Errorf("the oldest unsealed record is %s old, want an hour", age)
	}
	for _, s := range specs {
		if err := store.SealRecords(t.Context(), s.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	if stats, err = store.Stats(t.Context(), 0); err != nil || stats.Unsealed != (postgres.AuditStats{}) {
		t.Errorf("after sealing: %+v, %v, want none", stats.Unsealed, err)
	}
	for most, want := range map[int]int{0: 0, 1: 1} {
		if stats, err = store.Stats(t.Context(), most); err != nil || len(stats.Tenants) != want {
			t.Errorf("limit %d: %d tenants, %v", most, len(stats.Tenants), err)
		}
	}
	if pool := store.Pool(); pool.Max < 1 {
		t.Errorf("pool %+v, want a maximum size", pool)
	}
}
