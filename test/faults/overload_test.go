package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var overload = flag.Duration("overload", 0, "duration of the overload; 0 for a short one with a slow database")

const (
	// A short overload must be greater to fill the queues.
	shortOverload, shortFactor = 8 * time.Second, 4.0
	// saturating is a number of concurrent requests that keeps all connections busy.
	saturating = 150
	// slowest is the longest time that a request may take in an overload. Clients
	// usually give up after 30 s.
	slowest = 15 * time.Second
	// recovery is the time after an overload within which requests are as fast as before.
	recovery = 5 * time.Second
)

// TestOverload finds the rate of requests that the servers sustain, and sends twice as
// many. The servers must refuse what they cannot do at once, with 503 and Retry-After,
// use no more memory, and recover.
func TestOverload(t *testing.T) {
	lasting, factor := *overload, 2.0
	// memory returns the most memory that the servers may use at the end.
	memory := func(earlier int64) int64 { return earlier + earlier/4 + 32<<20 }
	s := newStack(t, false, installation.Options{})
	if lasting == 0 {
		lasting, factor = shortOverload, shortFactor
		// The Go heap still grows: garbage may reach the size of the live memory.
		memory = func(earlier int64) int64 { return 2 * earlier }
		// So that the connections to PostgreSQL are the bottleneck instead of the CPU, which
		// is needed to send requests.
		n := &injector{stack: s, history: newHistory()}
		defer n.disturb(fault{Kind: "delay packets", Target: "postgres"})()
	}
	r := newRun(t, s, newHistory(), 1, "roomy", "other", "shared")
	d := &driver{}
	for _, name := range slices.Sorted(maps.Keys(r.accounts)) {
		d.users = append(d.users, &overloadUser{account: r.accounts[name]})
	}
	d.sustain(t.Context(), lasting/2) // opens all connections: until then requests fail, and the rate is too low
	sustained := d.sustain(t.Context(), lasting/2)
	before := d.measure(t.Context())
	t.Logf("sustained %.0f requests/s; a request takes %s", sustained, before)
	m := d.overload(t.Context(), s, factor*sustained, lasting)
	d.check(t, sustained, lasting)
	if m[1] > memory(m[0]) {
		t.Errorf("memory grew from %d to %d MiB, want at most %d", m[0]>>20, m[1]>>20, memory(m[0])>>20)
	} else {
		t.Logf("memory of the servers: %d MiB after a third of the overload, %d MiB at its end", m[0]>>20, m[1]>>20)
	}
	began := time.Now()
	for d.measure(t.Context()) > 3*before+500*time.Millisecond {
		if time.Since(began) > recovery {
			t.Fatalf("requests are still slow %s after the overload", recovery)
		}
	}
	t.Logf("recovered %s after the overload", time.Since(began).Round(time.Millisecond))
}

// overloadUser is a user with its memories.
type overloadUser struct {
	*account
	mu  sync.Mutex
	ids []string
	n   int
}

// result is the outcome of a request.
type result struct {
	err  error
	took time.Duration
}

// driver sends requests of many users.
type driver struct {
	users []*overloadUser
	next  atomic.Int64

	mu      sync.Mutex
	results []result
}

// request sends the next request of a user: it creates memories and searches, and
// deletes old memories.
func (d *driver) request(ctx context.Context) result {
	n := d.next.Add(1)
	u := d.users[int(n)%len(d.users)]
	api := u.apis[int(n/int64(len(d.users)))%len(u.apis)]
	u.mu.Lock()
	u.n++
	text := fmt.Sprintf("item%d%06d %s the harbour master keeps the lantern", u.number, u.n, u.owner)
	var old []string
	if len(u.ids) > 60 {
		old, u.ids = u.ids[:20], slices.Clone(u.ids[20:])
	}
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*slowest)
	defer cancel()
	begun := time.Now()
	var err error
	switch {
	case old != nil:
		_, err = api.DeleteMemories(ctx, client.DeleteMemoriesRequest{MemoryIds: old})
	case n%3 == 0:
		_, err = api.ListMemories(ctx, &client.ListMemoriesParams{Query: &text})
	default:
		var answer *client.Response[client.CreatedMemory]
		if answer, err = api.CreateMemory(ctx, nil, client.CreateMemoryRequest{Text: text}); err == nil {
			u.mu.Lock()
			u.ids = append(u.ids, answer.Body.MemoryID)
			u.mu.Unlock()
		}
	}
	out := result{err, time.Since(begun)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.results = append(d.results, out)
	return out
}

