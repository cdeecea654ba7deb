package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// startEmbeddingTarget starts a migration to another model, and returns the placement of a tenant in it.
func (b *testBundle) startEmbeddingTarget(t *testing.T, id tenant.ID) placement.Next {
	t.Helper()
	generation, err := b.EnsureGeneration(t.Context(), placement.Generation{Model: "next", Dimensions: 8}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.StartEmbeddingMigration(t.Context(), generation, reembed.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := b.LatestEmbeddingMigration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	target, err := b.EnsureEmbeddingTarget(t.Context(), m, id)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// copyToEmbeddingTarget starts a migration to another model whose partition for the tenant has the id 5 and is copied up to unit 77.
func (b *testBundle) copyToEmbeddingTarget(t *testing.T, id tenant.ID, ready bool) placement.Next {
	t.Helper()
	target := b.startEmbeddingTarget(t, id)
	b.setPartitionID(t, target.Placement.Location, 5)
	target.Placement.PartitionID = 5
	if valid, err := b.AdvanceEmbeddingTarget(t.Context(), id, target.Placement, 77, ready); err != nil || !valid {
		t.Fatalf("AdvanceEmbeddingTarget = %t, %v", valid, err)
	}
	return target
}

// The current partition is lost before a tenant migrates to another model, so no unit is confirmed. The sweep would find all units in the new
// partition and confirm none, and searches would read them from PostgreSQL.
func TestCutOverDuringRebuild(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *testBundle, placement.Location){
		"Rebuilding": func(t *testing.T, b *testBundle, p placement.Location) { b.setPartitionID(t, p, 2) },
		"Lost":       func(t *testing.T, b *testBundle, p placement.Location) { b.setPartitionID(t, p, 0) },
		"LossUnfinished": func(t *testing.T, b *testBundle, p placement.Location) {
			b.insertUnits(t, b.users[0], b.remember(t, b.users[0], "Many units.", nil), 600, "now()")
			exec(t, b.owner, "create function interrupt() returns trigger language plpgsql as $$ begin raise exception 'interrupted'; end $$")
			exec(t, b.owner, fmt.Sprintf("create trigger interrupt before update on units for each row when (new.id = %d) execute function interrupt()",
				b.number(t, "select max(id) from units where tenant_id = $1", b.users[0].Tenant)))
			if err := b.SetPartitionID(t.Context(), b.users[0].Tenant, p, 0); err == nil {
				t.Fatal("SetPartitionID was not interrupted")
			}
			exec(t, b.owner, "drop trigger interrupt on units")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			id, p := assignPlacement(t, b)
			target := b.copyToEmbeddingTarget(t, id, true)
			lose(t, b, p)
			if n := b.number(t, "select count(*) from units where tenant_id = $1 and indexed_at is null", id); n == 0 {
				t.Fatal("every unit counts as indexed after the loss")
			}
			if err := b.CutOver(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			state := b.getPlacement(t, id)
			if diff := cmp.Diff(target.Placement, state.Current); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
			if !state.Rebuilding() || !state.Writable() {
				t.Errorf("placement is %+v, want a rebuild that confirms the units", state)
			}
			if diff := cmp.Diff(map[placement.Location]int{p: 2}, b.drops(t)); diff != "" {
				t.Errorf("locations to drop (-want +got):\n%s", diff)
			}
			if n := b.number(t, "select count(*) from river_job where kind = 'placement.migrate' and args ->> 'run' = $1", fmt.Sprint(state.Migration.Run)); n != 1 {
				t.Errorf("%d jobs rebuild the placement, want 1", n)
			}
		})
	}
}

// The new partition is lost after its copy was complete. The tenant stays in the old one until it is complete again.
func TestCutOverAwaitsLostTarget(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := assignPlacement(t, b)
	target := b.copyToEmbeddingTarget(t, id, true)
	b.setPartitionID(t, target.Placement.Location, 6)
	if err := b.CutOver(t.Context(), id); !errors.Is(err, reembed.ErrIncomplete) {
		t.Errorf("CutOver = %v, want %v", err, reembed.ErrIncomplete)
	}
	if state := b.getPlacement(t, id); state.Current.Location != p || state.Next.Placement.Location != target.Placement.Location {
		t.Errorf("placement is %+v, want the old one and the target", state)
	}
	target.Placement.PartitionID = 6
	if valid, err := b.AdvanceEmbeddingTarget(t.Context(), id, target.Placement, 77, true); err != nil || !valid {
		t.Fatalf("AdvanceEmbeddingTarget = %t, %v", valid, err)
	}
	if err := b.CutOver(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if state := b.getPlacement(t, id); state.Current.Location != target.Placement.Location || state.Rebuilding() {
		t.Errorf("placement is %+v, want the target without a rebuild", state)
	}
}

// A tenant that is being purged does not complete its target, and its locations are dropped nevertheless.
func TestCutOverOfPurgedTenant(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := assignPlacement(t, b)
	target := b.copyToEmbeddingTarget(t, id, true)
	b.setPartitionID(t, target.Placement.Location, 6)
	exec(t, b.owner, fmt.Sprintf("update tenants set state = 'purging' where id = '%s'", id))
	if err := b.CutOver(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[placement.Location]int{p: 2}, b.drops(t)); diff != "" {
		t.Errorf("locations to drop (-want +got):\n%s", diff)
	}
}
