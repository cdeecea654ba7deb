package milvus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
)

// The fields of a collection.
const (
	fieldID        = "id"
	fieldUser      = "user_id"
	fieldKind      = "kind"
	fieldGroup     = "group_id"
	fieldEmbedding = "embedding"
	fieldPlacement = "placement" // the partition key of a shared collection
)

const (
	// HNSW: links per node, and candidates per insertion.
	hnswM              = 16
	hnswEfConstruction = 200
	// sharedPartitions is the number of partitions over which Milvus distributes the
	// keys of a shared collection. A search reads one of them.
	sharedPartitions = 64
	// maxKey is the maximum length of a key.
	maxKey = 128
	// loadPoll is the polling interval while a collection is loading.
	loadPoll = 200 * time.Millisecond
)

// ensureCollection creates the location's collection and its index if they are missing,
// starts loading it, and returns its id, with ErrLoading until it is loaded. Concurrent
// calls for the same collection share one execution, because concurrent requests slow
// Milvus down.
func (x *Index) ensureCollection(ctx context.Context, p placement.Placement) (int64, error) {
	name := x.collection(p.Location)
	made, err, _ := x.making.Do(name, func() (any, error) { return x.makeCollection(ctx, name, p) })
	id, _ := made.(int64)
	return id, err
}

func (x *Index) makeCollection(ctx context.Context, name string, p placement.Placement) (int64, error) {
	found, err := x.client.DescribeCollection(ctx, name)
	if isCode(err, codeCollectionNotFound) {
		// Searches set bounded staleness; List uses this level.
		options := []client.CreateCollectionOption{client.WithConsistencyLevel(entity.ClStrong)}
		if p.Shared {
			options = append(options, client.WithPartitionNum(sharedPartitions))
		}
		// Milvus accepts a repeated creation with the same schema, so two processes
		// can do this concurrently.
		if err = x.client.CreateCollection(ctx, x.schema(name, p), 1, options...); err != nil {
			return 0, mapError(err, "create collection")
		}
		found, err = x.client.DescribeCollection(ctx, name)
	}
	if err != nil {
		return 0, mapError(err, "describe collection")
	}
	if err := x.checkSchema(found, p); err != nil {
		return 0, err
	}
	err = x.ensureIndex(ctx, name)
	if err == nil || errors.Is(err, placement.ErrLoading) {
		x.known.Store(name, true)
	}
	return found.ID, err
}

// ensureShared only reads the id of a collection that is already loaded.
func (x *Index) ensureShared(ctx context.Context, p placement.Placement) (int64, error) {
	name := x.collection(p.Location)
	found, err := x.client.DescribeCollection(ctx, name)
	switch {
	case isCode(err, codeCollectionNotFound) && p.PartitionID == 0:
		return x.ensureCollection(ctx, p)
	case isCode(err, codeCollectionNotFound):
		return 0, nil
	case err != nil:
		return 0, mapError(err, "describe collection")
	case p.PartitionID != 0 && p.PartitionID != found.ID:
		return found.ID, nil
	}
	if err := x.checkSchema(found, p); err != nil {
		return 0, err
	}
	state, err := x.client.GetLoadState(ctx, name, nil)
	if err != nil {
		return 0, mapError(err, "read load state")
	}
	if state == entity.LoadStateLoaded {
		return found.ID, nil
	}
	return found.ID, x.ensureIndex(ctx, name)
}

// ensureIndex creates the collection's index if it is missing and starts loading the
// collection. It returns ErrLoading until the collection is loaded.
func (x *Index) ensureIndex(ctx context.Context, name string) error {
	indexes, err := x.client.DescribeIndex(ctx, name, fieldEmbedding)
	if err != nil && !isCode(err, codeIndexNotFound) {
		return mapError(err, "describe index")
	}
	if len(indexes) > 0 {
		return x.load(ctx, name)
	}
	index, err := entity.NewIndexHNSW(entity.COSINE, hnswM, hnswEfConstruction)
	if err != nil {
		return fmt.Errorf("describe HNSW index: %w", err)
	}
	if err := x.client.CreateIndex(ctx, name, fieldEmbedding, index, true); err != nil {
		return mapError(err, "create index")
	}
	return x.load(ctx, name)
}

// awaitIndex calls ensureIndex until the collection is loaded.
func (x *Index) awaitIndex(ctx context.Context, name string) error {
	for {
		err := x.ensureIndex(ctx, name)
		if !errors.Is(err, placement.ErrLoading) {
			return err
		}
		select {
		case <-ctx.Done():
			return mapError(ctx.Err(), "wait until the collection is loaded")
		case <-time.After(loadPoll):
		}
	}
}

