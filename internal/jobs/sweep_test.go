package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// sweepEnv is a sweep worker with tenants in PostgreSQL. Each page advances its clock.
type sweepEnv struct {
	Indexer
	db      *postgres.DB
	owner   *pgxpool.Pool
	worker  *sweepWorker
	tenants []tenant.ID // in the order in which they were created
	clock   time.Time
	page    time.Duration // duration of a page
	pages   map[tenant.ID]int
	drift   map[tenant.ID]indexing.Drift // on the first page
	visited []tenant.ID
	crash   tenant.ID // its page ends the slice, like a process that dies
	broken  tenant.ID // its page fails
}

var errCrash = errors.New("the process ended")

func (e *sweepEnv) SweepPage(_ context.Context, t tenant.ID, after retrieve.UnitID) (indexing.Drift, retrieve.UnitID, error) {
	e.visited, e.clock = append(e.visited, t), e.clock.Add(e.page)
	var found indexing.Drift
	if after == 0 {
		found = e.drift[t]
	}
	switch {
	case t == e.crash:
		panic(errCrash)
	case t == e.broken:
		return indexing.Drift{}, after, errors.New("a bug")
	case int(after)+1 < e.pages[t]:
		return found, after + 1, nil
	}
	return found, indexing.SweepEnd, nil
}

func setupSweep(t *testing.T, tenants int) *sweepEnv {
	t.Helper()
	d := postgrestest.Create(t)
	e := &sweepEnv{db: postgrestest.Open(t, d), clock: time.Now(), page: 66 * time.Millisecond, pages: map[tenant.ID]int{}, drift: map[tenant.ID]indexing.Drift{}}
	var err error
	if e.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.owner.Close)
	for range tenants {
		got, err := e.db.Apply(t.Context(), tenanttest.NewSpec())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.db.EnsurePlacement(t.Context(), got.ID); err != nil {
			t.Fatal(err)
		}
		e.tenants = append(e.tenants, got.ID)
	}
	e.worker = newSweepWorker(e, e.db, slog.New(slog.DiscardHandler))
	e.worker.now = func() time.Time { return e.clock }
	return e
}

// slice runs one slice of a pass and returns the tenants that it visited.
func (e *sweepEnv) slice(t *testing.T, pass time.Time) (visited []tenant.ID, err error) {
	t.Helper()
	e.visited = nil
	func() {
		defer func() {
			if p := recover(); p != nil {
				err = errCrash
			}
		}()
		err = e.worker.Work(t.Context(), &river.Job[SweepArgs]{JobRow: &rivertype.JobRow{CreatedAt: pass}})
	}()
	return e.visited, err
}

// now returns the time of the database, which creates the jobs.
func (e *sweepEnv) now(t *testing.T) (now time.Time) {
	t.Helper()
	if err := e.owner.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now
}

func (e *sweepEnv) expectVisits(t *testing.T, got []tenant.ID, want ...int) {
	t.Helper()
	index := map[tenant.ID]int{}
	for i, id := range e.tenants {
		index[id] = i
	}
	visits := make([]int, 0, len(got))
	for _, id := range got {
		visits = append(visits, index[id])
	}
	if diff := cmp.Diff(want, visits); diff != "" {
		t.Errorf("visited tenants (-want +got):\n%s", diff)
	}
}

