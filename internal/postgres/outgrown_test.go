package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// TestOutgrow: a tenant outgrows exact scoring when one of its users has more than ExactUnits live
// units of a kind, whichever unit of theirs a job confirms.
func TestOutgrow(t *testing.T) {
	t.Parallel()
	b := setupIn(t, postgrestest.CreateOnDemand(t), nil)
	alice, bob, other := b.users[0], b.users[1], b.users[2]
	var first []string
	for _, u := range []tenant.Scope{alice, bob, other} {
		if _, err := b.EnsurePlacement(t.Context(), u.Tenant); err != nil {
			t.Fatal(err)
		}
		first = append(first, b.remember(t, u, "The boiler was serviced.", nil))
	}
	b.insertUnits(t, alice, first[0], placement.ExactUnits-1, "null")
	b.insertUnits(t, bob, first[1], placement.ExactUnits-1, "null")
	b.insertUnits(t, other, first[2], placement.ExactUnits, "null")
	confirm := func(id tenant.ID, n int) {
		t.Helper()
		all := b.liveUnits(t, id, 3*placement.ExactUnits)
		if err := b.Confirm(t.Context(), id, b.usersOf(id), all[len(all)-n:]); err != nil {
			t.Fatal(err)
		}
	}
	confirm(alice.Tenant, 2*placement.ExactUnits)
	b.wantOutgrown(t, alice.Tenant, false) // two users with as many as are scored exactly
	confirm(other.Tenant, 1)
	b.wantOutgrown(t, other.Tenant, true)
	b.wantOutgrown(t, alice.Tenant, false)

	b.insertUnits(t, alice, first[0], 1, "null")
	exec(t, b.owner, "update units set active = false where id = (select max(id) from units where user_id = $1)", alice.User)
	confirm(alice.Tenant, 2*placement.ExactUnits)
	b.wantOutgrown(t, alice.Tenant, false) // inactive units are not scored
	exec(t, b.owner, "update units set active = true")
	b.wantOutgrown(t, alice.Tenant, false) // no job has confirmed it
	confirm(alice.Tenant, 1)
	b.wantOutgrown(t, alice.Tenant, true)

	exec(t, b.owner, "delete from units where user_id = $1", alice.User)
	confirm(alice.Tenant, 1)
	b.wantOutgrown(t, alice.Tenant, true)
}

// TestOutgrowWithVectors: a tenant in no index outgrows exact scoring when the vectors of its units are saved, because
// that confirms the units.
func TestOutgrowWithVectors(t *testing.T) {
	t.Parallel()
	b := setupIn(t, postgrestest.CreateOnDemand(t), nil)
	alice := b.users[0]
	if _, err := b.EnsurePlacement(t.Context(), alice.Tenant); err != nil {
		t.Fatal(err)
	}
	first := b.remember(t, alice, "The boiler was serviced.", nil)
	b.insertUnits(t, alice, first, placement.ExactUnits-1, "null")
	save := func() {
		t.Helper()
		missing := b.unitsOf(t, b.remember(t, alice, fmt.Sprint("Boiler ", b.count(t, "select count(*) from units")), nil))
		vectors := map[retrieve.UnitID][]float32{missing[0]: randomUnit(rand.New(rand.NewPCG(1, 2)))}
		if err := b.SaveVectors(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, b.getPlacement(t, alice.Tenant).Generation, withVectors(vectors), nil); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, b.owner, "delete from units where id = (select max(id) from units)")
	save()
	b.wantOutgrown(t, alice.Tenant, false)
	save()
	b.wantOutgrown(t, alice.Tenant, true)
}

// TestKindsAreOutgrownSeparately: a search scores the units of one kind.
func TestKindsAreOutgrownSeparately(t *testing.T) {
	t.Parallel()
	b := setupIn(t, postgrestest.CreateOnDemand(t), nil)
	alice := b.users[0]
	if _, err := b.EnsurePlacement(t.Context(), alice.Tenant); err != nil {
		t.Fatal(err)
	}
	b.insertUnits(t, alice, b.remember(t, alice, "The boiler was serviced.", nil), placement.ExactUnits-1, "null")
	b.upsert(t, alice, newConversation("c1", 0, 3))
	all := b.liveUnits(t, alice.Tenant, 2*placement.ExactUnits)
	if len(all) <= placement.ExactUnits {
		t.Fatalf("%d units, want more than %d", len(all), placement.ExactUnits)
	}
	if err := b.Confirm(t.Context(), alice.Tenant, []tenant.UserID{alice.User}, all); err != nil {
		t.Fatal(err)
	}
	b.wantOutgrown(t, alice.Tenant, false)
}

// TestMarkOutgrownReadsFewRows: each index job counts units, up to one more than are scored exactly, and none
// of a tenant that is marked.
func TestMarkOutgrownReadsFewRows(t *testing.T) {
	t.Parallel()
	d := postgrestest.CreateOnDemand(t)
	b := setupIn(t, d, nil)
	disableAutovacuum(t, b)
	for _, u := range b.users {
		exec(t, b.owner, `insert into units (tenant_id, user_id, kind, group_id, memory_id, span_start, span_end, tsv)
			select $1, $2, 1, 1, $3, 0, 1, '' from generate_series(1, $4::int) n`,
			u.Tenant, u.User, b.remember(t, u, "The boiler was serviced.", nil), 2*placement.ExactUnits)
	}
	alice := b.users[0]
	var ids string
	if err := b.owner.QueryRow(t.Context(), "select (array_agg(id order by id desc))[1:20]::text from units where user_id = $1", alice.User).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	conn := session(t, d, alice)
	exec(t, conn, "set plan_cache_mode = force_custom_plan") // as PlanEachExecution does
	exec(t, conn, "prepare marked (uuid, bigint[], bigint[], int) as "+namedQuery(t, "units.sql", "MarkOutgrown", "tenant_id", "user_ids", "ids", "at_least"))
	for _, tc := range []struct {
		marked bool
		most   int
	}{{false, placement.ExactUnits + 1}, {true, 1}} {
		for _, statistics := range []bool{false, true} {
			if statistics {
				exec(t, b.owner, "analyze units, tenants")
			}
			exec(t, b.owner, "update tenants set outgrown_at = case when $1 then now() end", tc.marked)
			plan := explain(t, conn, fmt.Sprintf("execute marked ('%s', '{%d}', '%s', %d)", alice.Tenant, alice.User, ids, placement.ExactUnits+1))
			if got := plan.partitions(); len(got) != 1 {
				t.Errorf("statistics %t, marked %t: partitions %q are planned, want one", statistics, tc.marked, got)
			}
			node, rows := plan.most()
			if rows > float64(tc.most) {
				t.Errorf("statistics %t, marked %t: %s of %s reads %v rows, want at most %d", statistics, tc.marked, node.Type, node.Relation, rows, tc.most)
			}
		}
	}
}

// wantOutgrown checks whether a tenant has outgrown exact scoring. It is in no index in either case:
// the operator begins its migration.
func (b *testBundle) wantOutgrown(t *testing.T, id tenant.ID, want bool) {
	t.Helper()
	if state := b.getPlacement(t, id); state.Outgrown != want || state.Current.Indexed() {
		t.Errorf("the tenant has outgrown exact scoring: %t, want %t; it is placed at %+v", state.Outgrown, want, state.Current)
	}
}
