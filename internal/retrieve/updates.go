package retrieve

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	// updateDepth is the number of messages among which a newer statement is looked for.
	updateDepth = 10
	// leastAbout is the share of the question's terms that a statement must contain, weighed
	// by rarity, and equallyAbout the share of what the older statement contains.
	leastAbout   = 0.15
	equallyAbout = 0.5
	// statementClauses is the number of adjacent clauses that a statement consists of.
	statementClauses = 3
)

var (
	asksValue = regexp.MustCompile(`(?i)\b(?:how (?:many|much|long|often|old|far|big|large)|when|what|which)\b`)
	// asksPast also matches the time between two events, which no statement updates, but not
	// "first" before a noun, as in "the first sprint".
	asksPast = regexp.MustCompile(`(?i)\b(?:between|original\w*|initial\w*|before|previous\w*|used to|did|was|were|had|order)\b|\bfirst(?:\s*(?:[^\w\s]|$)|\s+or\b)`)
	// changeCue is a word by which a statement says that it replaces another one.
	changeCue = regexp.MustCompile(`(?i)\b(?:now|new|newly|recently|updat\w+|chang\w+|mov(?:ed|ing)|resched\w+|increas\w+|decreas\w+|` +
		`improv\w+|extend\w+|adjust\w+|no longer|instead|switch\w+|raised|reduced|grown|postponed|latest)\b`)
	clauseEnd = regexp.MustCompile(`[.!?;]\s+|\n+|,\s|\s[-–—]\s|\b(?:and|but|so|which|since|especially|because)\b`)
)

// statement is the part of a message that may answer the question with a value.
type statement struct {
	message Described
	about   float64 // share of the question's terms
	values  []string
	cue     bool // it says that something changed
}

// replaces reports whether a newer statement about the same thing gives another value.
func (s statement) replaces(older statement) bool {
	return s.cue && older.about >= leastAbout && s.about >= max(leastAbout, equallyAbout*older.about) && !slices.Equal(s.values, older.values)
}

// newerFirst moves messages of the user in front of older ones that they update: both answer
// the question with a value, and the newer one says that it changed. Of several updates the
// newest ranks first. Only questions about the present are affected, which need not say "my":
// "When does the first sprint end?"
func (c *comparison) newerFirst(ranking []Hit) []Hit {
	question := c.query.Text
	if !asksValue.MatchString(question) || asksYou.MatchString(question) || asksPast.MatchString(question) {
		return ranking
	}
	stated := map[UnitID]statement{}
	list := c.statements(ranking)
	for _, s := range list {
		stated[s.message.ID] = s
	}
	slices.SortStableFunc(list, func(a, b statement) int {
		return cmp.Or(a.message.At.Compare(b.message.At), cmp.Compare(a.message.Seq, b.message.Seq))
	})
	for _, newer := range list {
		from := slices.IndexFunc(ranking, func(h Hit) bool { return h.ID == newer.message.ID })
		to := slices.IndexFunc(ranking[:from], func(h Hit) bool {
			older, ok := stated[h.ID]
			return ok && newer.message.after(older.message) && newer.replaces(older)
		})
		if to >= 0 {
			ranking = moveUp(ranking, from, to)
		}
	}
	return ranking
}

// statements returns what the user states in the best messages.
func (c *comparison) statements(ranking []Hit) (out []statement) {
	weights, values := c.termWeights(), valuesFor(c.query.Text)
	for _, m := range c.messages(ranking, updateDepth) {
		if s, ok := bestStatement(m.pieces, weights, values); ok && c.byUser(m) {
			s.message = m.Described
			out = append(out, s)
		}
	}
	return out
}

// message is a ranked message: its best piece, where that one ranks, and all pieces that are candidates.
type message struct {
	Described
	index  int
	pieces []Described
}

