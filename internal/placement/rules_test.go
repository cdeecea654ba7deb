package placement_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

func TestNames(t *testing.T) {
	t.Parallel()
	const id = "6f1e2d3c-0000-4000-8000-123456789abc"
	for want, got := range map[string]string{
		"mnemo_all_minilm_l6_v2_384":             placement.Generation{Model: "All-MiniLM/L6.v2", Dimensions: 384}.Prefix(),
		"t6f1e2d3c000040008000123456789abc":      placement.PartitionName(id, 0),
		"t6f1e2d3c000040008000123456789abc_1234": placement.PartitionName(id, 1234),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSelectCollection(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		shared bool
		load   map[string]int64
		want   string
	}{
		"the first tenant":                       {want: "g_1"},
		"the last partition of a collection":     {load: map[string]int64{"g_1": placement.MaxPartitions - 1}, want: "g_1"},
		"a full collection":                      {load: map[string]int64{"g_1": placement.MaxPartitions}, want: "g_2"},
		"a gap is filled first":                  {load: map[string]int64{"g_1": placement.MaxPartitions, "g_2": 3, "g_3": 9}, want: "g_2"},
		"the first shared tenant":                {shared: true, load: map[string]int64{"g_1": 5}, want: "g_shared_1"},
		"a shared collection holds more tenants": {shared: true, load: map[string]int64{"g_shared_1": placement.MaxPartitions}, want: "g_shared_1"},
		"a full shared collection":               {shared: true, load: map[string]int64{"g_shared_1": placement.MaxShared}, want: "g_shared_2"},
		"more than the maximum counts as full":   {load: map[string]int64{"g_1": placement.MaxPartitions + 1}, want: "g_2"},
	} {
		if got := placement.SelectCollection("g", tc.shared, tc.load); got != tc.want {
			t.Errorf("%s: SelectCollection = %s, want %s", reason, got, tc.want)
		}
	}
}

var (
	own     = placement.Placement{Location: placement.Location{Collection: "c", Partition: "p"}, PartitionID: 1}
	nowhere = placement.Placement{Location: placement.Location{Partition: "p"}}
	inEU    = placement.Placement{Location: placement.Location{Cell: "eu", Collection: "c", Partition: "p_3"}, PartitionID: 1}
	shared  = placement.Placement{Location: placement.Location{Collection: "s", Partition: "p_2", Shared: true}, PartitionID: 2}
)

func uncreated(p placement.Placement) placement.Placement {
	p.PartitionID = 0
	return p
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	type migration = placement.Migration
	for reason, tc := range map[string]struct {
		state placement.State
		kind  placement.Kind
		cell  string
		want  placement.Action
	}{
		"no placement yet":                            {kind: placement.Shared},
		"the requested kind":                          {state: placement.State{Current: own}, kind: placement.Own},
		"another kind":                                {state: placement.State{Current: own}, kind: placement.Shared, want: placement.Begin},
		"a migration in progress":                     {state: placement.State{Current: own, Migration: migration{Target: shared}}, kind: placement.Shared},
		"the isolation was changed back":              {state: placement.State{Current: own, Migration: migration{Target: shared}}, kind: placement.Own, want: placement.Cancel},
		"a stalled run":                               {state: placement.State{Current: own, Migration: migration{Target: shared, Stalled: true}}, kind: placement.Shared, want: placement.Restart},
		"a run cannot stall before its target exists": {state: placement.State{Current: own, Migration: migration{Target: uncreated(shared), Stalled: true}}, kind: placement.Shared},
		"a rebuild comes before a migration":          {state: placement.State{Current: own, Migration: migration{Target: own}}, kind: placement.Shared},
		"a stalled rebuild":                           {state: placement.State{Current: own, Migration: migration{Target: own, Stalled: true}}, kind: placement.Own, want: placement.Restart},

		"no index is requested":                  {state: placement.State{Current: own}, want: placement.Leave},
		"leaving does not wait for a migration":  {state: placement.State{Current: own, Migration: migration{Target: shared}}, want: placement.Leave},
		"nor for a rebuild":                      {state: placement.State{Current: own, Migration: migration{Target: own}}, want: placement.Leave},
		"already in no index":                    {state: placement.State{Current: nowhere}},
		"an index is requested":                  {state: placement.State{Current: nowhere}, kind: placement.Own, want: placement.Begin},
		"a migration into an index":              {state: placement.State{Current: nowhere, Migration: migration{Target: own}}, kind: placement.Own},
		"another cell":                           {state: placement.State{Current: own}, kind: placement.Own, cell: "eu", want: placement.Begin},
		"the default cell":                       {state: placement.State{Current: inEU}, kind: placement.Own, want: placement.Begin},
		"the requested cell":                     {state: placement.State{Current: inEU}, kind: placement.Own, cell: "eu"},
		"moving to the requested cell":           {state: placement.State{Current: own, Migration: migration{Target: inEU}}, kind: placement.Own, cell: "eu"},
		"the cell was changed back":              {state: placement.State{Current: own, Migration: migration{Target: inEU}}, kind: placement.Own, want: placement.Cancel},
		"moving to another cell":                 {state: placement.State{Current: own, Migration: migration{Target: inEU}}, kind: placement.Own, cell: "us", want: placement.Cancel},
		"a rebuild comes before a move":          {state: placement.State{Current: own, Migration: migration{Target: own}}, kind: placement.Own, cell: "eu"},
		"no index is in no cell":                 {state: placement.State{Current: nowhere}, cell: "eu"},
		"the index was disabled again meanwhile": {state: placement.State{Current: nowhere, Migration: migration{Target: own}}, want: placement.Cancel},
	} {
		if got := tc.state.Reconcile(tc.kind, tc.cell); got != tc.want {
			t.Errorf("%s: Reconcile = %d, want %d", reason, got, tc.want)
		}
	}
}

func TestIndexOnDemand(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		state  placement.State
		kind   placement.Kind
		wanted placement.Kind
		action placement.Action
	}{
		"a new tenant":                        {kind: placement.Own},
		"no user has many units":              {state: placement.State{Current: nowhere}, kind: placement.Own},
		"a user outgrew exact scoring":        {state: placement.State{Current: nowhere, Outgrown: true}, kind: placement.Shared, wanted: placement.Shared, action: placement.Begin},
		"the installation has no index":       {state: placement.State{Current: nowhere, Outgrown: true}},
		"placed by an earlier version":        {state: placement.State{Current: own}, kind: placement.Own, wanted: placement.Own},
		"migrating since an earlier version":  {state: placement.State{Current: own, Migration: placement.Migration{Target: shared}}, kind: placement.Shared, wanted: placement.Shared},
		"entering since an earlier version":   {state: placement.State{Current: nowhere, Migration: placement.Migration{Target: own}}, kind: placement.Own, action: placement.Cancel},
		"the installation has no index now":   {state: placement.State{Current: own}, action: placement.Leave},
		"the isolation changed in the index":  {state: placement.State{Current: own}, kind: placement.Shared, wanted: placement.Shared, action: placement.Begin},
		"the isolation changed outside of it": {state: placement.State{Current: nowhere}, kind: placement.Shared},
	} {
		if got := tc.state.Wanted(tc.kind); got != tc.wanted {
			t.Errorf("%s: Wanted = %d, want %d", reason, got, tc.wanted)
		}
		if got := tc.state.Reconcile(tc.state.Wanted(tc.kind), ""); got != tc.action {
			t.Errorf("%s: Reconcile = %d, want %d", reason, got, tc.action)
		}
	}
}

