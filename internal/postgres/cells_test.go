package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// inCell assigns a placement to the first tenant and puts it in a cell, which it requests.
func (b *testBundle) inCell(t *testing.T, cell string) (tenant.ID, placement.Location) {
	t.Helper()
	id, p := assignPlacement(t, b)
	exec(t, b.owner, "update placements set cell = $2 where tenant_id = $1", id, cell)
	if err := b.ApplyCell(t.Context(), placement.Cell{Name: cell}); err != nil {
		t.Fatal(err)
	}
	b.specs[0].Placement = placement.Preference{Cell: cell}
	p.Cell = cell
	return id, p
}

// A migration stays in the cell of the tenant, and the job that drops the previous location
// names it.
func TestMigrationStaysInTheCell(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := b.inCell(t, "eu")
	b.wantPlacement(t, settled(p, 1))
	next := b.setIsolation(t, tenant.Shared).Migration.Target.Location
	if next.Cell != "eu" || next == p {
		t.Fatalf("the target is %+v, want another location in cell eu", next)
	}
	elsewhere := next
	elsewhere.Cell = ""
	b.setPartitionID(t, elsewhere, 4)
	if s := b.placement(t); s.Writable() {
		t.Error("the id of a partition in another cell was recorded")
	}
	b.setPartitionID(t, next, 5)
	if err := b.CompleteMigration(t.Context(), id, b.placement(t).Migration.Run); err != nil {
		t.Fatal(err)
	}
	b.wantPlacement(t, settled(next, 5))
	if diff := cmp.Diff(map[placement.Location]int{p: 2}, b.drops(t)); diff != "" {
		t.Errorf("locations to drop (-want +got):\n%s", diff)
	}
	records, err := b.Records(t.Context(), tenant.RecordsOf{Namespace: b.specs[0].Namespace})
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 1 || records[0].Placement != next {
		t.Errorf("records = %+v, want one at %+v", records, next)
	}
}

// Cells assign the ids of their partitions independently of one another.
func TestPartitionIDsBelongToACell(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.specs[0].Isolation = tenant.Shared
	if _, err := b.Apply(t.Context(), b.specs[0]); err != nil {
		t.Fatal(err)
	}
	_, p := b.inCell(t, "eu")
	elsewhere := p
	elsewhere.Cell = "us"
	for at, want := range map[placement.Location]int64{p: 1, elsewhere: 0} {
		if got, err := b.LatestPartitionID(t.Context(), at); err != nil || got != want {
			t.Errorf("LatestPartitionID in cell %s = %d, %v, want %d", at.Cell, got, err, want)
		}
	}
	if err := b.MarkLost(t.Context(), placement.Placement{Location: elsewhere, PartitionID: 1}); err != nil {
		t.Fatal(err)
	}
	b.wantPlacement(t, settled(p, 1))
	if err := b.MarkLost(t.Context(), placement.Placement{Location: p, PartitionID: 1}); err != nil {
		t.Fatal(err)
	}
	if got := b.placement(t).Current.PartitionID; got != 0 {
		t.Errorf("the lost partition has the id %d, want 0", got)
	}
}

func TestIdentityContainsTheCell(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := b.inCell(t, "eu")
	hash := tenant.HashSecret("a token")
	if err := b.Install(t.Context(), id, "alice", tenant.Credential{TokenHash: hash, Generation: 1, Issuer: tenant.IssuerOperator}); err != nil {
		t.Fatal(err)
	}
	who, err := b.Identify(t.Context(), hash)
	if err != nil || who.Placement != p {
		t.Errorf("Identify = %+v, %v, want the placement %+v", who.Placement, err, p)
	}
}

