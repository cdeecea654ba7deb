package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// vectorBuffers are *vectorParts of up to placement.ExactUnits units, whose vectors are those of the database, 1.5 MB with 384 dimensions, or coded.
var vectorBuffers = sync.Pool{New: func() any { return &vectorPart{} }}

func vectorBuffer() *vectorPart {
	v, ok := vectorBuffers.Get().(*vectorPart)
	if !ok {
		panic("vectorBuffers contains a value that is no *vectorPart")
	}
	return v
}

// Prefetch implements retrieve.Searcher. Without filters, it caches the vectors for the next search.
func (d *DB) Prefetch(ctx context.Context, scope tenant.Scope, query retrieve.Query) (p retrieve.Prefetched, few bool, err error) {
	if query.Group != 0 || byOwner(query) || byMessage(query) || query.Owners != nil {
		if few, err = d.Few(ctx, scope, query); few {
			p, err = d.prefetchAll(ctx, scope, query)
		}
		return p, few, err
	}
	key := vectorKey{scope, query.Kind, query.Generation}
	if known := d.vectors.get(key); known != nil {
		if p, err = d.prefetchAdded(ctx, key, known, query.Limit); err != nil || p != nil {
			return p, p != nil, err
		}
	}
	few, err = d.Few(ctx, scope, query)
	switch {
	case err != nil:
	case !few && d.vectors.missed(key):
		go d.loadVectors(context.WithoutCancel(ctx), key)
	case few && d.vectors.admits():
		p, err = d.prefetchAdded(ctx, key, &storedVectors{}, query.Limit)
	case few:
		p, err = d.prefetchAll(ctx, scope, query)
	}
	return p, few, err
}

// prefetchAll reads the vectors of a query, which may have filters. It returns nil if there are more than placement.ExactUnits.
func (d *DB) prefetchAll(ctx context.Context, scope tenant.Scope, query retrieve.Query) (retrieve.Prefetched, error) {
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
		hits, asked := make([]retrieve.Hit, len(v.ids)), rebased(vector)
		for i, id := range v.ids {
			size := len(v.content) / len(v.ids)
			hits[i] = retrieve.Hit{ID: id, Score: asked.dotHalf(v.content[i*size : (i+1)*size])}
		}
		return bestFirst(hits, query.Limit), coverage
	}, nil
}

// prefetchAdded reads the vectors that were added to the known ones. It returns nil if there are more than placement.ExactUnits.
func (d *DB) prefetchAdded(ctx context.Context, key vectorKey, known *storedVectors, limit int) (retrieve.Prefetched, error) {
	added := vectorBuffer()
	defer vectorBuffers.Put(added)
	var read readUnits
	err := d.readScope(ctx, key.Scope, func(tx db.DBTX, _ *db.Queries) error {
		for range attempts {
			var err error
			if read, err = added.readAdded(ctx, tx, key, known, placement.ExactUnits); err != nil || read.same {
				return err
			}
			// A unit was deleted, or one with a lower id was added.
			if known, err = readExisting(ctx, tx, key, known); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read vectors: %w", err)
	case !read.same || read.more || known.count+read.count > maxCachedUnits:
		d.vectors.remove(key)
		return nil, nil
	}
	v := known.with(added, read)
	d.vectors.set(key, v)
	return func(vector []float32) ([]retrieve.Hit, retrieve.Coverage) {
		return bestFirst(v.score(vector), limit), retrieve.Coverage{All: true, Missing: len(v.missing) > 0}
	}, nil
}

// loadTimeout limits the reading of the vectors of a user with many units.
const loadTimeout = 10 * time.Second

// loadVectors caches the vectors of an active user with many units for the next searches.
func (d *DB) loadVectors(ctx context.Context, key vectorKey) {
	defer d.vectors.loaded()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var v storedVectors
	var all vectorPart
	var read readUnits
	err := d.readScope(ctx, key.Scope, func(tx db.DBTX, q *db.Queries) error {
		n, err := q.CountUnits(ctx, db.CountUnitsParams{TenantID: string(key.Tenant), UserID: int64(key.User), Kind: int16(key.kind), AtMost: maxCachedUnits + 1})
		if err != nil || n > maxCachedUnits {
			return err
		}
		read, err = all.readAdded(ctx, tx, key, &v, maxCachedUnits)
		return err
	})
	if err == nil && read.same && !read.more {
		d.vectors.set(key, v.with(&all, read))
	}
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

// readUnits are the units that readAdded read.
type readUnits struct {
	same    bool              // the user has exactly the known units, and these
	more    bool              // there are more than the limit
	missing []retrieve.UnitID // those without a vector, among these and the known ones
	count   int               // of those that were not known, as are the following
	last    retrieve.UnitID   // the highest id
	hash    int64             // of their ids
}

// readAdded replaces the vectors by those that the user has in addition to the known ones.
func (v *vectorPart) readAdded(ctx context.Context, tx db.DBTX, key vectorKey, known *storedVectors, limit int) (read readUnits, err error) {
	v.ids, v.content = v.ids[:0], v.content[:0]
	rows, err := tx.Query(ctx, addedVectors, string(key.Tenant), int64(key.User), int16(key.kind), int64(known.last), int16(key.generation),
		limit+1, int64s(known.missing))
	if err != nil {
		return read, err
	}
	var unit, hash, count, all int64
	var stored pgtype.DriverBytes // not copied; valid until the next row
	_, err = pgx.ForEachRow(rows, []any{&unit, &stored, &hash, &count, &all}, func() error {
		id := retrieve.UnitID(unit)
		if id == 0 {
			read.same = count == int64(known.count) && all == known.hash
			return nil
		}
		if id > known.last {
			read.count++
			read.last, read.hash = max(read.last, id), read.hash^hash
		}
		if stored == nil {
			read.missing = append(read.missing, id)
		} else {
			v.ids, v.content = append(v.ids, id), appendCode(v.content, stored)
		}
		return nil
	})
	read.more = read.count > limit
	return read, err
}

// readExisting returns the known vectors of units that still exist.
func readExisting(ctx context.Context, tx db.DBTX, key vectorKey, known *storedVectors) (*storedVectors, error) {
	var ids []retrieve.UnitID
	var hash int64
	err := tx.QueryRow(ctx, `select coalesce(array_agg(id order by id), '{}'), coalesce(bit_xor(hashint8extended(id, 0)), 0)
		from units where tenant_id = $1 and user_id = $2 and kind = $3 and active and id <= $4`,
		string(key.Tenant), int64(key.User), int16(key.kind), int64(known.last)).Scan(&ids, &hash)
	if err != nil {
		return nil, err
	}
	return known.among(ids, hash), nil
}