func TestLocationsAreInAnIndex(t *testing.T) {
	t.Parallel()
	state := placement.State{Current: nowhere, Migration: placement.Migration{Target: own}, Next: placement.Next{Placement: nowhere}}
	if diff := cmp.Diff([]placement.Location{own.Location}, state.Locations()); diff != "" {
		t.Errorf("Locations (-want +got):\n%s", diff)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	moving := placement.State{Current: own, Migration: placement.Migration{Target: uncreated(shared)}}
	for reason, tc := range map[string]struct {
		state placement.State
		at    placement.Location
		id    int64
		want  placement.Action
	}{
		"no placement yet":           {at: own.Location, id: 1},
		"the recorded id":            {state: moving, at: own.Location, id: 1},
		"another id":                 {state: moving, at: own.Location, id: 5, want: placement.Rebuild},
		"the partition was lost":     {state: moving, at: own.Location, want: placement.Rebuild},
		"the target was created":     {state: moving, at: shared.Location, id: 2, want: placement.Copy},
		"the target does not exist":  {state: moving, at: shared.Location},
		"an unknown location":        {state: moving, at: placement.Location{Collection: "x"}, id: 2},
		"the target of no migration": {state: placement.State{Current: own}, at: shared.Location, id: 2},
	} {
		if got := tc.state.Observe(tc.at, tc.id); got != tc.want {
			t.Errorf("%s: Observe = %d, want %d", reason, got, tc.want)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		state placement.State
		want  []placement.Target
	}{
		"no migration":              {placement.State{Current: own}, []placement.Target{{Location: own.Location, Generation: 3}}},
		"a rebuild":                 {placement.State{Current: own, Migration: placement.Migration{Target: own}}, []placement.Target{{Location: own.Location, Generation: 3}}},
		"a migration":               {placement.State{Current: own, Migration: placement.Migration{Target: shared}}, []placement.Target{{Location: own.Location, Generation: 3}, {Location: shared.Location, Generation: 3}}},
		"the target does not exist": {placement.State{Current: own, Migration: placement.Migration{Target: uncreated(shared)}}, []placement.Target{{Location: own.Location, Generation: 3}}},
		"in no index":               {placement.State{Current: nowhere, Next: placement.Next{Placement: nowhere, Generation: 4}}, []placement.Target{{Location: nowhere.Location, Generation: 3}, {Location: nowhere.Location, Generation: 4}}},
	} {
		tc.state.Generation = 3
		if diff := cmp.Diff(tc.want, tc.state.Targets()); diff != "" {
			t.Errorf("%s: Targets (-want +got):\n%s", reason, diff)
		}
	}
}
