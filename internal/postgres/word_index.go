package postgres

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// wordIndex is an inverted index of the lexemes of units, which are numbered from 0. It has a hash of each lexeme. Among 93,000 distinct ones,
// one collision is expected: each of the two then also finds the units of the other.
type wordIndex struct {
	hashes   []uint32 // of the lexemes, in order
	ends     []int32  // of each lexeme's postings
	postings []posting
	lengths  []uint16 // the number of distinct lexemes of each unit
}

// posting is the number of a unit, and in the lowest 8 bits how often it has the lexeme, at most maxOccurrences.
type posting uint32

const (
	occurrenceBits = 8
	maxOccurrences = 1<<occurrenceBits - 1
)

func (p posting) unit() int        { return int(p >> occurrenceBits) }
func (p posting) occurrences() int { return int(p & maxOccurrences) }

// lexemeHash is the same in each process.
func lexemeHash(lexeme []byte) uint32 {
	return uint32(xxhash.Sum64(lexeme)) //nolint:gosec // the lower half of the hash
}

// find returns the postings of a lexeme.
func (x *wordIndex) find(lexeme string) []posting {
	i, ok := slices.BinarySearch(x.hashes, lexemeHash([]byte(lexeme)))
	if !ok {
		return nil
	}
	start := int32(0)
	if i > 0 {
		start = x.ends[i-1]
	}
	return x.postings[start:x.ends[i]]
}

// size returns the allocated bytes.
func (x *wordIndex) size() int {
	return 4*cap(x.hashes) + 4*cap(x.ends) + 4*cap(x.postings) + 2*cap(x.lengths)
}

// wordList collects the lexemes of units for an index.
type wordList struct {
	entries []uint64 // the hash of a lexeme, then its posting
	lengths []uint16
}

func (l *wordList) reset() { l.entries, l.lengths = l.entries[:0], l.lengths[:0] }

var errTSVector = errors.New("PostgreSQL sent a malformed tsvector")

// add adds a unit with a tsvector in the format of tsvectorsend: the number of lexemes (4 bytes), and for each its text, a zero byte,
// the number of positions (2 bytes) and the positions (2 bytes each).
func (l *wordList) add(tsv []byte) error {
	if len(tsv) < 4 {
		return errTSVector
	}
	unit, n := len(l.lengths), binary.BigEndian.Uint32(tsv)
	tsv = tsv[4:]
	for range n {
		end := slices.Index(tsv, 0)
		if end < 0 || len(tsv) < end+3 {
			return errTSVector
		}
		positions := int(binary.BigEndian.Uint16(tsv[end+1:]))
		next := end + 3 + 2*positions
		if len(tsv) < next {
			return errTSVector
		}
		l.append(lexemeHash(tsv[:end]), unit, min(max(positions, 1), maxOccurrences))
		tsv = tsv[next:]
	}
	l.lengths = append(l.lengths, uint16(min(n, math.MaxUint16)))
	return nil
}

func (l *wordList) append(hash uint32, unit, occurrences int) {
	l.entries = append(l.entries, uint64(hash)<<32|uint64(unit)<<occurrenceBits|uint64(occurrences)) //nolint:gosec // not negative
}

// addIndex adds the units of an index.
func (l *wordList) addIndex(x *wordIndex) {
	first, start := len(l.lengths), int32(0)
	for i, hash := range x.hashes {
		for _, p := range x.postings[start:x.ends[i]] {
			l.append(hash, first+p.unit(), p.occurrences())
		}
		start = x.ends[i]
	}
	l.lengths = append(l.lengths, x.lengths...)
}

// keep drops all but these lexemes. The number of lexemes of each unit is unchanged.
func (l *wordList) keep(lexemes []string) {
	kept := make(map[uint32]bool, len(lexemes))
	for _, lexeme := range lexemes {
		kept[lexemeHash([]byte(lexeme))] = true
	}
	l.entries = slices.DeleteFunc(l.entries, func(e uint64) bool { return !kept[uint32(e>>32)] })
}

// index returns an index of the units. It sorts the list.
func (l *wordList) index() wordIndex {
	l.sort()
	lexemes, last := 0, uint64(math.MaxUint64)
	for _, e := range l.entries {
		if e>>32 != last {
			lexemes, last = lexemes+1, e>>32
		}
	}
	x := wordIndex{make([]uint32, 0, lexemes), make([]int32, 0, lexemes), make([]posting, len(l.entries)), slices.Clone(l.lengths)}
	for i, e := range l.entries {
		x.postings[i] = posting(e) //nolint:gosec // the lower half
		if hash := uint32(e >> 32); len(x.hashes) == 0 || x.hashes[len(x.hashes)-1] != hash {
			x.hashes, x.ends = append(x.hashes, hash), append(x.ends, 0)
		}
		x.ends[len(x.ends)-1] = int32(i + 1)
	}
	return x
}

// sort sorts the entries by the hash; those with the same hash keep their order, which is that of the units. It is a radix sort, which
// is faster than slices.Sort.
func (l *wordList) sort() {
	const digit, low = 11, 32 // bits of a digit, and below the hash
	from, to := l.entries, make([]uint64, len(l.entries))
	for shift := low; shift < 64; shift += digit {
		var starts [1 << digit]int
		for _, e := range from {
			starts[e>>shift&(1<<digit-1)]++
		}
		sum := 0
		for i := range starts {
			starts[i], sum = sum, sum+starts[i]
		}
		for _, e := range from {
			at := &starts[e>>shift&(1<<digit-1)]
			to[*at] = e
			*at++
		}
		from, to = to, from
	}
	copy(l.entries, from) // the list keeps its capacity, which is larger if entries were dropped
}