// messages returns the best messages of a ranking, best first.
func (c *comparison) messages(ranking []Hit, depth int) (out []message) {
	units, pieces := map[UnitID]Described{}, map[position][]Described{}
	for _, d := range c.all {
		if !d.neighbor() {
			units[d.ID] = d
			pieces[position{d.Owner, d.Seq}] = append(pieces[position{d.Owner, d.Seq}], d)
		}
	}
	seen := map[position]bool{}
	for i, h := range ranking {
		d := units[h.ID]
		at := position{d.Owner, d.Seq}
		if seen[at] {
			continue
		}
		if len(seen) == depth {
			break
		}
		seen[at] = true
		out = append(out, message{d, i, pieces[at]})
	}
	return out
}

// byUser reports whether the user wrote the message, and not another speaker of a transcript.
func (c *comparison) byUser(m message) bool {
	return m.Human && !slices.ContainsFunc(m.pieces, func(d Described) bool { return c.speaker[d.ID] != "" })
}

// after reports whether the message is newer than the other one.
func (d Described) after(other Described) bool {
	if d.Owner == other.Owner {
		return d.Seq > other.Seq
	}
	return d.At.After(other.At)
}

// moveUp returns the ranking with one hit in front of a better one, with its score.
func moveUp(ranking []Hit, from, to int) []Hit {
	moved := Hit{ID: ranking[from].ID, Score: ranking[to].Score}
	return slices.Insert(slices.Delete(slices.Clone(ranking), from, from+1), to, moved)
}

// termWeights returns the share that each term of the question has in its meaning, by
// its rarity among the candidates.
func (c *comparison) termWeights() map[string]float64 {
	asked := map[string]bool{}
	for _, t := range c.terms() {
		asked[t] = true
	}
	n, found := 0.0, map[string]float64{}
	for _, d := range c.all {
		if d.neighbor() {
			continue
		}
		n++
		for t := range bagOf(plainWords(d.Text), asked).counts {
			found[t]++
		}
	}
	weights, total := map[string]float64{}, 0.0
	for _, t := range slices.Sorted(maps.Keys(asked)) {
		weights[t] = rarity(n, found[t])
		total += weights[t]
	}
	for t := range weights {
		weights[t] /= total
	}
	return weights
}

// bestStatement returns the statement of a message that contains a value that fits the question,
// and most of its terms. Code is not searched, nor is what follows it in a piece.
func bestStatement(pieces []Described, weights map[string]float64, values func(text string) []string) (best statement, ok bool) {
	asked := termSet(weights)
	for _, text := range prose(pieces) {
		clauses := clausesOf(text)
		for i := range clauses {
			part := strings.Join(clauses[i:min(len(clauses), i+statementClauses)], " ; ")
			s := statement{values: values(part), cue: changeCue.MatchString(part)}
			s.about = termShare(part, asked, weights)
			if len(s.values) > 0 && (!ok || s.about > best.about) {
				best, ok = s, true
			}
		}
	}
	return best, ok
}

func clausesOf(text string) []string {
	return slices.DeleteFunc(clauseEnd.Split(text, -1), func(s string) bool { return strings.TrimSpace(s) == "" })
}

func termSet(weights map[string]float64) map[string]bool {
	asked := make(map[string]bool, len(weights))
	for t := range weights {
		asked[t] = true
	}
	return asked
}

// termShare returns the weight of the question's terms in a text. The terms have a fixed order, so that
// equal sums are equal in floating point.
func termShare(text string, asked map[string]bool, weights map[string]float64) (sum float64) {
	for _, t := range slices.Sorted(maps.Keys(bagOf(plainWords(text), asked).counts)) {
		sum += weights[t]
	}
	return sum
}

// prose returns the text of each piece up to the first code block. A piece that begins inside
// one has none, if the piece before is a candidate too.
func prose(pieces []Described) (out []string) {
	pieces = slices.SortedStableFunc(slices.Values(pieces), func(a, b Described) int { return cmp.Compare(a.Start, b.Start) })
	code, end := false, 0
	for _, d := range pieces {
		parts := strings.Split(d.Text, "```")
		if code = code && d.Start == end; !code {
			out = append(out, parts[0])
		}
		code, end = code == (len(parts)%2 == 1), d.End
	}
	return out
}
