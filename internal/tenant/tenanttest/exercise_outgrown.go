package tenanttest

import "github.com/mnemo-dev/mnemo/internal/placement"

// outgrows places a tenant in no index until it has outgrown exact scoring.
func outgrows(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	b.SetOutgrown(t, f.got.ID, false)
	first := f.ensurePlacement(t)
	if first.Indexed() || first.Partition == "" {
		t.Fatalf("EnsurePlacement = %+v, want a name in no index", first)
	}
	nowhere := placement.State{Current: placement.Placement{Location: first}}
	version := f.Version(t, f.got.ID)
	if got := f.reconcilePlacement(t); got != nowhere {
		t.Errorf("ReconcilePlacement = %+v, want %+v", got, nowhere)
	}
	if now := f.Version(t, f.got.ID); now != version {
		t.Errorf("ReconcilePlacement of a tenant that needs no index wrote: version %s became %s", version, now)
	}
	if theirs := other.ensurePlacement(t); !theirs.Indexed() {
		t.Errorf("EnsurePlacement of a tenant that has outgrown exact scoring = %+v, want a collection", theirs)
	}

	b.SetOutgrown(t, f.got.ID, true)
	f.wantPlacement(t, nowhere) // until ReconcilePlacement is called
	target := f.reconcilePlacement(t).Migration.Target
	if !target.Indexed() || target.Partition == first.Partition {
		t.Fatalf("ReconcilePlacement gives %+v as the target, want a partition", target)
	}
	target.PartitionID = 7
	f.setPartitionID(t, target.Location, target.PartitionID)
	b.Work(t)
	f.wantPlacement(t, placement.State{Current: target})

	b.SetOutgrown(t, f.got.ID, false) // an earlier version placed it, and recorded nothing
	if got := f.reconcilePlacement(t); got != (placement.State{Current: target}) {
		t.Errorf("ReconcilePlacement = %+v, want the tenant to stay at %+v", got, target)
	}
}