// The capacity of a collection is counted in each cell.
func TestCollectionsAreFilledInEachCell(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, p := assignPlacement(t, b)
	exec(t, b.owner, `with more as (insert into tenants (id, resource, cluster, namespace, name)
			select gen_random_uuid(), gen_random_uuid(), 'c', 'ns-' || n, 'n' from generate_series(1, 256) n returning id)
		insert into placements (tenant_id, generation, cell, collection, partition)
		select m.id, p.generation, 'eu', p.collection, 't' || m.id from more m, placements p where p.tenant_id = $1`, id)
	other, err := b.EnsurePlacement(t.Context(), b.users[2].Tenant)
	if err != nil || other.Collection != p.Collection {
		t.Errorf("EnsurePlacement = %+v, %v, want collection %s: that of cell eu is full", other, err, p.Collection)
	}
	exec(t, b.owner, "update placements set cell = 'eu' where tenant_id = $1", id)
	if next := b.setIsolation(t, tenant.Shared); !strings.HasSuffix(next.Migration.Target.Collection, "_shared_1") {
		t.Errorf("the target is %+v, want the first shared collection", next.Migration.Target)
	}
}

// The placement in the next generation is in the cell of the tenant.
func TestEmbeddingTargetIsInTheCell(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, _ := b.inCell(t, "eu")
	next := b.startEmbeddingTarget(t, id)
	if next.Placement.Cell != "eu" {
		t.Fatalf("EnsureEmbeddingTarget = %+v, want cell eu", next)
	}
	b.setPartitionID(t, next.Placement.Location, 9)
	if got := b.placement(t).Next.Placement.PartitionID; got != 9 {
		t.Errorf("the partition id is %d, want 9", got)
	}
}

// A job of a release without cells drops a location in the default cell.
func TestDropJobWithoutACell(t *testing.T) {
	t.Parallel()
	var args indexing.DropArgs
	if err := json.Unmarshal([]byte(`{"collection":"c","partition":"p","shared":true}`), &args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(placement.Location{Collection: "c", Partition: "p", Shared: true}, args.Location()); diff != "" {
		t.Errorf("location (-want +got):\n%s", diff)
	}
}

func (b *testBundle) wantUsage(t *testing.T, cell string, want placement.CellUsage, leaving int64) {
	t.Helper()
	usage, left, err := b.CellUsage(t.Context(), cell)
	if err != nil || usage != want || left != leaving {
		t.Errorf("CellUsage = %+v, %d, %v, want %+v and %d locations to be dropped", usage, left, err, want, leaving)
	}
}

// Units are counted once an hour, those of other tenants not at all.
func TestUnitsOfACellAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.inCell(t, "eu")
	b.wantUsage(t, "eu", placement.CellUsage{Tenants: 1, Units: 2}, 0)
	b.remember(t, b.users[0], "The attic was insulated.", nil)
	b.wantUsage(t, "eu", placement.CellUsage{Tenants: 1, Units: 2}, 0)
	exec(t, b.owner, "update tenant_units set counted_at = now() - interval '2 hours'")
	b.wantUsage(t, "eu", placement.CellUsage{Tenants: 1, Units: 3}, 0)
}

// A cell is not deleted before the locations that tenants left are dropped.
func TestCellWithLocationsToDropIsNotDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, _ := b.inCell(t, "eu")
	b.specs[0].Placement = placement.Preference{}
	next := b.setIsolation(t, tenant.Partition).Migration.Target.Location
	b.setPartitionID(t, next, 5)
	if err := b.CompleteMigration(t.Context(), id, b.placement(t).Migration.Run); err != nil {
		t.Fatal(err)
	}
	b.wantUsage(t, "eu", placement.CellUsage{}, 1)
	wantKind(t, "DeleteCell", b.DeleteCell(t.Context(), "eu"), fault.Conflict)
	exec(t, b.owner, "update river_job set state = 'completed', finalized_at = now() where kind = 'placement.drop'")
	if err := b.DeleteCell(t.Context(), "eu"); err != nil {
		t.Errorf("DeleteCell: %v", err)
	}
	if n := b.number(t, "select count(*) from cells"); n != 0 {
		t.Errorf("%d cells remain, want none", n)
	}
}
