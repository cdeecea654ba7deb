package placement_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// loadingPartitions reports ErrLoading until Ensure was called `until` times.
type loadingPartitions struct {
	placement.Partitions
	calls, until int
}

func (l *loadingPartitions) Ensure(context.Context, placement.Placement) (partitionID int64, err error) {
	if l.calls++; l.calls < l.until {
		return 0, placement.ErrLoading
	}
	return 7, nil
}

func TestWaitLoaded(t *testing.T) {
	t.Parallel()
	l := &loadingPartitions{until: 3}
	id, err := placement.WaitLoaded(l).Ensure(t.Context(), placement.Placement{})
	if err != nil {
		t.Fatal(err)
	}
	if id != 7 {
		t.Errorf("Ensure = %d, want 7", id)
	}
	if l.calls != 3 {
		t.Errorf("Ensure was called %d times, want 3", l.calls)
	}
}

func TestWaitLoadedStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := placement.WaitLoaded(&loadingPartitions{until: 1000}).Ensure(ctx, placement.Placement{})
	if !errors.Is(err, placement.ErrLoading) {
		t.Errorf("Ensure = %v, want ErrLoading", err)
	}
}

// fakeStore records an id for a shared collection until it is marked as lost.
type fakeStore struct {
	latest int64
	lost   []placement.Placement
}

func (f *fakeStore) MarkLost(_ context.Context, p placement.Placement) error {
	f.lost, f.latest = append(f.lost, p), 0
	return nil
}

func (f *fakeStore) LatestPartitionID(context.Context, placement.Location) (int64, error) {
	return f.latest, nil
}

// fakePartitions has a partition with the id; 0 if it was lost. It creates 9.
type fakePartitions struct {
	placement.Partitions
	id int64
}

func (f *fakePartitions) Ensure(_ context.Context, p placement.Placement) (int64, error) {
	if f.id == 0 && p.PartitionID == 0 {
		f.id = 9
	}
	return f.id, nil
}

func TestEnsurePartition(t *testing.T) {
	t.Parallel()
	own, shared := placement.Location{Collection: "c", Partition: "p"}, placement.Location{Collection: "s", Partition: "p", Shared: true}
	at := func(l placement.Location, id int64) placement.Placement {
		return placement.Placement{Location: l, PartitionID: id}
	}
	for reason, tc := range map[string]struct {
		ensure  placement.Placement
		exists  int64 // id in the vector store
		latest  int64 // id that others recorded
		want    int64
		wantLog []placement.Placement // marked as lost
	}{
		"in no index, none is needed":                       {},
		"a new partition is created":                        {ensure: at(own, 0), want: 9},
		"an existing partition keeps its id":                {ensure: at(own, 4), exists: 4, want: 4},
		"a lost partition is recorded, then created":        {ensure: at(own, 4), want: 9, wantLog: []placement.Placement{at(own, 4)}},
		"a replaced partition is recorded":                  {ensure: at(own, 4), exists: 5, want: 5, wantLog: []placement.Placement{at(own, 4)}},
		"a new tenant joins a shared collection":            {ensure: at(shared, 0), exists: 3, latest: 3, want: 3},
		"a new tenant finds that a shared one was lost":     {ensure: at(shared, 0), latest: 3, want: 9, wantLog: []placement.Placement{at(shared, 3)}},
		"a tenant of a shared collection finds it replaced": {ensure: at(shared, 3), exists: 5, want: 5, wantLog: []placement.Placement{at(shared, 3)}},
	} {
		store := &fakeStore{latest: tc.latest}
		got, err := placement.EnsurePartition(t.Context(), store, &fakePartitions{id: tc.exists}, tc.ensure)
		if err != nil || got != tc.want {
			t.Errorf("%s: EnsurePartition = %d, %v, want %d", reason, got, err, tc.want)
		}
		if diff := cmp.Diff(tc.wantLog, store.lost); diff != "" {
			t.Errorf("%s: marked as lost (-want +got):\n%s", reason, diff)
		}
	}
}
