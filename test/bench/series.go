package bench

import (
	"slices"
	"time"
)

// series are the durations of one operation with one subject.
type series struct {
	// Operation is such as "search", Subject what did it, such as "mem0", and Size the number of memories of the user
	// or, in a scaling curve, of what the subject names.
	Operation, Subject string
	Size               int
	took               []time.Duration
	// elapsed is the duration of all operations if several clients did them at the same time, and rates are the
	// operations per second of each round.
	elapsed time.Duration
	rates   []float64
	// throughput is set if the durations do not count, because the embedder was a stub.
	throughput bool
	// cost is the server's cost of all of them; zero for others.
	cost usage
}

func (s *series) add(d time.Duration) { s.took = append(s.took, d) }

// quantile returns the smallest duration that at least the share q of the operations did not exceed.
func (s *series) quantile(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// round adds the operations of several clients at the same time.
func (s *series) round(took []time.Duration, elapsed time.Duration) {
	s.took = append(s.took, took...)
	s.elapsed += elapsed
	s.rates = append(s.rates, float64(len(took))/elapsed.Seconds())
}

// parts returns the durations in n parts, in the order in which they were measured.
func (s *series) parts(n int) []*series {
	out := make([]*series, n)
	for i := range out {
		out[i] = &series{took: s.took[i*len(s.took)/n : (i+1)*len(s.took)/n]}
	}
	return out
}

// perSecond returns the operations per second of all clients.
func (s *series) perSecond() float64 {
	if s.elapsed > 0 {
		return float64(len(s.took)) / s.elapsed.Seconds()
	}
	var sum time.Duration
	for _, d := range s.took {
		sum += d
	}
	if sum == 0 {
		return 0
	}
	return float64(len(s.took)) / sum.Seconds()
}