// load starts loading the collection, or the given partitions of it, and returns
// ErrLoading until they are loaded. It does not wait, because loading takes seconds, or
// minutes with much data.
func (x *Index) load(ctx context.Context, name string, partitions ...string) error {
	state, err := x.client.GetLoadState(ctx, name, partitions)
	// While another process creates the partition, some components of Milvus may not
	// find it yet. Loading waits for it.
	if err != nil && !isCode(err, codePartitionNotFound) {
		return mapError(err, "read load state")
	}
	switch {
	case state == entity.LoadStateLoaded:
		return nil
	case state == entity.LoadStateLoading:
		return placement.ErrLoading
	case len(partitions) == 0:
		err = mapError(x.client.LoadCollection(ctx, name, true), "load collection")
		x.loaded.Delete(name) // lost, or released manually
	default:
		err = mapError(x.client.LoadPartitions(ctx, name, partitions, true), "load partition")
	}
	if err != nil {
		return err
	}
	return placement.ErrLoading
}

// awaitCollection returns ErrLoading until the collection has been loaded once. Milvus
// reports a partition that was created earlier as loaded immediately.
func (x *Index) awaitCollection(ctx context.Context, name string) error {
	if _, loaded := x.loaded.Load(name); loaded {
		return nil
	}
	if err := x.load(ctx, name); err != nil {
		return err
	}
	x.loaded.Store(name, true)
	return nil
}

// checkModel rejects a collection that was created for another model. It checks each
// collection once per process.
func (x *Index) checkModel(ctx context.Context, p placement.Placement) error {
	name := x.collection(p.Location)
	if _, known := x.known.Load(name); known {
		return nil
	}
	found, err := x.client.DescribeCollection(ctx, name)
	if err != nil {
		return mapError(err, "describe collection")
	}
	if err := x.checkSchema(found, p); err != nil {
		return err
	}
	x.known.Store(name, true)
	return nil
}

// checkSchema rejects a collection that was created for another model or the other kind
// of isolation.
func (x *Index) checkSchema(c *entity.Collection, p placement.Placement) error {
	dimensions, key := "", false
	for _, f := range c.Schema.Fields {
		switch f.Name {
		case fieldEmbedding:
			dimensions = f.TypeParams[entity.TypeParamDim]
		case fieldPlacement:
			key = f.IsPartitionKey
		}
	}
	switch {
	case dimensions == "" || key != p.Shared:
		return fault.New(fault.Invalid, "collection %s was not created by Mnemo; drop or rename the collection, or use another Milvus server", c.Name)
	case dimensions != strconv.Itoa(x.dimensions(p)):
		return fault.New(fault.Invalid, "collection %s has vectors of %s dimensions, but the embedding model has %d: "+
			"configure the model that the collection was created with, or drop the collection and run `mnemo index rebuild`",
			c.Name, dimensions, x.dimensions(p))
	}
	return nil
}

// dimensions returns the length of the vectors of a placement.
func (x *Index) dimensions(p placement.Placement) int {
	return cmp.Or(p.Dimensions, x.config.Dimensions)
}

func (x *Index) schema(name string, p placement.Placement) *entity.Schema {
	s := entity.NewSchema().WithName(name).WithDescription("mnemo units").
		WithField(entity.NewField().WithName(fieldID).WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(entity.NewField().WithName(fieldUser).WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName(fieldKind).WithDataType(entity.FieldTypeInt16)).
		WithField(entity.NewField().WithName(fieldGroup).WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName(fieldEmbedding).WithDataType(entity.FieldTypeFloatVector).
			WithDim(int64(x.dimensions(p))))
	if p.Shared {
		s = s.WithField(entity.NewField().WithName(fieldPlacement).WithDataType(entity.FieldTypeVarChar).
			WithMaxLength(maxKey).WithIsPartitionKey(true))
	}
	return s
}

// empty removes all entries of a key. It lists them and deletes them by id until the list
// is empty, because a delete by expression reads with unbounded staleness.
func (x *Index) empty(ctx context.Context, p placement.Location) error {
	for {
		ids, err := x.List(ctx, "", p, 0, maxRows)
		if isGone(err) || err == nil && len(ids) == 0 {
			return nil
		}
		if isCode(err, codeNotLoaded, codeNotFullyLoaded) { // partly created by another process
			if err := x.awaitIndex(ctx, x.collection(p)); err != nil && !isGone(err) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := x.Delete(ctx, "", p, ids); err != nil {
			return err
		}
	}
}
