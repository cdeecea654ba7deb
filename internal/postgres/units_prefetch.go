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

// unitBuffers are *readUnits of about placement.ExactUnits units, whose vectors are those of the database, 1.5 MB with 384 dimensions, or coded.
var unitBuffers = sync.Pool{New: func() any { return &readUnits{} }}

func unitBuffer() *readUnits {
	r, ok := unitBuffers.Get().(*readUnits)
	if !ok {
		panic("unitBuffers contains a value that is not a *readUnits")
	}
	return r
}

// maxBuffer is the maximum size of a buffer that is used again, in bytes.
const maxBuffer = 4 << 20

// release makes a buffer available to others, unless it has become large.
func (r *readUnits) release() {
	r.lexemes, r.state = nil, userState{}
	if cap(r.added.content)+8*cap(r.added.words.entries)+8*cap(r.missing.words.entries)+r.added.texts.size()+r.missing.texts.size()+r.texts.size() <= maxBuffer {
		unitBuffers.Put(r)
	}
}

// Prefetch implements retrieve.Searcher. Without filters, it caches the units for the next search.
func (d *DB) Prefetch(ctx context.Context, scope tenant.Scope, query retrieve.Query) (p retrieve.Prefetched, few bool, err error) {
	if query.Filtered() {
		if few, err = d.Few(ctx, scope, query); few {
			p, err = d.prefetchVectors(ctx, scope, query)
		}
		return p, few, err
	}
	key := unitKey{scope, query.Kind, query.Generation}
	if known, validated := d.units.get(key); known != nil {
		if p, err = d.prefetchAdded(ctx, key, known, validated, query); err != nil || p.Nearest != nil {
			return p, p.Nearest != nil, err
		}
	}
	known, few, err := d.readStored(ctx, key)
	if err != nil {
		return p, false, err
	}
	if !few {
		if d.units.missed(key) {
			go d.loadUnits(context.WithoutCancel(ctx), key)
		}
		return p, false, nil
	}
	if p, err = d.prefetchAdded(ctx, key, known, time.Time{}, query); err == nil && p.Nearest == nil && known.count > 0 { // the stored ones are out of date
		p, err = d.prefetchAdded(ctx, key, &storedUnits{}, time.Time{}, query)
	}
	return p, true, err
}

// prefetchVectors reads the vectors of a query with filters. It returns nothing if there are more than placement.ExactUnits.
func (d *DB) prefetchVectors(ctx context.Context, scope tenant.Scope, query retrieve.Query) (retrieve.Prefetched, error) {
	r := unitBuffer()
	v := &r.added
	var coverage retrieve.Coverage
	err := d.readScope(ctx, scope, func(tx db.DBTX, _ *db.Queries) error {
		v.reset()
		coverage = retrieve.Coverage{All: true}
		return readVectors(ctx, tx, scope, query, liveUnits, placement.ExactUnits+1, &coverage, func(id retrieve.UnitID, stored []byte) {
			v.ids, v.content = append(v.ids, id), append(v.content, stored...)
		})
	})
	if err != nil || coverage.Truncated {
		r.release()
		if err != nil {
			err = fmt.Errorf("read vectors: %w", err)
		}
		return retrieve.Prefetched{}, err
	}
	return retrieve.Prefetched{Nearest: func(vector []float32) ([]retrieve.Hit, retrieve.Coverage) {
		defer r.release()
		hits, asked := make([]retrieve.Hit, len(v.ids)), rebased(vector)
		for i, id := range v.ids {
			size := len(v.content) / len(v.ids)
			hits[i] = retrieve.Hit{ID: id, Score: asked.dotHalf(v.content[i*size : (i+1)*size])}
		}
		return bestFirst(hits, query.Limit), coverage
	}}, nil
}

