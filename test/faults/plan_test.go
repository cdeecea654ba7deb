package faults_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// fault is a fault of a plan: it begins At and is repaired after For.
type fault struct {
	At, For time.Duration
	// Kind is a key of faults; Target is what it applies to, and its variant.
	Kind, Target string
}

// String returns the fault as it is counted.
func (f fault) String() string { return f.Kind + " " + f.Target }

// kind describes how often a fault occurs and how long it lasts.
type kind struct {
	name     string
	weight   int
	targets  []string
	from, to time.Duration
	// slow faults are not in short plans: Milvus answers queries about a minute after
	// it was killed.
	slow bool
}

var apiServers = []string{server(0), server(1)}

// kinds are the faults of processes, and of everything else. One of each can be active
// at a time.
var kinds = [2][]kind{
	{
		{name: "kill", weight: 6, targets: append(apiServers, "operator"), from: 0, to: 2 * time.Second},
		{name: "pause", weight: 6, targets: append(apiServers, "operator", "postgres", "milvus"), from: time.Second, to: 5 * time.Second},
		{name: "restart", weight: 2, targets: append(apiServers, "postgres"), from: 0, to: time.Second},
		{name: "crash", weight: 2, targets: []string{"postgres"}, from: 0, to: 2 * time.Second},
		{name: "crash", weight: 1, targets: []string{"milvus"}, from: 0, to: time.Minute, slow: true},
	},
	{
		{name: "cut responses", weight: 6, targets: []string{server(0), server(1), "postgres", "milvus"}, from: time.Second, to: 4 * time.Second},
		{name: "reset connections", weight: 4, targets: []string{server(0), server(1), "postgres", "milvus"}, from: time.Second, to: 3 * time.Second},
		{name: "lose packets", weight: 3, targets: []string{server(0), server(1), "postgres", "milvus"}, from: time.Second, to: 5 * time.Second},
		{name: "fail commits", weight: 4, targets: []string{"postgres 40001", "postgres 53100", "postgres 53200", "postgres 58030"},
			from: time.Second, to: 4 * time.Second},
		{name: "fill disk", weight: 3, targets: []string{"postgres"}, from: time.Second, to: 4 * time.Second},
		{name: "step clock", weight: 2, targets: []string{"postgres +90s", "postgres -90s"}, from: time.Second, to: 5 * time.Second},
		{name: "embedder", weight: 5, from: 2 * time.Second, to: 8 * time.Second,
			targets: []string{"slow", "hangs", "status 500", "status 429", "refuses", "no vectors", "wrong dimensions", "not JSON"}},
	},
}

// plan returns the faults for a seed, ordered by time. Short plans omit slow faults.
func plan(seed uint64, duration time.Duration, short bool) (out []fault) {
	for stream, kinds := range kinds {
		r := rand.New(rand.NewPCG(seed, uint64(stream)))
		var from []kind
		for _, k := range kinds {
			if !k.slow || !short {
				from = append(from, slices.Repeat([]kind{k}, k.weight)...)
			}
		}
		for at := between(r, 0, 2*time.Second); at < duration; {
			k := from[r.IntN(len(from))]
			f := fault{At: at, For: between(r, k.from, k.to), Kind: k.name, Target: k.targets[r.IntN(len(k.targets))]}
			out = append(out, f)
			at += f.For + between(r, 500*time.Millisecond, 4*time.Second)
		}
	}
	slices.SortStableFunc(out, func(a, b fault) int { return cmp.Compare(a.At, b.At) })
	return out
}

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}
