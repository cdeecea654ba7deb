package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// storedVectors are vectors of units as the database contains them, one after another.
type storedVectors struct {
	ids     []retrieve.UnitID
	content []byte
}

// vectorBuffers are *storedVectors of up to placement.ExactUnits units, 1.5 MB with 384 dimensions.
var vectorBuffers sync.Pool

// Prefetch implements retrieve.Searcher.
func (d *DB) Prefetch(ctx context.Context, scope tenant.Scope, query retrieve.Query) (retrieve.Prefetched, error) {
	v, ok := vectorBuffers.Get().(*storedVectors)
	if !ok {
		v = &storedVectors{}
	}
	var coverage retrieve.Coverage
	err := d.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) error {
		v.ids, v.content, coverage = v.ids[:0], v.content[:0], retrieve.Coverage{All: true}
		return readVectors(ctx, tx, scope, query, liveUnits, placement.ExactUnits+1, &coverage, func(id retrieve.UnitID, stored []byte) {
			v.ids, v.content = append(v.ids, id), append(v.content, stored...)
		})
	})
	if err != nil || coverage.Truncated {
		vectorBuffers.Put(v)
		if err != nil {
			err = fmt.Errorf("read vectors: %w", err)
		}
		return nil, err
	}
	return func(vector []float32) ([]retrieve.Hit, retrieve.Coverage) {
		defer vectorBuffers.Put(v)
		hits := v.score(vector)
		return best(hits, len(hits)), coverage
	}, nil
}

// score returns the cosine of each unit. All vectors have the same length, that of their generation.
func (v *storedVectors) score(vector []float32) []retrieve.Hit {
	hits, asked := make([]retrieve.Hit, len(v.ids)), rebased(vector)
	for i, id := range v.ids {
		size := len(v.content) / len(v.ids)
		hits[i] = retrieve.Hit{ID: id, Score: asked.dotHalf(v.content[i*size:(i+1)*size])}
	}
	return hits
}
