package reembed

import (
	"context"
	"math"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

const (
	// maxProbes bounds the questions of a comparison, and poolProbes those of a pool.
	maxProbes  = 400
	poolProbes = 40
	// poolUsers are the pools sampled per tenant, with up to poolUnits units each.
	poolUsers = 5
	poolUnits = 300
	// minProbes is the number below which a comparison proves nothing.
	minProbes = 30
	// tolerance is the accepted loss. Good models differ by a few points in questions
	// that repeat words of the text, whatever they are worth for others.
	tolerance = 0.1
	// bestShare and mostBest are how many of a pool's units count as found.
	bestShare = 0.1
	mostBest  = 10
	// maxQuestion is the maximum length of a question, in bytes.
	maxQuestion = 300
	// minWords is the minimum number of words of a text whose second half is a question.
	minWords = 8
)

// Pool is a sample of the units of one user.
type Pool []Probed

// Probed is a unit with its vectors in both generations.
type Probed struct {
	Owner   string
	Seq     int
	Text    string
	Before  string // the message before; empty for a memory
	Vectors map[placement.GenerationID][]float32
}

// Scores compares two models by questions whose answer is known without labels: the
// second half of a text must find the text, and a message must find the one after it.
// The score is the share of questions that find it among the best tenth of a sample of
// the user's units, at most ten.
type Scores struct {
	Probes         int
	Source, Target float64
	// deviation is the standard error of the difference.
	deviation float64
}

// Worse reports whether the target finds less, beyond the tolerance and three standard errors.
func (s Scores) Worse() bool {
	loss := s.Source - s.Target
	return s.Probes >= minProbes && loss > tolerance && loss > 3*s.deviation
}

// question is a probe: text must find the unit at an index of the pool, and not the unit
// that it was taken from.
type question struct {
	text string
	unit int
	seq  int // position of the message that the text was taken from; -1 for none
}

// compare scores both generations on samples of all tenants.
func (m *Migrator) compare(ctx context.Context, current Migration) (Scores, error) {
	tenants, err := m.Store.ListTargetTenants(ctx)
	if err != nil {
		return Scores{}, err
	}
	var c comparison
	for _, t := range tenants {
		if len(c.pairs) >= maxProbes {
			break
		}
		pools, err := m.Store.SamplePools(ctx, t, poolUsers, poolUnits)
		if err != nil {
			return Scores{}, err
		}
		for _, p := range pools {
			if err := m.probe(ctx, current.Target, p, &c); err != nil {
				return Scores{}, err
			}
		}
	}
	return c.scores(), nil
}

// probe asks the questions of a pool in both generations.
func (m *Migrator) probe(ctx context.Context, target placement.GenerationID, pool Pool, c *comparison) error {
	source, ok := pool.source(target)
	if !ok {
		return nil
	}
	for _, q := range pool.questions() {
		if len(c.pairs) >= maxProbes {
			return nil
		}
		before, err := m.finds(ctx, source, pool, q)
		if err != nil {
			return err
		}
		after, err := m.finds(ctx, target, pool, q)
		if err != nil {
			return err
		}
		c.pairs = append(c.pairs, [2]float64{before, after})
	}
	return nil
}

// finds returns 1 if the question finds its unit, otherwise 0.
func (m *Migrator) finds(ctx context.Context, g placement.GenerationID, pool Pool, q question) (float64, error) {
	vector, err := m.Embedders.EmbedQuery(ctx, g, q.text)
	if err != nil {
		return 0, err
	}
	wanted := retrieve.Dot(vector, pool[q.unit].Vectors[g])
	rank := 1
	for i, u := range pool {
		asked := u.Owner == pool[q.unit].Owner && u.Seq == q.seq
		if i != q.unit && !asked && retrieve.Dot(vector, u.Vectors[g]) >= wanted {
			rank++
		}
	}
	if rank > min(max(int(bestShare*float64(len(pool))), 1), mostBest) {
		return 0, nil
	}
	return 1, nil
}

// source returns the generation that is not the target.
func (p Pool) source(target placement.GenerationID) (placement.GenerationID, bool) {
	if len(p) == 0 || p[0].Vectors[target] == nil {
		return 0, false
	}
	for g := range p[0].Vectors {
		if g != target {
			return g, true
		}
	}
	return 0, false
}

// questions returns the questions that the texts of the pool yield.
func (p Pool) questions() (out []question) {
	for i, u := range p {
		if len(out) >= poolProbes {
			break
		}
		if words := strings.Fields(u.Text); len(words) >= minWords {
			out = append(out, question{shorten(strings.Join(words[len(words)/2:], " ")), i, -1})
		}
		if words := strings.Fields(u.Before); len(words) >= minWords/2 {
			out = append(out, question{shorten(strings.Join(words, " ")), i, u.Seq - 1})
		}
	}
	return out
}

// shorten cuts a text at the end of a word.
func shorten(text string) string {
	if len(text) <= maxQuestion {
		return text
	}
	if i := strings.LastIndexByte(text[:maxQuestion], ' '); i > 0 {
		return text[:i]
	}
	return strings.ToValidUTF8(text[:maxQuestion], "")
}

// comparison collects which questions the source and the target answer, as 0 or 1.
type comparison struct{ pairs [][2]float64 }

func (c comparison) scores() Scores {
	s := Scores{Probes: len(c.pairs)}
	if s.Probes == 0 {
		return s
	}
	n := float64(s.Probes)
	var sum, squares float64
	for _, p := range c.pairs {
		s.Source += p[0] / n
		s.Target += p[1] / n
		sum += p[1] - p[0]
		squares += (p[1] - p[0]) * (p[1] - p[0])
	}
	mean := sum / n
	s.deviation = math.Sqrt(max(squares/n-mean*mean, 0) / n)
	return s
}
