package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// sentTSVector returns words with their numbers of occurrences as tsvectorsend does.
func sentTSVector(words map[string]int) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(words)))
	for _, w := range slices.Sorted(maps.Keys(words)) {
		out = append(append(out, w...), 0)
		out = binary.BigEndian.AppendUint16(out, uint16(words[w]))
		for i := range words[w] {
			out = binary.BigEndian.AppendUint16(out, uint16(i+1))
		}
	}
	return out
}

// TestWordIndex: an index finds each word in exactly the units that have it, also if these are added in several lists and indexes.
func TestWordIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		units := rapid.SliceOf(rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "è", "long word", "e"}), rapid.IntRange(0, 300))).Draw(r, "units")
		split := rapid.IntRange(0, len(units)).Draw(r, "split")
		list := func(units []map[string]int) (l wordList) {
			for _, u := range units {
				if err := l.add(sentTSVector(u)); err != nil {
					r.Fatal(err)
				}
			}
			return l
		}
		first, second := list(units[:split]), list(units[split:])
		firstIndex, secondIndex := first.index(), second.index()
		var joined wordList
		joined.addIndex(&firstIndex)
		joined.addIndex(&secondIndex)
		words := []string{"a", "b", "è", "long word", "e", "other"}
		if rapid.Bool().Draw(r, "keep some words only") {
			words = words[rapid.IntRange(0, len(words)).Draw(r, "from"):]
			joined.keep(words)
		}
		got := joined.index()
		for _, word := range words {
			var want, found []string
			for i, u := range units {
				if n, ok := u[word]; ok {
					want = append(want, fmt.Sprint(i, " ", min(max(n, 1), maxOccurrences)))
				}
			}
			for _, p := range got.find(word) {
				found = append(found, fmt.Sprint(p.unit(), " ", p.occurrences()))
			}
			if !slices.Equal(want, found) {
				r.Errorf("%q is in the units %v, want %v", word, found, want)
			}
		}
		for i, u := range units {
			if int(got.lengths[i]) != len(u) {
				r.Errorf("unit %d has %d words, want %d", i, got.lengths[i], len(u))
			}
		}
	})
}

// TestWordListKeepsItsCapacity: a list that is used again after words were dropped need not grow again.
func TestWordListKeepsItsCapacity(t *testing.T) {
	t.Parallel()
	var l wordList
	for range 1000 {
		if err := l.add(sentTSVector(map[string]int{"a": 1, "b": 1, "c": 1})); err != nil {
			t.Fatal(err)
		}
	}
	capacity := cap(l.entries)
	l.keep([]string{"a"})
	if got := len(l.index().postings); got != 1000 {
		t.Errorf("%d units have the word that was kept, want 1000", got)
	}
	if l.reset(); cap(l.entries) != capacity {
		t.Errorf("the list has a capacity of %d entries, want %d", cap(l.entries), capacity)
	}
}

// BenchmarkCachedWords ranks units of 20 words, most of which are of a few frequent ones, by seven words.
func BenchmarkCachedWords(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1000, 20_000} {
		var list unitList
		for id := range n {
			words := map[string]int{}
			for range 20 {
				words[fmt.Sprint("lorem", int(4000*math.Pow(r.Float64(), 3)))]++
			}
			list.ids = append(list.ids, retrieve.UnitID(id+1))
			if err := list.words.add(sentTSVector(words)); err != nil {
				b.Fatal(err)
			}
		}
		units := &storedUnits{parts: []unitPart{list.part()}, count: n}
		b.Run(fmt.Sprint("units=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if hits := units.lexical([]string{"lorem1", "lorem2", "lorem30", "lorem200", "lorem400", "lorem1000", "ipsum"}, 100); len(hits) != 100 {
					b.Fatalf("%d units, want 100", len(hits))
				}
			}
		})
	}
}

func TestMalformedTSVector(t *testing.T) {
	t.Parallel()
	sent := sentTSVector(map[string]int{"one": 1, "two": 2})
	for n := range sent {
		if err := new(wordList).add(sent[:n]); !errors.Is(err, errTSVector) {
			t.Errorf("the first %d of %d bytes: %v, want %v", n, len(sent), err, errTSVector)
		}
	}
	if err := new(wordList).add(sent); err != nil {
		t.Error(err)
	}
}

// TestParts: a stored part is the same as the one that was stored, and a part that was cut is refused.
func TestParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l unitList
		memories := rapid.Bool().Draw(t, "memories")
		for range rapid.IntRange(0, 5).Draw(t, "units") {
			l.ids = append(l.ids, retrieve.UnitID(rapid.Int64().Draw(t, "id")))
			l.content = appendCode(l.content, encodeHalf(rapid.SliceOfN(rapid.Float32Range(-1, 1), 3, 3).Draw(t, "vector")))
			for _, word := range rapid.SliceOfNDistinct(rapid.Uint32Range(0, 9), 0, 4, rapid.ID).Draw(t, "words") {
				l.words.append(word, len(l.words.lengths), rapid.IntRange(1, maxOccurrences).Draw(t, "occurrences"))
			}
			l.words.lengths = append(l.words.lengths, rapid.Uint16().Draw(t, "length"))
			if memories {
				var owner uuid.UUID
				copy(owner[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "owner"))
				l.texts.add(owner, rapid.Int64().Draw(t, "bucket"), rapid.IntRange(0, 1000).Draw(t, "start"), rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
			}
		}
		part := l.part()
		content := appendPart(nil, &part)
		got, err := parsePart(content)
		if diff := cmp.Diff(part, got, cmp.AllowUnexported(unitPart{}, wordIndex{}, unitTexts{}, unitText{}), cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v, stored and read (-want +got):\n%s", err, diff)
		}
		if _, err := parsePart(content[:rapid.IntRange(0, len(content)-1).Draw(t, "length")]); err == nil {
			t.Fatal("a part that was cut was not refused")
		}
	})
}
