package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// cacheFormat is the format of appendPart. A change of it, of appendCode, of lexemeHash or of the words in units.tsv needs a new number.
const cacheFormat = 1

// minStoredUnits is the minimum number of units that are stored in the format of the cache. Reading 1,000 from their rows takes about 10 ms of processor time, and
// fewer proportionally less.
const minStoredUnits = 256

// readStored returns the units of a user that are stored in the format of the cache, if there are any, and whether the user has few units. The units of a user
// with many are not read.
func (d *DB) readStored(ctx context.Context, key unitKey) (v *storedUnits, few bool, err error) {
	var row db.CachedUnitsRow
	err = d.readScope(ctx, key.Scope, func(_ db.DBTX, q *db.Queries) (err error) {
		row, err = q.CachedUnits(ctx, db.CachedUnitsParams{
			TenantID: string(key.Tenant), UserID: int64(key.User), Kind: int16(key.kind), GenerationID: int16(key.generation), Format: cacheFormat,
			TooMany: placement.ExactUnits + 1,
		})
		return err
	})
	if err != nil { // The units can be read from their own rows.
		few, err = d.Few(ctx, key.Scope, retrieve.Query{Kind: key.kind, Generation: key.generation})
		return &storedUnits{}, few, err
	}
	few = row.Total <= placement.ExactUnits
	if part, err := parsePart(row.Content); err == nil && len(part.ids) > 0 && len(part.ids) == int(row.Units) {
		return &storedUnits{parts: []unitPart{part}, count: len(part.ids), last: retrieve.UnitID(row.LastUnit), hash: row.Hash}, few, nil
	}
	return &storedUnits{}, few, nil
}

// maxStoring is the maximum number of users whose units wait to be stored.
const maxStoring = 100

// storeLater stores the units of a user in the background, one user at a time. If many wait, or if it fails, a later search does it.
func (d *DB) storeLater(ctx context.Context, key unitKey) {
	if !d.units.wait(key) {
		return
	}
	go func() {
		defer d.units.stored(key)
		d.units.storing.Lock()
		defer d.units.storing.Unlock()
		err := d.storeUnits(ctx, key, minStoredUnits)
		if failed := d.units.failing.Swap(err != nil); err != nil && !failed {
			d.log.WarnContext(ctx, "cached units not stored; searches read the row of each unit", "tenant", key.Tenant, "error", err)
		}
	}()
}

// storeTimeout limits the storing of the units of a user in the format of the cache.
const storeTimeout = 10 * time.Second

// storeUnits stores the units of a user that have a vector in the format of the cache, instead of those that were stored before, unless they are fewer
// than least or more than are read before a search, or another server stores them.
func (d *DB) storeUnits(ctx context.Context, key unitKey, least int) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return d.writeScope(ctx, key.Scope, func(tx pgx.Tx, q *db.Queries) error {
		if locked, err := q.TryLockCachedUnits(ctx, int64(key.User)); err != nil || !locked {
			return err
		}
		var read readUnits
		if err := read.readAdded(ctx, tx, key, &storedUnits{}, 0, "", placement.ExactUnits); err != nil || read.more || len(read.added.ids) < least {
			return err
		}
		user := db.DeleteCachedUnitsParams{TenantID: string(key.Tenant), UserID: int64(key.User), Kind: int16(key.kind)}
		if err := q.DeleteCachedUnits(ctx, user); err != nil {
			return err
		}
		part := read.added.part()
		return q.StoreCachedUnits(ctx, db.StoreCachedUnitsParams{
			TenantID: user.TenantID, UserID: user.UserID, Kind: user.Kind, GenerationID: int16(key.generation), Format: cacheFormat,
			Content: appendPart(nil, &part), Ids: int64s(part.ids),
		})
	})
}

var errPart = errors.New("PostgreSQL sent malformed cached units")

