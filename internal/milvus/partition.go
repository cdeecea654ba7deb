package milvus

import (
	"context"
	"errors"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// During concurrent creation and deletion, components of Milvus can briefly disagree about
// a partition. Calls that fail for this reason are retried.
const (
	ensureTries = 12
	ensureWait  = 50 * time.Millisecond // longer each time
)

// Ensure implements placement.Partitions. It creates the collection with its index and the
// partition if they are missing, completes what a crash left unfinished, and starts loading
// them. made is the id of the partition in Milvus, or of the collection for a shared
// placement. Several processes may call it concurrently. It returns Invalid if the
// collection contains vectors of another length.
func (x *Index) Ensure(ctx context.Context, p placement.Placement) (made int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.config.AdminTimeout)
	defer cancel()
	ensure := x.ensurePartition
	if p.Shared {
		ensure = x.ensureShared
	}
	for try := 1; ; try++ {
		made, err = ensure(ctx, p)
		if !isGone(err) || try == ensureTries {
			return made, err
		}
		if try == ensureTries/2 && !p.Shared && isCode(err, codePartitionNotFound) {
			_ = x.refresh(ctx, p.Location) // the next try reports what is wrong
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(time.Duration(try) * ensureWait):
		}
	}
}

// refresh makes the proxies of Milvus read the partitions of a collection again, which they
// do whenever one is created. A proxy that was asked for a partition while another process
// created it may answer "partition not found" from its cache until then, although
// Milvus lists the partition (seen with 2.3.5, after the creating process was killed).
func (x *Index) refresh(ctx context.Context, p placement.Location) error {
	p.Partition += "_refresh"
	if err := x.client.CreatePartition(ctx, x.collection(p), p.Partition); err != nil {
		return mapError(err, "create marker partition")
	}
	return x.Drop(context.WithoutCancel(ctx), p)
}

// ensurePartition makes few calls if the partition is loaded, because its collection then
// has an index.
func (x *Index) ensurePartition(ctx context.Context, p placement.Placement) (id int64, err error) {
	name := x.collection(p.Location)
	if p.PartitionID == 0 {
		if id, err = x.createPartition(ctx, p); err != nil {
			return 0, err
		}
	} else {
		id, err = x.findPartition(ctx, name, p.Partition)
		if isCode(err, codeCollectionNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, mapError(err, "find partition")
		}
		if id != p.PartitionID {
			return id, nil
		}
		if err := x.checkModel(ctx, p); err != nil {
			return 0, err
		}
	}
	state, err := x.client.GetLoadState(ctx, name, []string{p.Partition})
	if err != nil && !isCode(err, codePartitionNotFound) {
		return 0, mapError(err, "read load state")
	}
	if state != entity.LoadStateLoaded {
		if _, err := x.ensureCollection(ctx, p); err != nil {
			return 0, err
		}
		if err := x.load(ctx, name, p.Partition); err != nil {
			return 0, err
		}
	}
	if p.PartitionID != 0 { // the collection was loaded then
		return id, nil
	}
	return id, x.awaitCollection(ctx, name)
}

// findPartition returns the partition's id, or 0 if it does not exist.
func (x *Index) findPartition(ctx context.Context, collection, name string) (int64, error) {
	all, err := x.client.ShowPartitions(ctx, collection)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.Name == name {
			return p.ID, nil
		}
	}
	return 0, nil
}

// createPartition creates the partition and, if necessary, the collection. Concurrent
// creation by another process is not an error.
func (x *Index) createPartition(ctx context.Context, p placement.Placement) (int64, error) {
	name := x.collection(p.Location)
	if _, known := x.known.Load(name); !known {
		if _, err := x.ensureCollection(ctx, p); err != nil && !errors.Is(err, placement.ErrLoading) {
			return 0, err
		}
	}
	err := mapError(x.client.CreatePartition(ctx, name, p.Partition), "create partition")
	if isCode(err, codeCollectionNotFound) { // the collection was lost
		if _, err = x.ensureCollection(ctx, p); err == nil || errors.Is(err, placement.ErrLoading) {
			err = mapError(x.client.CreatePartition(ctx, name, p.Partition), "create partition")
		}
	}
	if err != nil {
		return 0, err
	}
	id, err := x.findPartition(ctx, name, p.Partition)
	if err == nil && id == 0 {
		err = &statusError{code: codePartitionNotFound, reason: "the partition is not listed after its creation"}
	}
	return id, mapError(err, "find new partition")
}

// Drop drops the partition, or removes the entries of a key. A missing partition is not
// an error.
func (x *Index) Drop(ctx context.Context, p placement.Location) error {
	ctx, cancel := context.WithTimeout(ctx, x.config.AdminTimeout)
	defer cancel()
	if p.Shared {
		return x.empty(ctx, p)
	}
	name := x.collection(p)
	has, err := x.client.HasPartition(ctx, name, p.Partition)
	if isCode(err, codeCollectionNotFound) || (err == nil && !has) {
		return nil
	}
	if err != nil {
		return mapError(err, "find partition")
	}
	// Milvus rejects dropping a loaded partition.
	if err := x.client.ReleasePartitions(ctx, name, []string{p.Partition}); err != nil && !isGone(err) {
		return mapError(err, "release partition")
	}
	if err := x.client.DropPartition(ctx, name, p.Partition); err != nil && !isGone(err) {
		return mapError(err, "drop partition")
	}
	return nil
}

// isGone reports whether the partition or collection does not exist.
func isGone(err error) bool { return isCode(err, codeCollectionNotFound, codePartitionNotFound) }
