package postgres_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// tables are the tables with a tenant's rows.
var tables = []string{"quotas", "usage", "placements", "users", "tokens", "user_tokens", "buckets", "memories", "merged_memories", "memory_versions",
	"imports", "import_chunks", "import_ledger", "conversations", "messages", "units"}

// rows returns the number of a tenant's rows per table, without empty tables.
func (b *testBundle) rows(t *testing.T, id tenant.ID) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, table := range tables {
		var n int
		if err := b.owner.QueryRow(t.Context(), "select count(*) from "+table+" where tenant_id = $1", id).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			out[table] = n
		}
	}
	return out
}

func TestPurgeDeletesOneTenantInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, scope := range b.users {
		postgrestest.Fill(t, b.owner, scope, 230, 210) // more than a batch
		b.remember(t, scope, "one with units", nil)
		b.upload(t, scope)
		if _, err := b.EnsurePlacement(t.Context(), scope.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	gone, kept := b.specs[0].ID, b.specs[1].ID
	before := b.rows(t, kept)
	left, err := b.Retire(t.Context(), gone, tenant.Delete)
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.GetPlacement(t.Context(), gone)
	if err != nil {
		t.Fatal(err)
	}
	want := tenant.Remaining{
		Memories: 462, Conversations: 420, Record: true, Locations: []placement.Location{state.Current.Location},
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("remaining data (-want +got):\n%s", diff)
	}
	if _, err := b.Apply(t.Context(), b.specs[0]); !fault.Is(err, fault.Conflict) {
		t.Errorf("Apply during a purge: %v, want Conflict", err)
	}
	// A tenant that was not deleted is not purged, even if a job requests it.
	for _, id := range []tenant.ID{gone, kept, gone} {
		if err := tenant.Purge(t.Context(), b.DB, droppedAtOnce{}, id); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := b.Retire(t.Context(), gone, tenant.Delete); err != nil || !left.Done() {
		t.Errorf("remaining after the purge: %+v, %v", left, err)
	}
	if diff := cmp.Diff(map[string]int{}, b.rows(t, gone)); diff != "" {
		t.Errorf("rows of the purged tenant (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, b.rows(t, kept)); diff != "" {
		t.Errorf("rows of the other tenant (-want +got):\n%s", diff)
	}
}

// The operator learns why a purge fails, from its second failure on, without the text of the error.
func TestRetireReportsFailures(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.remember(t, b.users[0], "a", nil)
	id := b.specs[0].ID
	for failures, want := range []tenant.PurgeFailure{{}, {}, {Attempts: 2, SQLState: "54001"}} {
		exec(t, b.owner, `update river_job set state = 'retryable', errors = array_fill(jsonb_build_object('error', 'purge tenant: ERROR: stack depth (SQLSTATE 54001)'), array[$1::int])
			where kind = 'tenant.purge' and $1 > 0`, failures)
		left, err := b.Retire(t.Context(), id, tenant.Delete)
		if err != nil {
			t.Fatal(err)
		}
		if (left.Failure.Job > 0) != (want.Attempts > 0) {
			t.Errorf("after %d failures the job is %d", failures, left.Failure.Job)
		}
		left.Failure.Job = 0
		if left.Failure != want {
			t.Errorf("after %d failures: %+v, want %+v", failures, left.Failure, want)
		}
	}
}

// A batch of a purge is found by an index, also if the tenant has most rows of the table: a sequential scan would read the space
// of all earlier batches again.
func TestPurgeReadsNoDeletedRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	scope := b.users[0]
	postgrestest.Fill(t, b.owner, scope, 2000, 2000)
	exec(t, b.owner, "update tenants set state = 'purging' where id = $1", scope.Tenant)
	conn := session(t, d, scope)
	for _, name := range []string{"PurgeConversations", "PurgeMemories"} {
		exec(t, conn, "prepare "+name+" (uuid, int) as "+namedQuery(t, "tenants.sql", name, "tenant_id", "batch"))
	}
	forEachPlan(t, b, conn, "memories, conversations", func(plans string) {
		for _, name := range []string{"PurgeConversations", "PurgeMemories"} {
			plan := explain(t, conn, fmt.Sprintf("execute %s ('%s', 200)", name, scope.Tenant))
			if node, found := plan.find("Seq Scan"); found {
				t.Errorf("%s, %s: %s of %s", name, plans, node.Type, node.Relation)
			}
		}
	})
}

func TestPurgeKeepsRetainedTenants(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.remember(t, b.users[0], "kept until claimed", nil)
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	before := b.rows(t, b.specs[0].ID)
	if err := tenant.Purge(t.Context(), b.DB, droppedAtOnce{}, b.specs[0].ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.rows(t, b.specs[0].ID)); diff != "" {
		t.Errorf("rows of the retained tenant (-want +got):\n%s", diff)
	}
}

// upload starts an upload and ingests a conversation.
func (b *testBundle) upload(t *testing.T, scope tenant.Scope) {
	t.Helper()
	id, err := b.Imports().BeginUpload(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Imports().AppendChunk(t.Context(), scope, id, importer.Chunk{Data: []byte("half a file")}, importer.DefaultUploadLimits); err != nil {
		t.Fatal(err)
	}
	// A failed ingest only has a row in the ledger.
	if _, err := b.Conversations().RecordFailure(t.Context(), scope, chat.Upsert{ExternalID: "x", Platform: "custom"}, "too long"); err != nil {
		t.Fatal(err)
	}
}