// sustain sends so many requests at a time that more would only wait, and returns how
// many succeeded per second.
func (d *driver) sustain(ctx context.Context, lasting time.Duration) float64 {
	lasting = min(lasting, time.Minute)
	var wait sync.WaitGroup
	var done atomic.Int64
	begun := time.Now()
	for range saturating {
		wait.Go(func() {
			for time.Since(begun) < lasting {
				if d.request(ctx).err == nil {
					done.Add(1)
				}
			}
		})
	}
	wait.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds()
}

// measure returns the median duration of single requests.
func (d *driver) measure(ctx context.Context) time.Duration {
	took := make([]time.Duration, 9)
	for i := range took {
		r := d.request(ctx)
		took[i] = r.took
		if r.err != nil {
			took[i] = slowest
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// overload sends requests at a rate, and at twice the rate if none was refused, up to twice: the machine may
// have been slower while the rate was measured. It returns the memory of the servers during the last flood.
func (d *driver) overload(ctx context.Context, s *stack, rate float64, lasting time.Duration) (used [2]int64) {
	for range 3 {
		d.results = nil
		memory := make(chan [2]int64, 1)
		go func() { memory <- s.memoryDuring(ctx, lasting) }()
		d.flood(ctx, rate, lasting)
		used = <-memory
		if slices.ContainsFunc(d.results, func(r result) bool { return overloaded(r.err) }) {
			break
		}
		rate *= 2
	}
	return used
}

// flood sends requests at a rate, whatever happens to them, and waits for all responses.
func (d *driver) flood(ctx context.Context, rate float64, lasting time.Duration) {
	var wait sync.WaitGroup
	begun := time.Now()
	for sent := 0; time.Since(begun) < lasting; {
		for ; sent < int(time.Since(begun).Seconds()*rate); sent++ {
			wait.Go(func() { d.request(ctx) })
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // requests are sent in real time
	}
	wait.Wait()
}

// check checks the responses during the overload.
func (d *driver) check(t *testing.T, sustained float64, lasting time.Duration) {
	t.Helper()
	counts := map[int]int{}
	var longest time.Duration
	wrong := map[string]int{}
	for _, r := range d.results {
		status := client.StatusOf(r.err)
		counts[status]++
		longest = max(longest, r.took)
		switch {
		case r.err != nil && !overloaded(r.err):
			wrong[fmt.Sprintf("status %d: %.200v", status, r.err)]++
		case r.err != nil && retryAfter(r.err) == 0:
			wrong["no Retry-After"]++
		}
	}
	t.Logf("%d requests in %s: %d done, by status of the others %v; the slowest took %s",
		len(d.results), lasting, counts[0], counts, longest.Round(time.Millisecond))
	for what, n := range wrong {
		t.Errorf("%d requests: %s", n, what)
	}
	if longest > slowest {
		t.Errorf("a request took %s, want at most %s", longest, slowest)
	}
	if counts[http.StatusServiceUnavailable]+counts[http.StatusTooManyRequests] == 0 {
		t.Error("no request was refused: there was no overload")
	}
	if done := float64(counts[0]) / lasting.Seconds(); done < sustained/2 {
		t.Errorf("%.0f requests/s succeeded during the overload, want at least half of %.0f", done, sustained)
	}
}

// overloaded reports whether a server refused a request because of its load.
func overloaded(err error) bool {
	status := client.StatusOf(err)
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*client.StatusError](err); ok {
		return e.RetryAfter
	}
	return 0
}

// memoryDuring returns the memory of both servers after a third of a duration and at its
// end.
func (s *stack) memoryDuring(ctx context.Context, lasting time.Duration) (out [2]int64) {
	for i, wait := range []time.Duration{lasting / 3, lasting - lasting/3 - 200*time.Millisecond} {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		for _, p := range s.servers {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
			if err != nil {
				s.t.Error(err)
			}
			var kib int64
			_, after, _ := strings.Cut(string(status), "VmRSS:")
			_, _ = fmt.Sscan(after, &kib)
			out[i] += kib << 10
		}
	}
	return out
}
