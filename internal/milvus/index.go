package milvus

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	batchSize = 1000  // rows a write
	maxRows   = 16384 // what Milvus gives at once
	minEf     = 64    // candidates HNSW looks at, at least
)

// Search returns the best q.Limit entries of the user in the partition, by
// cosine, best first. It may not see what was written in the last seconds.
func (x *Index) Search(ctx context.Context, scope tenant.Scope, p placement.Location, q retrieve.Query, vector []float32) ([]retrieve.Hit, error) {
	if len(vector) != x.config.Dimensions {
		return nil, fault.New(fault.Internal, "search vector has %d dimensions, not %d", len(vector), x.config.Dimensions)
	}
	limit := min(max(q.Limit, 1), maxRows)
	params, err := entity.NewIndexHNSWSearchParam(max(limit*2, minEf))
	if err != nil {
		return nil, mapError(err, "search")
	}
	ctx, cancel := context.WithTimeout(ctx, x.config.CallTimeout)
	defer cancel()
	results, err := x.client.Search(ctx, x.collection(p), partitions(p), within(p, filter(scope, q)), nil,
		[]entity.Vector{entity.FloatVector(vector)}, fieldEmbedding, entity.COSINE, limit, params,
		client.WithSearchQueryConsistencyLevel(entity.ClBounded))
	if isEmpty(err) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err, "search")
	}
	if len(results) == 0 || results[0].ResultCount == 0 {
		return nil, nil
	}
	ids, ok := results[0].IDs.(*entity.ColumnInt64)
	if !ok {
		return nil, fault.New(fault.Internal, "search: keys are not numbers")
	}
	hits := make([]retrieve.Hit, 0, ids.Len())
	seen := make(map[int64]bool, ids.Len()) // keys are not unique by themselves
	for i, id := range ids.Data() {
		if !seen[id] {
			seen[id] = true
			hits = append(hits, retrieve.Hit{ID: retrieve.UnitID(id), Score: float64(results[0].Scores[i])})
		}
	}
	return hits, nil
}

// partitions are those a search reads; in a collection with a key it follows
// from the filter.
func partitions(p placement.Location) []string {
	if p.Shared {
		return nil
	}
	return []string{p.Partition}
}

// partition is the one a write goes to; in a collection with a key it follows
// from the rows.
func partition(p placement.Location) string {
	if p.Shared {
		return ""
	}
	return p.Partition
}

// within narrows an expression to the place: a partition does so by itself.
// Keys are names that the store gave out, and quoted.
func within(p placement.Location, expr string) string {
	if p.Shared {
		return fieldPlace + " == " + strconv.Quote(p.Partition) + " && " + expr
	}
	return expr
}

// filter is the expression every search is narrowed by. It holds numbers only,
// so nothing a user wrote can get into it.
func filter(scope tenant.Scope, q retrieve.Query) string {
	expr := fieldUser + " == " + strconv.FormatInt(int64(scope.User), 10) +
		" && " + fieldKind + " == " + strconv.Itoa(int(q.Kind))
	if q.Group != 0 {
		expr += " && " + fieldGroup + " == " + strconv.FormatInt(q.Group, 10)
	}
	return expr
}

