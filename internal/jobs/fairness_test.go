package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// fairEnv is a database with two tenants, and workers whose syncs and purges wait until
// the test lets them finish.
type fairEnv struct {
	Indexer
	*postgres.DB
	client  *river.Client[pgx.Tx]
	owner   *pgxpool.Pool
	busy    []tenant.Scope // users of a tenant with much work
	other   tenant.Scope   // a user of another tenant
	proceed chan struct{}
	started chan tenant.ID // the tenants of syncs
	purging chan tenant.UserID

	importing chan tenant.Scope // the users of imports that end
	storing   chan struct{}     // an import stores a batch
	uploaded  chan struct{}     // closed when imports may store batches
	swept     chan tenant.ID
	writes    int
}

func (e *fairEnv) Sync(ctx context.Context, t tenant.ID, _ []retrieve.UnitID) error {
	e.started <- t
	return e.wait(ctx)
}

func (e *fairEnv) PurgeAccount(ctx context.Context, a account.PurgeArgs) error {
	e.purging <- a.User
	return e.wait(ctx)
}

func (e *fairEnv) SweepPage(_ context.Context, t tenant.ID, _ retrieve.UnitID) (indexing.Drift, retrieve.UnitID, error) {
	e.swept <- t
	return indexing.Drift{}, indexing.SweepEnd, nil
}

func (e *fairEnv) wait(ctx context.Context) error {
	select {
	case <-e.proceed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heldImports are the files of imports that end when the test lets them.
type heldImports struct {
	postgres.Imports
	*fairEnv
}

func (f heldImports) Finish(ctx context.Context, run importer.Run, failure string, warnings []string) error {
	f.importing <- run.Scope
	if err := f.wait(ctx); err != nil {
		return err
	}
	return f.Imports.Finish(ctx, run, failure, warnings)
}

// StoreBatch signals that conversations are stored and waits until the test has uploaded
// other files.
func (f heldImports) StoreBatch(ctx context.Context, run importer.Run, b importer.Batch) (importer.Batch, error) {
	select {
	case f.storing <- struct{}{}:
	default:
	}
	select {
	case <-f.uploaded:
	case <-ctx.Done():
		return importer.Batch{}, ctx.Err()
	}
	return f.Imports.StoreBatch(ctx, run, b)
}

// upload commits the import of a file.
func (e *fairEnv) upload(t *testing.T, scope tenant.Scope, file string) {
	t.Helper()
	service := &importer.Service{Uploads: e.Imports()}
	u, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.ReadFrom(t.Context(), strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	if _, err := service.FinishUploads(t.Context(), tenant.Identity{Scope: scope}, importer.ImportOptions{}, tenant.Request{}, u); err != nil {
		t.Fatal(err)
	}
}

func setupFair(t *testing.T) *fairEnv {
	t.Helper()
	d := postgrestest.Create(t)
	e := &fairEnv{
		DB: postgrestest.Open(t, d), proceed: make(chan struct{}),
		started: make(chan tenant.ID, 1000), importing: make(chan tenant.Scope, 1000), storing: make(chan struct{}, 1), uploaded: make(chan struct{}),
		purging: make(chan tenant.UserID, 1000), swept: make(chan tenant.ID, 1000),
	}
	var err error
	if e.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.owner.Close)
	for i := range 2 {
		got, err := e.Apply(t.Context(), tenanttest.NewSpec())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.EnsurePlacement(t.Context(), got.ID); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			e.other = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}
			break
		}
		for _, u := range got.Users {
			e.busy = append(e.busy, tenant.Scope{Tenant: got.ID, User: u.ID})
		}
	}
	held := heldImports{e.Imports(), e}
	imports := importer.New(importer.Config{Leases: held, Files: held, CountTokens: func(string) int { return 1 }, Turn: time.Nanosecond})
	config, err := Config(e, e, imports, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if e.client, err = e.Jobs(config); err != nil {
		t.Fatal(err)
	}
	if err := e.client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := e.client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop workers: %v", err)
		}
	})
	return e
}

// write commits an index job with n units.
func (e *fairEnv) write(t *testing.T, scope tenant.Scope, n int) {
	t.Helper()
	e.writes++
	text := fmt.Sprintf("The boiler was serviced, job %d.", e.writes)
	units := retrieve.MemoryUnits(text)
	for len(units) < n {
		units = append(units, units[0])
	}
	_, err := e.Memories().Create(t.Context(), scope, memory.NewMemory{CreateInput: memory.CreateInput{Text: text}, Tokens: 1, Units: units})
	if err != nil {
		t.Fatal(err)
	}
}

