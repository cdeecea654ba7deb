package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// vectorBuffers are *storedVectors of up to placement.ExactUnits units, 1.5 MB with 384 dimensions.
var vectorBuffers sync.Pool

func vectorBuffer() *storedVectors {
	v, ok := vectorBuffers.Get().(*storedVectors)
	if !ok {
		v = &storedVectors{}
	}
	return v
}

// Prefetch implements retrieve.Searcher. Without filters, it caches the vectors for the next search.
func (d *DB) Prefetch(ctx context.Context, scope tenant.Scope, query retrieve.Query) (retrieve.Prefetched, error) {
	if query.Group == 0 && !byOwner(query) && !byMessage(query) && query.Owners == nil {
		key := vectorKey{scope, query.Kind, query.Generation}
		if known, ok := d.vectors.get(key); ok {
			return d.prefetchAdded(ctx, key, known)
		}
	}
	v := vectorBuffer()
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

// prefetchAdded reads the vectors that were added to the known ones.
func (d *DB) prefetchAdded(ctx context.Context, key vectorKey, known *storedVectors) (retrieve.Prefetched, error) {
	added := vectorBuffer()
	defer vectorBuffers.Put(added)
	coverage := retrieve.Coverage{All: true}
	err := d.readScope(ctx, key.Scope, func(tx db.DBTX, _ *db.Queries) error {
		same, err := added.readAdded(ctx, tx, key, known, &coverage)
		if err == nil && !same { // a unit was deleted, or one with a lower id was added
			d.vectors.remove(key)
			known = &storedVectors{}
			_, err = added.readAdded(ctx, tx, key, known, &coverage)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read vectors: %w", err)
	case coverage.Truncated:
		d.vectors.remove(key)
		return nil, nil
	}
	v := d.vectors.add(key, known, added)
	return func(vector []float32) ([]retrieve.Hit, retrieve.Coverage) {
		hits := v.score(vector)
		return best(hits, len(hits)), coverage
	}, nil
}

// addedVectors are the units with higher ids than the known ones, the known ones without a vector, and in a row with the
// id 0, the number and a hash of the ids up to the highest known one, which tell whether they are the known ones.
const addedVectors = `select 0, null, 0, count(*), coalesce(bit_xor(hashint8extended(id, 0)), 0)
	from units where tenant_id = $1 and user_id = $2 and kind = $3 and active and id <= $4
union all (
	select id, case $5::smallint when generation_id then embedding when next_generation_id then next_embedding end, hashint8extended(id, 0), 0, 0
	from units where tenant_id = $1 and user_id = $2 and kind = $3 and active and id > $4 order by id limit $6)
union all
	select id, case $5::smallint when generation_id then embedding when next_generation_id then next_embedding end, 0, 0, 0
	from units where tenant_id = $1 and user_id = $2 and kind = $3 and active and id = any($7::bigint[])`

// readAdded replaces the vectors by those that the user has in addition to the known ones. It returns false if the user
// no longer has the known units, or has others among them.
func (v *storedVectors) readAdded(ctx context.Context, tx db.DBTX, key vectorKey, known *storedVectors, coverage *retrieve.Coverage) (same bool, err error) {
	*v, *coverage = storedVectors{ids: v.ids[:0], content: v.content[:0], missing: v.missing[:0]}, retrieve.Coverage{All: true}
	rows, err := tx.Query(ctx, addedVectors, string(key.Tenant), int64(key.User), int16(key.kind), int64(known.last), int16(key.generation),
		placement.ExactUnits+1-known.count, int64s(known.missing))
	if err != nil {
		return false, err
	}
	var unit, hash, count, all int64
	var stored pgtype.DriverBytes // not copied; valid until the next row
	_, err = pgx.ForEachRow(rows, []any{&unit, &stored, &hash, &count, &all}, func() error {
		id := retrieve.UnitID(unit)
		if id == 0 {
			same = count == int64(known.count) && all == known.hash
			return nil
		}
		if id > known.last {
			v.count++
			v.last, v.hash = max(v.last, id), v.hash^hash
		}
		if stored == nil {
			v.missing = append(v.missing, id)
		} else {
			v.ids, v.content = append(v.ids, id), append(v.content, stored...)
		}
		return nil
	})
	coverage.Missing, coverage.Truncated = len(v.missing) > 0, known.count+v.count > placement.ExactUnits
	return same, err
}