// Upsert writes the entries; those already there are replaced. ErrNoPartition
// when Ensure was not called, or the partition was lost.
func (x *Index) Upsert(ctx context.Context, _ tenant.ID, p placement.Location, entries []retrieve.Entry) error {
	for batch := range slices.Chunk(entries, batchSize) {
		if err := x.upsertBatch(ctx, p, batch); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) upsertBatch(ctx context.Context, p placement.Location, entries []retrieve.Entry) error {
	ids := make([]int64, len(entries))
	users := make([]int64, len(entries))
	kinds := make([]int16, len(entries))
	groups := make([]int64, len(entries))
	vectors := make([][]float32, len(entries))
	for i, e := range entries {
		if len(e.Vector) != x.config.Dimensions {
			return fault.New(fault.Internal, "vector of unit %d has %d dimensions, not %d", e.ID, len(e.Vector), x.config.Dimensions)
		}
		ids[i], users[i], kinds[i], groups[i], vectors[i] = int64(e.ID), e.User, int16(e.Kind), e.Group, e.Vector
	}
	ctx, cancel := context.WithTimeout(ctx, x.config.CallTimeout)
	defer cancel()
	columns := []entity.Column{
		entity.NewColumnInt64(fieldID, ids),
		entity.NewColumnInt64(fieldUser, users),
		entity.NewColumnInt16(fieldKind, kinds),
		entity.NewColumnInt64(fieldGroup, groups),
		entity.NewColumnFloatVector(fieldEmbedding, x.config.Dimensions, vectors),
	}
	if p.Shared {
		return x.replace(ctx, p, entries, columns)
	}
	_, err := x.client.Upsert(ctx, x.collection(p), p.Partition, columns...)
	return mapError(err, "upsert")
}

// replace is upsert for a shared place. Milvus 2.3 spreads what is upserted by
// its ids instead of its key, where no search looks for it. Two writers of one
// entry at the same time may leave it there twice: a deletion takes both.
func (x *Index) replace(ctx context.Context, p placement.Location, entries []retrieve.Entry, columns []entity.Column) error {
	ids := make([]retrieve.UnitID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	if err := x.deleteBatch(ctx, p, ids); err != nil {
		return err
	}
	columns = append(columns, entity.NewColumnVarChar(fieldPlace, slices.Repeat([]string{p.Partition}, len(entries))))
	_, err := x.client.Insert(ctx, x.collection(p), "", columns...)
	return mapError(err, "insert")
}

// Delete removes entries; ids that are not there are no error, and neither is
// a partition that is gone.
func (x *Index) Delete(ctx context.Context, _ tenant.ID, p placement.Location, ids []retrieve.UnitID) error {
	for batch := range slices.Chunk(ids, batchSize) {
		if err := x.deleteBatch(ctx, p, batch); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) deleteBatch(ctx context.Context, p placement.Location, ids []retrieve.UnitID) error {
	expr := []byte(fieldID + " in [")
	for i, id := range ids {
		if i > 0 {
			expr = append(expr, ',')
		}
		expr = strconv.AppendInt(expr, int64(id), 10)
	}
	ctx, cancel := context.WithTimeout(ctx, x.config.CallTimeout)
	defer cancel()
	err := x.client.Delete(ctx, x.collection(p), partition(p), string(append(expr, ']')))
	if isGone(err) {
		return nil
	}
	return mapError(err, "delete")
}

// List returns up to limit ids above after, in order. It waits until all that
// was written before the call can be seen, which takes some 40 to 200 ms: what
// compares the stores must not take a late entry for a missing one.
func (x *Index) List(ctx context.Context, _ tenant.ID, p placement.Location, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error) {
	limit = min(max(limit, 1), maxRows)
	ctx, cancel := context.WithTimeout(ctx, x.config.CallTimeout)
	defer cancel()
	// Only the SDK's iterator asks newer servers for the lowest keys first.
	// It reads with the collection's consistency level, which is Strong.
	page, err := x.client.QueryIterator(ctx, client.NewQueryIteratorOption(x.collection(p)).
		WithPartitions(partitions(p)...).
		WithExpr(within(p, fieldID+" > "+strconv.FormatInt(int64(after), 10))).
		WithOutputFields(fieldID).
		WithBatchSize(limit))
	var rows client.ResultSet
	if err == nil {
		rows, err = page.Next(ctx)
	}
	if isEmpty(err) || errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, mapError(err, "list")
	}
	ids, ok := rows.GetColumn(fieldID).(*entity.ColumnInt64)
	if !ok {
		return nil, fault.New(fault.Internal, "list: keys are not numbers")
	}
	out := make([]retrieve.UnitID, 0, ids.Len())
	for _, id := range ids.Data() {
		out = append(out, retrieve.UnitID(id))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