// prefetchAdded reads the units that were added to the known ones. It returns nothing if there are more than placement.ExactUnits, or as many
// have no vector. validated is when the known ones were validated, or zero if they were not cached. If they were not and many were read, it stores them for
// other servers.
func (d *DB) prefetchAdded(ctx context.Context, key unitKey, known *storedUnits, validated time.Time, query retrieve.Query) (retrieve.Prefetched, error) {
	read := unitBuffer()
	defer read.release()
	cached, now := !validated.IsZero(), time.Now()
	var since retrieve.UnitID
	if cached && now.Sub(validated) < query.Staleness {
		since = max(known.last-recentIDs, 0)
	}
	err := d.readScope(ctx, key.Scope, func(tx db.DBTX, _ *db.Queries) (err error) {
		known, err = read.readCurrent(ctx, tx, key, known, since, query.Text)
		return err
	})
	switch {
	case err != nil:
		return retrieve.Prefetched{}, fmt.Errorf("read units: %w", err)
	case !read.same || read.more || known.count+read.count > maxCachedUnits || len(read.missing.ids) > placement.ExactUnits:
		d.units.remove(key)
		return retrieve.Prefetched{}, nil
	}
	if read.since == 0 {
		validated = now
	}
	if !cached && len(read.added.ids) >= minStoredUnits {
		d.storeLater(context.WithoutCancel(ctx), key)
	}
	lexemes, state := read.lexemes, read.state
	var v *storedUnits
	cacheable := d.fits(key, known, read)
	if cacheable {
		v = known.with(read)
		d.units.set(key, v, validated)
	} else {
		d.units.remove(key)
		read.added.words.keep(lexemes) // an index of all words would cost more than the search
		read.missing.words.keep(lexemes)
		v = known.with(read)
	}
	p := retrieve.Prefetched{
		Nearest: func(vector []float32) ([]retrieve.Hit, retrieve.Coverage) {
			return bestFirst(v.score(vector), query.Limit), retrieve.Coverage{All: true, Missing: len(v.missing.ids) > 0}
		},
		Lexical: func() []retrieve.Hit { return v.lexical(lexemes, query.Limit) },
		Cached:  cacheable,
		Stale:   read.since > 0,
	}
	if key.kind == retrieve.Memory {
		p.Describe = func(ids []retrieve.UnitID) ([]retrieve.Described, []retrieve.UnitID) { return v.describe(ids, state) }
	}
	return p, nil
}

// fits reports whether there is space for the known units with the ones that were read, if necessary without the texts of these, which it drops then.
func (d *DB) fits(key unitKey, known *storedUnits, read *readUnits) bool {
	size, texts := known.sizeWith(read), len(read.added.texts.content)+len(read.missing.texts.content)
	switch {
	case d.units.fits(key, size):
		return true
	case !d.units.fits(key, size-texts):
		return false
	}
	read.dropTexts()
	return true
}

func (r *readUnits) dropTexts() {
	r.added.texts.drop()
	r.missing.texts.drop()
}

// loadTimeout limits the reading of the vectors of a user with many units.
const loadTimeout = 10 * time.Second

// loadUnits caches the units of an active user with many units for the next searches.
func (d *DB) loadUnits(ctx context.Context, key unitKey) {
	defer d.units.loaded()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var known storedUnits
	var read readUnits
	now := time.Now()
	err := d.readScope(ctx, key.Scope, func(tx db.DBTX, _ *db.Queries) error {
		var units, size int
		err := tx.QueryRow(ctx, estimatedSize, string(key.Tenant), int64(key.User), int16(key.kind), maxCachedUnits+1).Scan(&units, &size)
		if err != nil || units > maxCachedUnits || !d.units.fits(key, units*size) {
			return err
		}
		return read.readAdded(ctx, tx, key, &known, 0, "", maxCachedUnits)
	})
	if err != nil || !read.same || read.more || len(read.missing.ids) > placement.ExactUnits {
		return
	}
	if !d.units.fits(key, read.leastSize()+growth) {
		read.dropTexts()
	}
	if d.units.fits(key, read.leastSize()) {
		d.units.set(key, known.with(&read), now)
	}
}

// growth is the space that remains for further units when the texts of many are cached, in bytes. Without it, the next memory would displace all of them.
const growth = 1 << 20

// leastSize returns the size of the units as they are kept, in bytes, without their distinct lexemes.
func (r *readUnits) leastSize() int { return r.added.leastSize() + r.missing.leastSize() }

