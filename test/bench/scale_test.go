package bench

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var (
	curveNames = flag.String("curve", "", "scaling curves to measure, separated by commas; all by default")
	limit      = flag.Int("limit", 0, "largest size of a curve; 0 for no limit")
)

// curve measures the same operations at growing sizes.
type curve struct {
	name        string
	full, short []int // sizes
	measure     func(s *scale, sizes []int)
}

var curves = []curve{
	{"units", []int{200, 2_000, 20_000, 200_000, 1_000_000}, []int{50, 2_050}, (*scale).units},
	{"unindexed", []int{200, 2_000, 20_000, 200_000}, []int{50}, (*scale).unindexed},
	{"tenants", []int{10, 1_000, 10_000}, []int{2}, (*scale).tenants},
	{"users", []int{1, 100, 1_000, 100_000, 1_000_000}, []int{20}, (*scale).users},
	{"concurrency", []int{1, 2, 4, 8, 16, 32, 64}, []int{1, 4}, (*scale).concurrency},
	{"writes", []int{1, 100}, []int{1, 3}, (*scale).writes},
}

// scale is a run of curves.
type scale struct {
	testing.TB
	report report
	http   *http.Client
	volume *volume
	shared *installation.Server // of all curves in a short run
	n      int                  // repetitions of each operation
	rounds int                  // in which clients at the same time do them
}

// TestScale measures the curves, or checks with small sizes that each can be measured.
func TestScale(t *testing.T) {
	s := &scale{TB: t, report: report{Machine: thisMachine()}, http: newHTTP(), n: 3, rounds: 1}
	if *full {
		s.n, s.rounds = *repeat, allRounds
	} else {
		t.Parallel()
		s.shared = s.serve(installation.ServerOptions{})
	}
	s.volume = newVolume(t)
	for _, c := range selectCurves(t) {
		sizes := c.sizes()
		// The data of a curve is deleted before the next one.
		t.Run(c.name, func(t *testing.T) {
			of := *s
			of.TB = t
			c.measure(&of, sizes)
			s.report = of.report
		})
	}
	t.Logf("\n%s", &s.report)
	save(t, &s.report)
}

// sizes returns the sizes to measure: up to the limit, which is one of them if there would be fewer than two.
func (c curve) sizes() []int {
	if !*full {
		return c.short
	}
	if *limit == 0 {
		return c.full
	}
	sizes := slices.DeleteFunc(slices.Clone(c.full), func(n int) bool { return n > *limit })
	if len(sizes) < 2 && !slices.Contains(sizes, *limit) {
		sizes = append(sizes, *limit)
	}
	return sizes
}

func selectCurves(t *testing.T) []curve {
	t.Helper()
	if *curveNames == "" {
		return curves
	}
	var out []curve
	for name := range strings.SplitSeq(*curveNames, ",") {
		i := slices.IndexFunc(curves, func(c curve) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("unknown curve %q: choose from units, unindexed, tenants, users, concurrency, writes", name)
		}
		out = append(out, curves[i])
	}
	return out
}

// serve starts a server for a point of a curve.
func (s *scale) serve(o installation.ServerOptions) *installation.Server {
	s.Helper()
	if s.shared != nil && o == (installation.ServerOptions{}) {
		return s.shared
	}
	server := installation.Serve(s.TB, o)
	dropChecks(s.TB, server)
	return server
}

// dropChecks drops the triggers by which tests check the audit log. They would be part of each write.
func dropChecks(tb testing.TB, server *installation.Server) {
	tb.Helper()
	if _, err := server.Owner.Exec(tb.Context(), "drop function test_check_audit, test_note_audit cascade"); err != nil {
		tb.Fatal(err)
	}
}

// point is a size of a curve with what is measured there.
type point struct {
	size   int
	server *installation.Server
	user   func(i int) api // of the i-th request
}

// alternate calls do n times for each point in turn, so that a slow minute of the machine affects all of them. The first
// calls warm the caches: they are not measured. It begins when the processors are idle.
func (s *scale) alternate(points []point, do func(p point, i int, measured bool)) {
	s.awaitIdle()
	warm := max(1, s.n/10)
	for i := range warm + s.n {
		for _, p := range points {
			do(p, i, i >= warm)
		}
	}
}

// awaitIdle waits, at most half an hour, until the processors are idle: after a load, PostgreSQL writes the changed pages to the disk, and
// Milvus merges segments for minutes.
func (s *scale) awaitIdle() {
	s.Helper()
	if !*full {
		return
	}
	postgrestest.Checkpoint(s.TB)
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		s.Fatal(err)
	}
	read := func() procfs.CPUStat {
		stat, err := fs.Stat()
		if err != nil {
			s.Fatal(err)
		}
		return stat.CPUTotal
	}
	window := time.NewTicker(10 * time.Second)
	defer window.Stop()
	var idle float64
	for range 180 {
		before := read()
		<-window.C
		now := read()
		idle = (now.Idle - before.Idle) / (total(now) - total(before))
		if idle >= 0.9 {
			return
		}
	}
	s.fact(fmt.Sprintf("the processors were idle for only %.0f %% of the last ten seconds before a measurement", 100*idle))
}

// total returns the time of all states. That of guests is part of the others.
func total(c procfs.CPUStat) float64 {
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
}

// search searches at each point.
func (s *scale) search(subject string, points []point) {
	s.Helper()
	s.alternate(points, func(p point, i int, measured bool) {
		found, took := p.user(i).texts(s.TB, s.volume.text(8), results)
		if len(found) == 0 && !*full {
			s.Errorf("%s, %d: a search found nothing", subject, p.size)
		}
		if measured {
			s.report.row("search", subject, p.size).add(took)
		}
	})
}

// resident adds the memory of the servers to the report.
func (s *scale) resident(subject string, points []point) {
	s.Helper()
	for _, p := range points {
		u, err := measure(p.server.Metrics)
		if err != nil {
			s.Fatal(err)
		}
		s.report.Memory = append(s.report.Memory, footprint{Name: fmt.Sprintf("API server, %s: %d", subject, p.size), Bytes: u.resident})
	}
}
