package milvus

import (
	"context"
	"fmt"
	"strconv"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The fields of a collection.
const (
	fieldID        = "id"
	fieldUser      = "user_id"
	fieldKind      = "kind"
	fieldGroup     = "group_id"
	fieldEmbedding = "embedding"
)

// The HNSW graph: links a node, and candidates looked at while building.
const (
	hnswM              = 16
	hnswEfConstruction = 200
)

// Ensure makes the placement's collection, with its index, and partition where
// they are missing, and loads them; what a crash left half made is finished.
// created says that the partition was not there, so its vectors are not either.
// Several processes may call it at once. Invalid when the collection holds
// vectors of another length.
func (x *Index) Ensure(ctx context.Context, p tenant.Placement) (created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.config.AdminTimeout)
	defer cancel()
	name := x.collection(p)
	if err := x.ensureCollection(ctx, name); err != nil {
		return false, err
	}
	has, err := x.client.HasPartition(ctx, name, p.Partition)
	if err != nil {
		return false, mapError(err, "look for partition")
	}
	if !has {
		if err := x.client.CreatePartition(ctx, name, p.Partition); err != nil {
			return false, mapError(err, "create partition")
		}
	}
	return !has, x.load(ctx, name, p.Partition)
}

func (x *Index) ensureCollection(ctx context.Context, name string) error {
	found, err := x.client.DescribeCollection(ctx, name)
	if isCode(err, codeCollectionNotFound) {
		// Creating it with the same schema a second time is no error in Milvus,
		// so two processes may get here at once.
		err = x.client.CreateCollection(ctx, x.schema(name), 1,
			// Searches ask for bounded staleness themselves; List takes this.
			client.WithConsistencyLevel(entity.ClStrong))
		if err != nil {
			return mapError(err, "create collection")
		}
		found, err = x.client.DescribeCollection(ctx, name)
	}
	if err != nil {
		return mapError(err, "describe collection")
	}
	if err := x.checkDimensions(found); err != nil {
		return err
	}
	return x.ensureIndex(ctx, name)
}

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

// load loads the collection, or these partitions of it, unless they are.
func (x *Index) load(ctx context.Context, name string, partitions ...string) error {
	state, err := x.client.GetLoadState(ctx, name, partitions)
	// While another process makes the partition it exists for some parts of
	// Milvus and not yet for the one that loads; loading waits for it.
	if err != nil && !isCode(err, codePartitionNotFound) {
		return mapError(err, "read load state")
	}
	if state == entity.LoadStateLoaded {
		return nil
	}
	if len(partitions) == 0 {
		return mapError(x.client.LoadCollection(ctx, name, false), "load collection")
	}
	return mapError(x.client.LoadPartitions(ctx, name, partitions, false), "load partition")
}

// checkDimensions refuses a collection made for another model.
func (x *Index) checkDimensions(c *entity.Collection) error {
	for _, f := range c.Schema.Fields {
		if f.Name != fieldEmbedding {
			continue
		}
		if have := f.TypeParams[entity.TypeParamDim]; have != strconv.Itoa(x.config.Dimensions) {
			return fault.New(fault.Invalid, "collection %s holds vectors of %s dimensions and the embedding model makes %d: "+
				"configure the model the collection was made with, or drop the collection and run mnemo reindex",
				c.Name, have, x.config.Dimensions)
		}
		return nil
	}
	return fault.New(fault.Invalid, "collection %s was not made by mnemo: set another collection prefix", c.Name)
}

func (x *Index) schema(name string) *entity.Schema {
	return entity.NewSchema().WithName(name).WithDescription("mnemo units").
		WithField(entity.NewField().WithName(fieldID).WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(entity.NewField().WithName(fieldUser).WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName(fieldKind).WithDataType(entity.FieldTypeInt16)).
		WithField(entity.NewField().WithName(fieldGroup).WithDataType(entity.FieldTypeInt64)).
		WithField(entity.NewField().WithName(fieldEmbedding).WithDataType(entity.FieldTypeFloatVector).
			WithDim(int64(x.config.Dimensions)))
}

// Drop removes the partition with all that is in it; nil when it is not there.
func (x *Index) Drop(ctx context.Context, p tenant.Placement) error {
	ctx, cancel := context.WithTimeout(ctx, x.config.AdminTimeout)
	defer cancel()
	name := x.collection(p)
	has, err := x.client.HasPartition(ctx, name, p.Partition)
	if isCode(err, codeCollectionNotFound) || (err == nil && !has) {
		return nil
	}
	if err != nil {
		return mapError(err, "look for partition")
	}
	// Milvus refuses to drop what is loaded.
	if err := x.client.ReleasePartitions(ctx, name, []string{p.Partition}); err != nil && !isGone(err) {
		return mapError(err, "release partition")
	}
	if err := x.client.DropPartition(ctx, name, p.Partition); err != nil && !isGone(err) {
		return mapError(err, "drop partition")
	}
	return nil
}

// isGone reports whether another process dropped it first.
func isGone(err error) bool { return isCode(err, codeCollectionNotFound, codePartitionNotFound) }