// settle waits until River has recorded the jobs that ended, which it does some time
// afterwards: jobs that run longer are recorded before the next one ends.
func (e *fairEnv) settle(t *testing.T, workers int) {
	t.Helper()
	for started := time.Now(); ; <-time.After(10 * time.Millisecond) {
		var running int
		if err := e.owner.QueryRow(t.Context(), "select count(*) from river_job where state = 'running'").Scan(&running); err != nil {
			t.Fatal(err)
		}
		if running <= workers {
			return
		}
		if time.Since(started) > 30*time.Second {
			t.Fatalf("%d jobs are running, want %d", running, workers)
		}
	}
}

func next[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: no job ran within 30s", what)
	}
	panic("unreachable")
}

// Jobs that run long, such as purges and large syncs of one tenant, do not delay those of
// other kinds.
func TestLongJobsHaveTheirOwnWorkers(t *testing.T) {
	t.Parallel()
	e := setupFair(t)
	for _, scope := range e.busy {
		for range 2 {
			if _, err := e.Accounts().BeginPurge(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := e.owner.Exec(t.Context(), "update river_job set scheduled_at = now(), state = 'available' where kind = 'account.purge'"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		next(t, e.purging, "purges of a tenant")
	}
	e.write(t, e.other, recentSync+1)
	if got := next(t, e.started, "a large sync during purges"); got != e.other.Tenant {
		t.Errorf("synchronized tenant %s, want %s", got, e.other.Tenant)
	}
	e.write(t, e.other, recentSync+1)
	next(t, e.started, "a second large sync")
	args, opts := sweepArgs()
	if _, err := e.client.Insert(t.Context(), args, opts); err != nil {
		t.Fatal(err)
	}
	next(t, e.swept, "a sweep during purges and large syncs")
	e.write(t, e.other, 1)
	next(t, e.started, "a small sync")
}

// recentSync is the most units of a sync that counts as recent (internal/postgres).
const recentSync = 50

// A tenant with many index jobs delays those of another tenant by about one job per worker,
// whether they are small or large.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ units, workers int }{
		"Small": {1, recentWorkers},
		"Large": {recentSync + 1, backlogWorkers},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := setupFair(t)
			for range 5 * tc.workers {
				e.write(t, e.busy[0], tc.units)
			}
			for range tc.workers {
				next(t, e.started, "the first jobs")
			}
			for range 3 {
				e.write(t, e.other, tc.units)
			}
			waited, done := 0, 0
			for done < 3 {
				e.proceed <- struct{}{}
				if next(t, e.started, "the next job") == e.other.Tenant {
					done++
				} else {
					waited++
				}
				e.settle(t, tc.workers)
			}
			if waited > 2*done {
				t.Errorf("%d jobs of another tenant ran before the %d of this one", waited, done)
			}
		})
	}
}

// A user with many imports delays those of other tenants, and of other users of the tenant,
// by about one.
func TestImportsTakeTurns(t *testing.T) {
	t.Parallel()
	e := setupFair(t)
	greedy, colleague := e.busy[0], e.busy[1]
	for range 4 {
		e.upload(t, greedy, "[]")
	}
	got := []tenant.Scope{next(t, e.importing, "the first import")}
	e.upload(t, colleague, "[]")
	e.upload(t, e.other, "[]")
	for len(got) < 6 {
		e.proceed <- struct{}{}
		got = append(got, next(t, e.importing, "the next import"))
		e.settle(t, importWorkers)
	}
	e.proceed <- struct{}{}
	if diff := cmp.Diff([]tenant.Scope{greedy, e.other, colleague, greedy, greedy, greedy}, got); diff != "" {
		t.Errorf("order of imports (-want +got):\n%s", diff)
	}
}

// An import of many conversations yields to those of other tenants and users, and then
// continues.
func TestLongImportYields(t *testing.T) {
	t.Parallel()
	e := setupFair(t)
	greedy, colleague := e.busy[0], e.busy[1]
	list := make([]string, 500)
	for i := range list {
		list[i] = fmt.Sprintf(`{"uuid":"c-%d","name":"Boats","created_at":"2025-03-03T09:00:00Z","updated_at":"2025-03-03T09:00:00Z",
			"chat_messages":[{"uuid":"m-%d","sender":"human","created_at":"2025-03-03T09:00:00Z","text":"What is in boat %d?"}]}`, i, i, i)
	}
	e.upload(t, greedy, "["+strings.Join(list, ",")+"]")
	next(t, e.storing, "the long import")
	e.upload(t, colleague, "[]")
	e.upload(t, e.other, "[]")
	close(e.uploaded)
	close(e.proceed)
	var got []tenant.Scope
	for range 3 {
		got = append(got, next(t, e.importing, "an import that ends"))
	}
	if diff := cmp.Diff([]tenant.Scope{e.other, colleague, greedy}, got); diff != "" {
		t.Errorf("order in which imports end (-want +got):\n%s", diff)
	}
}
