package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// tables are those a tenant's rows are in.
var tables = []string{"quotas", "usage", "placements", "users", "tokens", "buckets", "memories", "memory_versions",
	"imports", "import_chunks", "import_ledger", "conversations", "messages", "units"}

// rows counts a tenant's rows in every table that has some.
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

func TestPurgeTakesOneTenantInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, scope := range b.users {
		fill(t, b.owner, scope, 230, 210) // more than a batch
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
	want := tenant.Remaining{Memories: 462, Conversations: 420, Partition: true}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what remains (-want +got):\n%s", diff)
	}
	if _, err := b.Apply(t.Context(), b.specs[0]); !fault.Is(err, fault.Conflict) {
		t.Errorf("a tenant that is being purged is applied again: %v", err)
	}
	// A tenant that nobody deleted is not purged, whatever a job says.
	for _, id := range []tenant.ID{gone, kept, gone} {
		if err := b.Purge(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := b.Retire(t.Context(), gone, tenant.Delete); err != nil || !left.Done() {
		t.Errorf("after the purge there is %+v, %v", left, err)
	}
	if diff := cmp.Diff(map[string]int{}, b.rows(t, gone)); diff != "" {
		t.Errorf("rows of the purged tenant (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, b.rows(t, kept)); diff != "" {
		t.Errorf("rows of the other tenant (-want +got):\n%s", diff)
	}
}

func TestPurgeLeavesWhatIsRetained(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.remember(t, b.users[0], "kept until somebody claims it", nil)
	if _, err := b.Retire(t.Context(), b.specs[0].ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	before := b.rows(t, b.specs[0].ID)
	if err := b.Purge(t.Context(), b.specs[0].ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.rows(t, b.specs[0].ID)); diff != "" {
		t.Errorf("rows of the retained tenant (-want +got):\n%s", diff)
	}
}

// upload begins to send a file, and sends a conversation online.
func (b *testBundle) upload(t *testing.T, scope tenant.Scope) {
	t.Helper()
	id, err := b.Imports().BeginUpload(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Imports().AppendChunk(t.Context(), scope, id, 0, []byte("half a file")); err != nil {
		t.Fatal(err)
	}
	// One that fails has a row in the ledger, and none elsewhere.
	if _, err := b.Conversations().RecordFailure(t.Context(), scope, chat.Upsert{ExternalID: "x", Platform: "custom"}, "too long"); err != nil {
		t.Fatal(err)
	}
}
