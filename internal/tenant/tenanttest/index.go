package tenanttest

import (
	"context"
	"maps"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// Index is a vector store without vectors: placement.Partitions in memory.
type Index struct {
	mu         sync.Mutex
	ids        map[placement.Location]int64 // by withID
	last       int64
	partitions map[placement.Location]bool
}

var _ placement.Partitions = (*Index)(nil)

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{ids: map[placement.Location]int64{}, partitions: map[placement.Location]bool{}}
}

// withID returns the location that has an id: a partition, or a shared collection.
func withID(at placement.Location) placement.Location {
	if at.Shared {
		at.Partition = ""
	}
	return at
}

// Ensure implements placement.Partitions.
func (x *Index) Ensure(_ context.Context, p placement.Placement) (partitionID int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := withID(p.Location)
	if x.ids[at] == 0 && p.PartitionID == 0 {
		x.last++
		x.ids[at] = x.last
	}
	x.partitions[p.Location] = x.ids[at] != 0
	return x.ids[at], nil
}

// Drop implements placement.Partitions.
func (x *Index) Drop(_ context.Context, at placement.Location) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.partitions, at)
	if !at.Shared {
		delete(x.ids, at)
	}
	return nil
}

// HasPartition reports whether the partition exists.
func (x *Index) HasPartition(at placement.Location) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.partitions[at]
}

// LosePartition removes the partition, or the whole shared collection, like a vector store that lost its data.
func (x *Index) LosePartition(at placement.Location) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.ids, withID(at))
	maps.DeleteFunc(x.partitions, func(other placement.Location, _ bool) bool { return withID(other) == withID(at) })
}
