package postgres

import (
	"cmp"
	"math"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// The parameters of the ranking by words are those of the functions lexical_terms and lexical_ranking.
const (
	sampledUnits = 300  // newest units in which the rarity of a word is estimated
	fewUnits     = 50   // with fewer, no word is common
	rareIDF      = 0.5  // of a word that is not common
	rankedTerms  = 6    // number of words that count, the rarest
	rankedUnits  = 5000 // newest units that are ranked if all words are common
)

// term is a lexeme of a query that occurs in the user's units.
type term struct {
	lexeme string
	idf    float64
}

// lexical returns the best units for the lexemes of a query, best first, with the scores of lexical_ranking. That function
// leaves out units with few of the words if a user has more than about 5,000 units and many match.
func (v *storedUnits) lexical(lexemes []string, limit int) []retrieve.Hit {
	terms := v.terms(lexemes)
	if len(terms) == 0 {
		return nil
	}
	since := retrieve.UnitID(0)
	if v.count > rankedUnits && terms[0].idf <= rareIDF {
		since = v.newest(rankedUnits)
	}
	var hits []retrieve.Hit
	for p := range v.all {
		hits = p.lexical(terms, func(id retrieve.UnitID) bool { return id >= since && !v.deleted[id] }, hits)
	}
	hits = bestFirst(hits, limit)
	return hits[:min(limit, len(hits))]
}

// terms returns the rarest lexemes that occur in a unit, the rarest first, without common ones if there are others.
func (v *storedUnits) terms(lexemes []string) []term {
	since, n := v.newest(sampledUnits), float64(min(v.count, sampledUnits))
	var terms []term
	rare := false
	for _, l := range lexemes {
		sampled, exists := 0.0, false
		for p := range v.all {
			for _, found := range p.words.find(l) {
				if id := p.ids[found.unit()]; !v.deleted[id] {
					exists = true
					if id >= since {
						sampled++
					}
				}
			}
		}
		if exists {
			idf := math.Log(1 + (n-sampled+0.5)/(sampled+0.5))
			terms, rare = append(terms, term{l, idf}), rare || idf > rareIDF
		}
	}
	if n >= fewUnits && rare {
		terms = slices.DeleteFunc(terms, func(t term) bool { return t.idf <= rareIDF })
	}
	slices.SortFunc(terms, func(a, b term) int { return cmp.Or(cmp.Compare(b.idf, a.idf), cmp.Compare(a.lexeme, b.lexeme)) })
	return terms[:min(len(terms), rankedTerms)]
}

// all passes every part to yield.
func (v *storedUnits) all(yield func(*unitPart) bool) {
	for i := range v.parts {
		if !yield(&v.parts[i]) {
			return
		}
	}
	yield(&v.missing)
}

// newest returns the lowest id of the n newest existing units, or 0 if there are fewer.
func (v *storedUnits) newest(n int) retrieve.UnitID {
	if v.count < n {
		return 0
	}
	ids := make([]retrieve.UnitID, 0, v.count)
	for p := range v.all {
		for _, id := range p.ids {
			if !v.deleted[id] {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids[len(ids)-n]
}

// lexical appends the units that have one of the terms and are wanted.
func (p *unitPart) lexical(terms []term, wanted func(retrieve.UnitID) bool, hits []retrieve.Hit) []retrieve.Hit {
	scores := make([]float64, len(p.ids))
	for _, t := range terms {
		for _, found := range p.words.find(t.lexeme) {
			scores[found.unit()] += t.idf * occurrenceRanks[found.occurrences()]
		}
	}
	for unit, score := range scores {
		if id := p.ids[unit]; score > 0 && wanted(id) {
			hits = append(hits, retrieve.Hit{ID: id, Score: score / (1 + math.Log(float64(p.words.lengths[unit])))})
		}
	}
	return hits
}

// occurrenceRanks are the ts_rank of a word by its number of occurrences, with the rounding of PostgreSQL's calc_rank_or.
var occurrenceRanks = func() (ranks [maxOccurrences + 1]float64) {
	const weight = float32(0.1) // of words that have none of the labels A to C
	sum := float32(0)
	for n := 1; n <= maxOccurrences; n++ {
		sum += weight / float32(n*n)
		first := weight + sum
		ranks[n] = float64(float32(float64(first-weight) / 1.64493406685)) // the limit of the sum of 1/n²
	}
	return ranks
}()
