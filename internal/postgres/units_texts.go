package postgres

import (
	"slices"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// maxCachedText is the maximum length of the text of a memory of which units are cached with their text, in bytes. A search reads others from the database.
const maxCachedText = 1000

// maxReadTexts is the maximum size of the texts that are read at once, in bytes. A search reads others from the database.
const maxReadTexts = 4 << 20

// unitTexts are the texts of units of memories, and what else a search needs to describe them. They are empty for units of messages.
type unitTexts struct {
	units   []unitText
	content []byte // the texts, one after another
}

// unitText is a unit of a memory.
type unitText struct {
	owner  uuid.UUID
	bucket int64
	start  int32 // of the unit in the text of the memory
	end    int32 // of its own text in unitTexts.content; the text of a unit that is not known is empty
}

const unitTextSize = 32

// add adds a unit. It copies the text, which is nil if it is not known.
func (x *unitTexts) add(owner uuid.UUID, bucket int64, start int, text []byte) {
	x.content = append(x.content, text...)
	x.units = append(x.units, unitText{owner, bucket, integer(start), integer(len(x.content))})
}

func (x *unitTexts) addAll(other *unitTexts) {
	first := integer(len(x.content))
	for _, u := range other.units {
		u.end += first
		x.units = append(x.units, u)
	}
	x.content = append(x.content, other.content...)
}

func (x *unitTexts) reset() { x.units, x.content = x.units[:0], x.content[:0] }

func (x *unitTexts) clone() unitTexts {
	return unitTexts{slices.Clone(x.units), slices.Clone(x.content)}
}

// drop drops the texts, as if they were not known.
func (x *unitTexts) drop() {
	x.content = x.content[:0]
	for i := range x.units {
		x.units[i].end = 0
	}
}

// length returns the bytes in use, and size the allocated ones.
func (x *unitTexts) length() int { return len(x.content) + unitTextSize*len(x.units) }
func (x *unitTexts) size() int   { return cap(x.content) + unitTextSize*cap(x.units) }

// text returns the text of the unit with this number.
func (x *unitTexts) text(i int) []byte {
	start := int32(0)
	if i > 0 {
		start = x.units[i-1].end
	}
	return x.content[start:x.units[i].end]
}

// memoryTexts are texts of memories.
type memoryTexts struct {
	spans   map[uuid.UUID][2]int // start and end in content
	content []byte
}

// add adds the text of a memory, unless there are too many. It copies the text.
func (x *memoryTexts) add(id uuid.UUID, text []byte) {
	if len(x.content)+len(text) > maxReadTexts {
		return
	}
	if x.spans == nil {
		x.spans = map[uuid.UUID][2]int{}
	}
	start := len(x.content)
	x.content = append(x.content, text...)
	x.spans[id] = [2]int{start, len(x.content)}
}

// find returns the text of a memory, or nil if it is not known.
func (x *memoryTexts) find(id uuid.UUID) []byte {
	at := x.spans[id]
	return x.content[at[0]:at[1]]
}

func (x *memoryTexts) reset() {
	clear(x.spans)
	x.content = x.content[:0]
}

// size returns the approximate number of allocated bytes.
func (x *memoryTexts) size() int { return cap(x.content) + 64*len(x.spans) }

// cut returns the text of a unit, or nothing if that of the memory is not known.
func cut(text []byte, start, end int) []byte {
	if start < 0 || end < start || end > len(text) {
		return nil
	}
	return text[start:end]
}

// userState holds the data of a user's memories that a search needs and that changes without new units.
type userState struct {
	superseded []uuid.UUID      // memories that are linked to newer ones
	buckets    map[int64]string // names of the buckets, without the default one
}

// describe returns the units of memories with these ids that are cached with their texts, in no particular order, and the other ids.
func (v *storedUnits) describe(ids []retrieve.UnitID, state userState) (found []retrieve.Described, others []retrieve.UnitID) {
	wanted, superseded := retrieve.NewUnitSet(ids), make(map[uuid.UUID]bool, len(state.superseded))
	for _, id := range state.superseded {
		superseded[id] = true
	}
	found = make([]retrieve.Described, 0, len(ids))
	for p := range v.all {
		size := len(p.content) / max(len(p.ids), 1)
		for i, id := range p.ids {
			if !wanted.Has(id) || v.deleted[id] || i >= len(p.texts.units) {
				continue
			}
			text, u := p.texts.text(i), p.texts.units[i]
			if len(text) == 0 {
				continue
			}
			wanted.Remove(id)
			found = append(found, retrieve.Described{
				ID: id, Owner: u.owner.String(), Start: int(u.start), End: int(u.start) + len(text), Human: true, Text: string(text),
				Heading: state.buckets[u.bucket], Superseded: superseded[u.owner], Vector: decodeCode(p.content[i*size : (i+1)*size]),
			})
		}
	}
	return found, slices.DeleteFunc(slices.Clone(ids), func(id retrieve.UnitID) bool { return !wanted.Has(id) })
}
