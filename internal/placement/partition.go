package placement

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Partitions is the vector store that contains the partitions. internal/milvus
// implements it.
type Partitions interface {
	// Ensure creates the collection and the partition if they are missing and
	// returns the partition's id. If p.PartitionID is not 0 and that partition no
	// longer exists, Ensure creates nothing and returns another id, or 0.
	// ErrLoading while the partition is being loaded.
	Ensure(ctx context.Context, p Placement) (partitionID int64, err error)
	// Drop deletes the entries at a location and the partition; nil if it does
	// not exist.
	Drop(ctx context.Context, at Location) error
}

// Store records which partitions exist. internal/postgres implements it.
type Store interface {
	// MarkLost records that a partition no longer exists, before another one is
	// created under its name. Until that one is filled, every unit of each tenant
	// in it counts as unindexed, so that no search relies on the index. If MarkLost
	// fails, the partition keeps its id, and a later call records the rest.
	MarkLost(ctx context.Context, p Placement) error
	// LatestPartitionID returns the newest id that an active tenant has recorded
	// for a shared collection; 0 if none has.
	LatestPartitionID(ctx context.Context, at Location) (partitionID int64, err error)
}

// ErrNoPartition is in the chain of an error of the vector store if the placement does not exist: it was never
// created, or was lost. Partitions.Ensure creates it again.
var ErrNoPartition = errors.New("partition not found in the vector store")

// ErrLoading means that a partition exists but cannot be searched yet. Retry.
var ErrLoading = errors.New("the partition is being loaded")

// loadPoll is the interval at which WaitLoaded polls.
const loadPoll = 200 * time.Millisecond

// WaitLoaded returns Partitions whose Ensure waits until the partition is
// loaded or ctx is done.
func WaitLoaded(p Partitions) Partitions { return waitLoaded{p} }

type waitLoaded struct{ Partitions }

// Ensure implements Partitions.
func (w waitLoaded) Ensure(ctx context.Context, p Placement) (partitionID int64, err error) {
	for {
		if partitionID, err = w.Partitions.Ensure(ctx, p); !errors.Is(err, ErrLoading) {
			return partitionID, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(loadPoll):
		}
	}
}

// EnsurePartition creates the partition of a placement unless it exists, and returns its id; 0 for a placement in no
// index, which needs none. A lost partition is recorded as lost before it is created again. In a shared collection,
// other tenants may have recorded an id that this tenant has not seen yet; then that one is the id to compare with.
func EnsurePartition(ctx context.Context, store Store, partitions Partitions, p Placement) (partitionID int64, err error) {
	if !p.Indexed() {
		return 0, nil
	}
	for known := p.PartitionID; ; known = 0 {
		if known == 0 && p.Shared {
			if known, err = store.LatestPartitionID(ctx, p.Location); err != nil {
				return 0, fmt.Errorf("get recorded partition id: %w", err)
			}
		}
		expected := Placement{Location: p.Location, PartitionID: known, Dimensions: p.Dimensions}
		if partitionID, err = partitions.Ensure(ctx, expected); err != nil {
			return 0, fmt.Errorf("ensure partition: %w", err)
		}
		if known == 0 || partitionID == known {
			return partitionID, nil
		}
		if err := store.MarkLost(ctx, expected); err != nil {
			return 0, fmt.Errorf("record lost partition: %w", err)
		}
	}
}