func (e *sweepEnv) oldest(t *testing.T) time.Duration {
	t.Helper()
	stats, err := e.db.Stats(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return stats.SweepAge
}

func isSnoozed(err error) bool {
	_, ok := errors.AsType[*river.JobSnoozeError](err)
	return ok
}

// TestSweepReachesEveryTenant: a slice has time for two of five tenants.
func TestSweepReachesEveryTenant(t *testing.T) {
	t.Parallel()
	e := setupSweep(t, 5)
	e.page = sweepSlice / 2
	pass := e.now(t)
	for _, want := range [][]int{{0, 1}, {2, 3}} {
		visited, err := e.slice(t, pass)
		e.expectVisits(t, visited, want...)
		if !isSnoozed(err) {
			t.Errorf("the slice returned %v, want it snoozed", err)
		}
	}
	visited, err := e.slice(t, pass)
	e.expectVisits(t, visited, 4)
	if err != nil {
		t.Errorf("the last slice returned %v", err)
	}
	visited, _ = e.slice(t, pass)
	if len(visited) > 0 {
		t.Errorf("the finished pass visits %v again", visited)
	}
	visited, _ = e.slice(t, e.now(t)) // the next pass begins with the oldest
	e.expectVisits(t, visited, 0, 1)
}

// TestSweepContinuesAfterCrash: the process ends while it sweeps the second of three
// tenants, in each pass.
func TestSweepContinuesAfterCrash(t *testing.T) {
	t.Parallel()
	e := setupSweep(t, 3)
	e.crash = e.tenants[1]
	visited, err := e.slice(t, e.now(t))
	e.expectVisits(t, visited, 0, 1)
	if !errors.Is(err, errCrash) {
		t.Errorf("the slice returned %v, want a crash", err)
	}
	visited, _ = e.slice(t, e.now(t))
	e.expectVisits(t, visited, 2, 0, 1)
}

// TestSweepOfLargeTenantContinues: a tenant of five pages does not fit into a slice.
func TestSweepOfLargeTenantContinues(t *testing.T) {
	t.Parallel()
	e := setupSweep(t, 2)
	e.page, e.pages[e.tenants[0]] = sweepSlice/2, 5
	pass := e.now(t)
	for _, want := range [][]int{{0, 0}, {0, 0}, {0, 1}} {
		visited, _ := e.slice(t, pass)
		e.expectVisits(t, visited, want...)
	}
}

// TestFailingSweepDoesNotBlock: a tenant whose sweep fails is reported and does not
// stop the others. Its age grows.
func TestFailingSweepDoesNotBlock(t *testing.T) {
	t.Parallel()
	e := setupSweep(t, 3)
	e.broken = e.tenants[0]
	if _, err := e.owner.Exec(t.Context(), "update tenants set created_at = now() - interval '7 hours'"); err != nil {
		t.Fatal(err)
	}
	if age := e.oldest(t); age < 7*time.Hour {
		t.Errorf("the oldest sweep is %v old before the first one, want the age of the tenant", age)
	}
	for range 2 {
		visited, err := e.slice(t, e.now(t))
		if err == nil || len(visited) != 3 {
			t.Errorf("the slice visited %d tenants and returned %v, want 3 and the failure", len(visited), err)
		}
	}
	if age := e.oldest(t); age < 7*time.Hour {
		t.Errorf("the oldest sweep is %v old, want the failing tenant's age", age)
	}
	e.broken = ""
	if _, err := e.slice(t, e.now(t)); err != nil {
		t.Error(err)
	}
	if age := e.oldest(t); age > time.Minute {
		t.Errorf("the oldest sweep is %v old after a complete pass", age)
	}
}

// TestDriftOfOneTenantIsCounted: a pass has three slices, and one of four tenants, which does not fit into a slice, drifts in each pass.
// Units whose job has not run yet are not counted.
func TestDriftOfOneTenantIsCounted(t *testing.T) {
	t.Parallel()
	e := setupSweep(t, 4)
	e.page, e.pages[e.tenants[0]] = sweepSlice/2, 3
	e.drift[e.tenants[1]] = indexing.Drift{Missing: 5}
	for pass, want := range []int{1, 2, 3, 0, 1} {
		e.drift[e.tenants[0]] = indexing.Drift{Missing: 1, Lost: 1}
		if want == 0 {
			e.drift[e.tenants[0]] = indexing.Drift{}
		}
		now := e.now(t)
		slices := 1
		for _, err := e.slice(t, now); isSnoozed(err); _, err = e.slice(t, now) {
			slices++
		}
		if slices < 3 {
			t.Fatalf("the pass had %d slices, want 3", slices)
		}
		stats, err := e.db.Stats(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if stats.DriftedSweeps != want {
			t.Errorf("pass %d: %d consecutive sweeps with drift, want %d", pass, stats.DriftedSweeps, want)
		}
	}
}

// TestSweepsDoNotOverlap: no second pass starts while one is unfinished.
func TestSweepsDoNotOverlap(t *testing.T) {
	t.Parallel()
	e := setupSweep(t, 0)
	config, err := Config(e, e.db, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := e.db.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	insert := func() bool {
		t.Helper()
		args, opts := sweepArgs()
		result, err := client.Insert(t.Context(), args, opts)
		if err != nil {
			t.Fatal(err)
		}
		return !result.UniqueSkippedAsDuplicate
	}
	if !insert() {
		t.Fatal("the first pass did not start")
	}
	// Half an hour later, it is between two slices.
	if _, err := e.owner.Exec(t.Context(), `update river_job set created_at = now() - interval '30 minutes',
		state = 'scheduled', scheduled_at = now() + interval '1 minute'`); err != nil {
		t.Fatal(err)
	}
	if insert() {
		t.Error("a second pass started")
	}
	if _, err := e.owner.Exec(t.Context(), "update river_job set state = 'completed', finalized_at = now()"); err != nil {
		t.Fatal(err)
	}
	if !insert() {
		t.Error("no pass started after the first one")
	}
}
