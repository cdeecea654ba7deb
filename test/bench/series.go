package bench

import (
	"slices"
	"time"
)

// series are the durations of one operation with one subject.
type series struct {
	// Operation is such as "search", Subject what did it, such as "mem0", and Size the number of memories of the user.
	Operation, Subject string
	Size               int
	took               []time.Duration
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

// perSecond returns the operations per second of one client.
func (s *series) perSecond() float64 {
	var sum time.Duration
	for _, d := range s.took {
		sum += d
	}
	if sum == 0 {
		return 0
	}
	return float64(len(s.took)) / sum.Seconds()
}