// appendPart appends a part in little endian: the numbers of ids, of bytes of vectors, of lexemes, of postings, of texts and of bytes of texts
// (4 bytes each), and then the fields in their order.
func appendPart(out []byte, p *unitPart) []byte {
	for _, n := range []int{len(p.ids), len(p.content), len(p.words.hashes), len(p.words.postings), len(p.texts.units), len(p.texts.content)} {
		out = binary.LittleEndian.AppendUint32(out, uint32(integer(n))) //nolint:gosec // not negative
	}
	for _, id := range p.ids {
		out = binary.LittleEndian.AppendUint64(out, uint64(id)) //nolint:gosec // not negative
	}
	out = append(out, p.content...)
	for _, hash := range p.words.hashes {
		out = binary.LittleEndian.AppendUint32(out, hash)
	}
	for _, end := range p.words.ends {
		out = binary.LittleEndian.AppendUint32(out, uint32(end)) //nolint:gosec // not negative
	}
	for _, posting := range p.words.postings {
		out = binary.LittleEndian.AppendUint32(out, uint32(posting))
	}
	for _, length := range p.words.lengths {
		out = binary.LittleEndian.AppendUint16(out, length)
	}
	for _, u := range p.texts.units {
		out = append(out, u.owner[:]...)
		out = binary.LittleEndian.AppendUint64(out, uint64(u.bucket)) //nolint:gosec // converted back
		out = binary.LittleEndian.AppendUint32(out, uint32(u.start))  //nolint:gosec // not negative
		out = binary.LittleEndian.AppendUint32(out, uint32(u.end))    //nolint:gosec // not negative
	}
	return append(out, p.texts.content...)
}

// parsePart parses what appendPart appended, and checks all numbers that are used as indexes.
func parsePart(content []byte) (p unitPart, err error) {
	var n [6]int
	const header = 4 * len(n)
	if len(content) < header {
		return p, errPart
	}
	for i := range n {
		n[i] = int(binary.LittleEndian.Uint32(content[4*i:]))
	}
	ids, vectors, lexemes, postings, texts, text := n[0], n[1], n[2], n[3], n[4], n[5]
	if len(content) != header+8*ids+vectors+8*lexemes+4*postings+2*ids+unitTextSize*texts+text {
		return p, errPart
	}
	next := content[header:]
	cut := func(n int) []byte {
		field := next[:n:n]
		next = next[n:]
		return field
	}
	p.ids = numbers[retrieve.UnitID](cut(8*ids), 8, binary.LittleEndian.Uint64)
	p.content = slices.Clone(cut(vectors)) // the rest of the row is not kept
	p.words.hashes = numbers[uint32](cut(4*lexemes), 4, binary.LittleEndian.Uint32)
	p.words.ends = numbers[int32](cut(4*lexemes), 4, binary.LittleEndian.Uint32)
	p.words.postings = numbers[posting](cut(4*postings), 4, binary.LittleEndian.Uint32)
	p.words.lengths = numbers[uint16](cut(2*ids), 2, binary.LittleEndian.Uint16)
	p.texts.units = make([]unitText, texts)
	for i := range p.texts.units {
		u := cut(unitTextSize)
		p.texts.units[i] = unitText{
			bucket: int64(binary.LittleEndian.Uint64(u[16:])), start: int32(binary.LittleEndian.Uint32(u[24:])), end: int32(binary.LittleEndian.Uint32(u[28:])), //nolint:gosec // as converted
		}
		copy(p.texts.units[i].owner[:], u)
	}
	p.texts.content = slices.Clone(cut(text))
	if !p.valid() {
		return unitPart{}, errPart
	}
	return p, nil
}

// valid reports whether all numbers that are used as indexes are within bounds.
func (p *unitPart) valid() bool {
	if len(p.content)%max(len(p.ids), 1) != 0 || len(p.texts.units) > 0 && len(p.texts.units) != len(p.ids) {
		return false
	}
	ends := make([]int32, len(p.texts.units))
	for i, u := range p.texts.units {
		ends[i] = u.end
	}
	return areEnds(ends, len(p.texts.content)) && areEnds(p.words.ends, len(p.words.postings)) &&
		!slices.ContainsFunc(p.words.postings, func(found posting) bool { return found.unit() >= len(p.ids) })
}

// areEnds reports whether these are the ends of consecutive parts of a list of this length.
func areEnds(ends []int32, length int) bool {
	last := int32(0)
	for _, end := range ends {
		if end < last {
			return false
		}
		last = end
	}
	return int(last) == length
}

// numbers decodes numbers of size bytes.
func numbers[N, U interface {
	~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64
}](field []byte, size int, decode func([]byte) U) []N {
	out := make([]N, len(field)/size)
	for i := range out {
		out[i] = N(decode(field[i*size:]))
	}
	return out
}