// estimatedSize is the number of a user's units, up to a limit, and the average size of the newest in the cache, in bytes: a code, an id, the words, and for a
// memory unitText, without its text.
var estimatedSize = fmt.Sprintf(`select (select count(*) from (select from units where tenant_id = $1 and user_id = $2 and kind = $3 and active limit $4) u),
	(select coalesce(avg(coalesce(octet_length(n.embedding), 0) / 2 + 10 + 4 * length(n.tsv) + case when $3 = %d then %d else 0 end), 0)::int from (
		select embedding, tsv from units where tenant_id = $1 and user_id = $2 and kind = $3 and active order by id desc limit 100) n)`,
	retrieve.Memory, unitTextSize)

// recentIDs is the number of ids, of all users, below the highest known one whose units are validated even if the others need not be. Ids are reserved before a text is
// embedded, so a unit can be committed after others with higher ids. At 1,000 writes per second, this is a second.
const recentIDs = 1000

// addedUnits returns a statement for the units with higher ids than the known ones, the known ones without a vector, and a row with the
// id 0: the number and a hash of the ids above $9 up to the highest known one, which tell whether they are the known ones, and the lexemes of the query.
// The units and that row can have more columns, and others rows before them.
func addedUnits(rows, columnsOfRow, columns string) string {
	unit := `select u.id, case $5::smallint when u.generation_id then u.embedding when u.next_generation_id then u.next_embedding end, tsvectorsend(u.tsv), `
	return rows + `select 0, null::bytea, null::bytea, 0, count(*), coalesce(bit_xor(hashint8extended(id, 0)), 0), (
		select array_agg(w.lexeme) from (select lexeme from unnest(to_tsvector('english', $8)) order by positions[1] limit 64) w)` + columnsOfRow + `
	from units where tenant_id = $1 and user_id = $2 and kind = $3 and active and id <= $4 and id > $9
union all (
	` + unit + `hashint8extended(u.id, 0), 0, 0, null` + columns + `
	from units u where u.tenant_id = $1 and u.user_id = $2 and u.kind = $3 and u.active and u.id > $4 order by u.id limit $6)
union all
	` + unit + `0, 0, 0, null` + columns + `
	from units u where u.tenant_id = $1 and u.user_id = $2 and u.kind = $3 and u.active and u.id = any($7::bigint[])`
}

// textRow is the id of the rows of addedMemories that are texts.
const textRow = -1

var (
	addedMessages = addedUnits("", "", "")
	// addedMemories also has the text of each memory, if no units are known, which is faster than looking it up for each unit. Otherwise the unit has its text. Long
	// texts are null. The row with the id 0 has the superseded memories and the names of the buckets (userState).
	addedMemories = addedUnits(
		fmt.Sprintf(`(select %d, null::bytea, null::bytea, 0, 0, 0, null::text[], m.id, 0, 0, 0, convert_to(m.text, 'UTF8'), null::uuid[], null::jsonb
	from memories m where $4::bigint = 0 and m.tenant_id = $1 and m.user_id = $2 and octet_length(m.text) <= %d limit $6)
union all
`, textRow, maxCachedText),
		`, null, 0, 0, 0, null, (select array_agg(m.id) from memories m where m.tenant_id = $1 and m.user_id = $2 and m.superseded_by is not null),
		(select jsonb_object_agg(b.id, b.name) from buckets b where b.tenant_id = $1 and b.user_id = $2 and not b.is_default)`,
		fmt.Sprintf(`, u.memory_id, u.group_id, u.span_start, u.span_end, case when $4::bigint > 0 then (
			select convert_to(m.text, 'UTF8') from memories m
			where m.tenant_id = $1 and m.user_id = $2 and m.id = u.memory_id and octet_length(m.text) <= %d limit 1) end, null, null`, maxCachedText))
)

// readUnits are the units that readAdded read.
type readUnits struct {
	added   unitList // with a vector
	missing unitList // without a vector, among these and the known ones
	texts   memoryTexts
	lexemes []string // distinct ones of the query, in order of their first position
	state   userState

	since retrieve.UnitID // the known units with higher ids were validated
	same  bool            // the user has exactly these, and the added ones
	more  bool            // there are more than the limit
	count int             // of those that were not known, as are the following
	last  retrieve.UnitID // the highest id
	hash  int64           // of their ids
}

