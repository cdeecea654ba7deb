package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// rowsOfUser counts a user's rows in every table that has some.
func (b *testBundle) rowsOfUser(t *testing.T, scope tenant.Scope) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, table := range []string{"tokens", "buckets", "memories", "merged_memories", "memory_versions", "conversations", "messages", "units"} {
		var n int
		err := b.owner.QueryRow(t.Context(), "select count(*) from "+table+" where tenant_id = $1 and user_id = $2", scope.Tenant, scope.User).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			out[table] = n
		}
	}
	return out
}

func TestRemovedUsersDataGoesByPolicy(t *testing.T) {
	t.Parallel()
	for _, policy := range []tenant.DeletionPolicy{tenant.Retain, tenant.Delete} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(q *tenant.Quota) { q.Conversations = 250 })
			alice, bob := b.users[0], b.users[1]
			hers := b.remember(t, alice, "one with units", nil)
			b.remember(t, bob, "one with units", nil)
			for _, scope := range []tenant.Scope{alice, bob} {
				fill(t, b.owner, scope, 3, 105)
			}
			b.insertBlocked(t, alice, 205) // blocked ones, and more than a batch
			b.insertBlocked(t, bob, 3)
			before, bobs := b.rowsOfUser(t, alice), b.rowsOfUser(t, bob)
			removed := b.unitsOf(t, hers)
			b.jobUnits(t)

			spec := b.specs[0]
			spec.DeletionPolicy, spec.Users = policy, []tenant.UserSpec{{Name: "bob"}}
			if _, err := b.Apply(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			workJobs(t, b.DB, b.owner)
			workJobs(t, b.DB, b.owner) // the quota that was released

			want := before
			usage := tenant.Usage{Memories: 8, Conversations: 210, Blocked: 208, Users: 1}
			if policy == tenant.Delete {
				want = map[string]int{}
				usage = tenant.Usage{Memories: 4, Conversations: 108, Users: 1}
				jobs := b.jobUnits(t)
				for _, unit := range removed {
					if !jobs[unit] {
						t.Errorf("no job takes unit %d out of the index", unit)
					}
				}
			}
			if diff := cmp.Diff(want, b.rowsOfUser(t, alice)); diff != "" {
				t.Errorf("rows of the removed user (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(bobs, b.rowsOfUser(t, bob)); diff != "" {
				t.Errorf("rows of the other user (-want +got):\n%s", diff)
			}
			got, err := b.Usage(t.Context(), alice.Tenant)
			if got.Storage = 0; err != nil || got != usage {
				t.Errorf("usage is %+v (%v), want %+v", got, err, usage)
			}
			if err := b.PurgeUser(t.Context(), bob); err != nil { // whatever a job says
				t.Fatal(err)
			}
			if diff := cmp.Diff(bobs, b.rowsOfUser(t, bob)); diff != "" {
				t.Errorf("rows of a listed user after PurgeUser (-want +got):\n%s", diff)
			}
		})
	}
}
