package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
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
			b := setup(t, func(q *tenant.Quota) { q.Conversations = 210 })
			alice, bob := b.users[0], b.users[1]
			hers := b.remember(t, alice, "one with units", nil)
			b.remember(t, bob, "one with units", nil)
			for _, scope := range []tenant.Scope{alice, bob} {
				postgrestest.Fill(t, b.owner, scope, 3, 105)
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

// The messages of pending extractions are deleted together with the access of a user, before the job deletes the other rows.
func TestRemovalDeletesExtractions(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*testing.T, *testBundle) (removed, other tenant.Scope){
		"EraseApplicationUser": func(t *testing.T, b *testBundle) (removed, other tenant.Scope) {
			t.Helper()
			who := b.application(t, 0, webApplication())
			removed, other = b.actFor(t, who, "u1", true), b.actFor(t, who, "u2", true)
			b.extract(t, removed, other)
			if err := b.EraseApplicationUser(t.Context(), who, "u1"); err != nil {
				t.Fatal(err)
			}
			return removed, other
		},
		"RemoveExternalUser": func(t *testing.T, b *testBundle) (removed, other tenant.Scope) {
			t.Helper()
			spec := b.specs[0]
			spec.DeletionPolicy, spec.OIDC = tenant.Delete, tenant.OIDC{Issuer: "https://id.test", Domains: []string{"acme.test"}}
			if _, err := b.Apply(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			removed = b.signInExternal(t, "ann@acme.test")
			b.extract(t, removed, b.users[0])
			if n, err := b.RemoveExternalUser(t.Context(), spec.ID, "ann@acme.test"); err != nil || n != 1 {
				t.Fatalf("RemoveExternalUser = %d, %v", n, err)
			}
			return removed, b.users[0]
		},
		"Apply": func(t *testing.T, b *testBundle) (removed, other tenant.Scope) {
			t.Helper()
			b.extract(t, b.users[0], b.users[1])
			spec := b.specs[0]
			spec.DeletionPolicy, spec.Users = tenant.Delete, []tenant.UserSpec{{Name: "bob"}}
			if _, err := b.Apply(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			return b.users[0], b.users[1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			removed, other := remove(t, b)
			for scope, want := range map[tenant.Scope]int{removed: 0, other: 1} {
				if n := b.count(t, "select count(*) from extractions where tenant_id = $1 and user_id = $2", scope.Tenant, scope.User); n != want {
					t.Errorf("user %d has %d extractions, want %d", scope.User, n, want)
				}
			}
		})
	}
}

// extract creates an extraction of each user.
func (b *testBundle) extract(t *testing.T, scopes ...tenant.Scope) {
	t.Helper()
	for _, scope := range scopes {
		if _, err := b.CreateExtraction(t.Context(), scope, extract.Input{Messages: []extract.Message{{Role: "user", Text: "secret"}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// signInExternal signs in a user of an identity provider.
func (b *testBundle) signInExternal(t *testing.T, email string) tenant.Scope {
	t.Helper()
	session := tenant.HashSecret(email)
	in := tenant.ExternalSignIn{ExternalUser: tenant.ExternalUser{Issuer: "https://id.test", Subject: email, Email: email}, Address: "192.0.2.1", Session: session, Lifetime: time.Hour}
	if err := b.SignInExternal(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	who, err := b.Session(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return who.Scope
}