// readCurrent is readAdded, except that known units may have been deleted, and that it validates all if those above since do not match. It returns those that
// exist. r.same is false if there are too many units, or if each attempt finds other ones.
func (r *readUnits) readCurrent(ctx context.Context, tx db.DBTX, key unitKey, known *storedUnits, since retrieve.UnitID, text string) (*storedUnits, error) {
	for range attempts {
		if err := r.readAdded(ctx, tx, key, known, since, text, placement.ExactUnits); err != nil || r.same {
			return known, err
		}
		if since > 0 { // validate all
			since = 0
			continue
		}
		// A unit was deleted, or one with a lower id was added.
		var err error
		if known, err = readExisting(ctx, tx, key, known); err != nil || known.count > maxCachedUnits || len(known.missing.ids) > placement.ExactUnits {
			return known, err
		}
	}
	return known, nil
}

// readAdded replaces the units by those that the user has in addition to the known ones. It validates the known ones with ids above since by their number, and if
// since is 0, by a hash of their ids.
func (r *readUnits) readAdded(ctx context.Context, tx db.DBTX, key unitKey, known *storedUnits, since retrieve.UnitID, text string, limit int) error {
	r.added.reset()
	r.missing.reset()
	r.texts.reset()
	*r = readUnits{added: r.added, missing: r.missing, texts: r.texts, since: since}
	statement := addedMessages
	if key.kind == retrieve.Memory {
		statement = addedMemories
	}
	rows, err := withGenericPlan(tx).Query(ctx, statement, string(key.Tenant), int64(key.User), int16(key.kind), int64(known.last), int16(key.generation),
		limit+1, int64s(known.missing.ids), queriedWords(text), int64(since))
	if err != nil {
		return err
	}
	var unit, hash, count, all int64
	var vector, words, whole pgtype.DriverBytes // not copied; valid until the next row
	var lexemes []string
	columns := []any{&unit, &vector, &words, &hash, &count, &all, &lexemes}
	var owner pgtype.UUID
	var bucket int64
	var start, end int32
	var state userState
	if key.kind == retrieve.Memory {
		columns = append(columns, &owner, &bucket, &start, &end, &whole, &state.superseded, &state.buckets)
	}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		id := retrieve.UnitID(unit)
		switch id {
		case textRow:
			r.texts.add(owner.Bytes, whole)
			return nil
		case 0:
			r.same, r.lexemes, r.state = count == int64(known.countAbove(since)) && (since > 0 || all == known.hash), lexemes, state
			return nil
		}
		if id > known.last {
			r.count++
			r.last, r.hash = max(r.last, id), r.hash^hash
		}
		list := &r.added
		if vector == nil {
			list = &r.missing
		} else {
			list.content = appendCode(list.content, vector)
		}
		list.ids = append(list.ids, id)
		if key.kind == retrieve.Memory {
			text := []byte(whole)
			if text == nil {
				text = r.texts.find(owner.Bytes)
			}
			list.texts.add(owner.Bytes, bucket, int(start), cut(text, int(start), int(end)))
		}
		return list.words.add(words)
	})
	r.more = r.count > limit
	return err
}

// readExisting returns the known units that still exist. It does not read more than maxCachedUnits + 1 ids.
func readExisting(ctx context.Context, tx db.DBTX, key unitKey, known *storedUnits) (*storedUnits, error) {
	var ids []retrieve.UnitID
	var hash int64
	err := tx.QueryRow(ctx, `select coalesce(array_agg(id order by id), '{}'), coalesce(bit_xor(hashint8extended(id, 0)), 0) from (
			select id from units where tenant_id = $1 and user_id = $2 and kind = $3 and active and id <= $4 limit $5) u`,
		string(key.Tenant), int64(key.User), int16(key.kind), int64(known.last), maxCachedUnits+1).Scan(&ids, &hash)
	if err != nil {
		return nil, err
	}
	return known.among(ids, hash), nil
}
