package embeddings_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// load searches, writes and deletes until it is stopped.
type load struct {
	mu                         sync.Mutex
	searches, failed, degraded int
	written, deleted           map[user][]string // ids
	errs                       []error
	stop                       context.CancelFunc
	wait                       sync.WaitGroup
}

func (e *env) startLoad(t *testing.T, list []fact) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{written: map[user][]string{}, deleted: map[user][]string{}, stop: stop}
	t.Cleanup(stop)
	for _, u := range e.users {
		l.wait.Go(func() { l.search(ctx, e, u, list) })
		l.wait.Go(func() { l.write(ctx, e, u) })
	}
	return l
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed++
	l.errs = append(l.errs, err)
}

func (l *load) search(ctx context.Context, e *env, u user, list []fact) {
	for i := 0; ctx.Err() == nil; i++ {
		ids, degraded, err := e.search(context.WithoutCancel(ctx), u, list[i*7%len(list)].question)
		if err == nil && len(ids) == 0 {
			err = errors.New("a search found nothing")
		}
		if err != nil {
			l.fail(err)
		}
		l.mu.Lock()
		l.searches++
		if degraded {
			l.degraded++
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// note returns a memory that differs from the others.
func note(i int) string {
	words := strings.Fields(`harbour violin passport greenhouse telescope umbrella marathon pottery glacier bakery
		orchard compass lantern saddle quilt ferry museum beehive canoe chimney accordion lighthouse kettle vineyard`)
	r := rand.New(rand.NewPCG(uint64(i), 1))
	r.Shuffle(len(words), func(a, b int) { words[a], words[b] = words[b], words[a] })
	return fmt.Sprintf("Note %d mentions the %s, then the %s.", i, strings.Join(words[:4], ", the "), strings.Join(words[4:8], ", the "))
}

// write stores memories and deletes every other one.
func (l *load) write(ctx context.Context, e *env, u user) {
	for i := 0; ctx.Err() == nil; i++ {
		id, err := e.remember(context.WithoutCancel(ctx), u, note(i))
		if err == nil && i%2 == 1 {
			err = e.forget(context.WithoutCancel(ctx), u, id)
		}
		if err != nil {
			l.fail(err)
			continue
		}
		l.mu.Lock()
		if i%2 == 1 {
			l.deleted[u] = append(l.deleted[u], id)
		} else {
			l.written[u] = append(l.written[u], id)
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// end stops the load, and fails the test if a request failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.wait.Wait()
	if l.failed > 0 || l.searches == 0 {
		t.Errorf("%d of %d searches and writes failed: %v", l.failed, l.searches, errors.Join(l.errs[:min(len(l.errs), 3)]...))
	}
	// On a busy machine, a memory may be embedded after it is first searched.
	if l.degraded*50 > l.searches {
		t.Errorf("%d of %d searches were degraded", l.degraded, l.searches)
	}
}

// TestMigration migrates two tenants, one in a shared collection, from all-MiniLM-L6-v2 to
// e5-small-v2 while they search, write and delete.
func TestMigration(t *testing.T) {
	t.Parallel()
	e := setup(t, tenant.Partition, tenant.Shared)
	list := facts(80)
	ids := map[user][]string{}
	before := map[user]placement.State{}
	for _, u := range e.users {
		ids[u] = e.fill(t, u, list)
		before[u] = e.placement(t, u.scope.Tenant)
	}
	e.settle(t)
	recall := func(stage string) (sum float64) {
		for _, u := range e.users {
			sum += e.recall(t, u, list, ids[u]) / float64(len(e.users))
		}
		t.Logf("recall@10 %s: %.3f", stage, sum)
		return sum
	}
	first := recall("before")
	model, g := openModel(t, "e5-small-v2-int8")
	target := e.add(t, model, g)
	if err := e.db.CheckGenerations(t.Context(), target); !fault.Is(err, fault.Invalid) {
		t.Errorf("CheckGenerations without the current model: %v, want Invalid", err)
	}

	l := e.startLoad(t, list)
	began := time.Now()
	e.start(t, target, reembed.Options{CanaryPercent: 50, CanaryFor: time.Second})
	if err := e.db.StartEmbeddingMigration(t.Context(), target, reembed.Options{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second migration: %v, want Conflict", err)
	}
	e.runUntil(t, reembed.Canary)
	if r := recall("during"); r < first-0.05 {
		t.Errorf("recall during the canary = %.3f, want about %.3f", r, first)
	}
	e.wantServed(t, e.source, target)
	e.wantErased(t, l)
	done := e.runUntil(t, reembed.Completed)
	took := time.Since(began)
	l.end(t)
	e.settle(t)
	last := recall("after")
	t.Logf("%d searches, %d failures, %d degraded in %v; scores %+v", l.searches, l.failed, l.degraded, took.Round(time.Millisecond), done.Scores)
	// The memories of the load compete with the facts; there are more of them on a slow machine.
	if last < first-0.02 {
		t.Errorf("recall with the better model = %.3f, want about %.3f", last, first)
	}
	if done.Scores.Probes < 50 {
		t.Errorf("%d probes compared the models, want at least 50", done.Scores.Probes)
	}
	for _, u := range e.users {
		e.wantOnly(t, u, target)
		e.wantDropped(t, u, before[u].Current.Location)
		for _, id := range l.written[u] {
			if who, err := e.identify(t.Context(), u); err != nil {
				t.Error(err)
			} else if _, err := e.memories.Get(t.Context(), who, id); err != nil {
				t.Errorf("an acknowledged memory is missing: %v", err)
			}
		}
	}
	if err := e.db.CheckGenerations(t.Context(), target); err != nil {
		t.Errorf("CheckGenerations with the new model only: %v", err)
	}
	if err := e.db.CheckGenerations(t.Context(), e.source); !fault.Is(err, fault.Invalid) {
		t.Errorf("CheckGenerations with the old model only: %v, want Invalid", err)
	}
	added := e.addTenant(t, tenant.Partition)
	if got := e.placement(t, added.scope.Tenant).Generation; got != target {
		t.Errorf("a new tenant is in generation %d, want %d", got, target)
	}
}

// wantServed checks that each user is served with one of the generations, and that the
// canary has neither all nor none of a thousand users.
func (e *env) wantServed(t *testing.T, source, target placement.GenerationID) {
	t.Helper()
	for _, u := range e.users {
		who, err := e.identify(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		state := e.placement(t, u.scope.Tenant)
		want := map[placement.GenerationID]placement.Location{source: state.Current.Location, target: state.Next.Placement.Location}
		if who.Placement != want[who.Generation] {
			t.Errorf("user %d is served with generation %d at %+v, want %+v", u.scope.User, who.Generation, who.Placement, want[who.Generation])
		}
	}
	share := e.number(t, "select count(*) from generate_series(1, 1000) id where mod(id * 61, 100) < 50")
	if share != 500 {
		t.Errorf("the canary has %d of 1,000 users, want 500", share)
	}
}

// wantErased checks that memories that were deleted so far are in neither generation.
func (e *env) wantErased(t *testing.T, l *load) {
	t.Helper()
	l.mu.Lock()
	deleted := map[user][]string{}
	for u, ids := range l.deleted {
		deleted[u] = slices.Clone(ids)
	}
	l.mu.Unlock()
	for _, u := range e.users {
		if len(deleted[u]) == 0 {
			t.Error("the load has deleted nothing")
		}
		if n := e.number(t, "select count(*) from units where memory_id = any($1)", deleted[u]); n > 0 {
			t.Errorf("%d vectors of deleted memories are in PostgreSQL", n)
		}
		// The load continues, so recent units may be written or deleted meanwhile.
		last := e.number(t, "select coalesce(max(id), 0) from units where tenant_id = $1", u.scope.Tenant)
		eventually(t, func() string {
			live := map[retrieve.UnitID]bool{}
			ids, err := e.db.Live(t.Context(), u.scope.Tenant, 0, 10000)
			if err != nil {
				return err.Error()
			}
			for _, id := range ids {
				live[id] = true
			}
			state := e.placement(t, u.scope.Tenant)
			for _, at := range state.Locations() {
				for id := range e.indexed(t, u.scope.Tenant, at) {
					if !live[id] && int(id) <= last {
						return fmt.Sprintf("deleted unit %d is in %s", id, at.Collection)
					}
				}
			}
			return ""
		})
	}
}

// wantOnly checks that a tenant has vectors of one generation only, in PostgreSQL and in
// Milvus.
func (e *env) wantOnly(t *testing.T, u user, g placement.GenerationID) {
	t.Helper()
	const others = `select count(*) from units where tenant_id = $1 and (next_embedding is not null or next_generation_id is not null
		or embedding is null or generation_id <> $2)`
	if n := e.number(t, others, u.scope.Tenant, g); n > 0 {
		t.Errorf("%d units of tenant %s have other vectors than of generation %d", n, u.scope.Tenant, g)
	}
	state := e.placement(t, u.scope.Tenant)
	if state.Generation != g || state.Next != (placement.Next{}) {
		t.Errorf("placement is %+v, want generation %d", state, g)
	}
	live, err := e.db.Live(t.Context(), u.scope.Tenant, 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	got := e.indexed(t, u.scope.Tenant, state.Current.Location)
	if len(got) != len(live) {
		t.Errorf("Milvus contains %d units in %s, want %d", len(got), state.Current.Collection, len(live))
	}
	for _, id := range live {
		if !got[id] {
			t.Errorf("unit %d is not in %s", id, state.Current.Collection)
		}
	}
}

// wantDropped checks that a location is emptied, without waiting for the delay of the job.
func (e *env) wantDropped(t *testing.T, u user, at placement.Location) {
	t.Helper()
	const due = "update river_job set scheduled_at = now(), state = 'available' where kind = 'placement.drop' and finalized_at is null and state in ('scheduled', 'available')"
	if _, err := e.owner.Exec(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		ids, err := e.index.List(t.Context(), u.scope.Tenant, at, 0, 10)
		if errors.Is(err, placement.ErrNoPartition) || err == nil && len(ids) == 0 {
			return ""
		}
		return fmt.Sprintf("%d vectors remain in %s: %v", len(ids), at.Collection, err)
	})
}

// crashing ends the process, here the context, after a number of texts.
type crashing struct {
	retrieve.Embedder
	mu    sync.Mutex
	texts int
	at    int
	crash context.CancelFunc
}

func (c *crashing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.mu.Lock()
	c.texts += len(texts)
	if c.at > 0 && c.texts > c.at {
		c.crash()
	}
	c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.Embedder.Embed(ctx, texts)
}

// TestMigrationResumes crashes during the copy and during the cleanup.
func TestMigrationResumes(t *testing.T) {
	t.Parallel()
	e := setup(t, tenant.Partition)
	u := e.users[0]
	e.fill(t, u, facts(160))
	e.settle(t)
	model, g := openModel(t, "e5-small-v2-int8")
	ctx, crash := context.WithCancel(t.Context())
	c := &crashing{Embedder: model, at: 140, crash: crash}
	target := e.add(t, c, g)
	e.start(t, target, reembed.Options{})
	for ctx.Err() == nil {
		_, _ = e.migrator(e.db).Run(ctx, time.Now().Add(time.Second))
	}
	if state := e.placement(t, u.scope.Tenant); state.Next.Cursor == 0 || state.Next.Ready {
		t.Fatalf("after the crash, the placement is %+v, want a part of the units", state.Next)
	}
	c.at = 0
	e.runUntil(t, reembed.Completing)
	if c.texts > 160+copyBatch {
		t.Errorf("%d texts were embedded, want %d and at most a batch again", c.texts, 160)
	}
	if err := e.db.CutOver(t.Context(), u.scope.Tenant); err != nil { // and crash before the cleanup
		t.Fatal(err)
	}
	e.runUntil(t, reembed.Completed)
	units, err := e.db.Live(t.Context(), u.scope.Tenant, 0, 1)
	if err != nil || len(units) != 1 {
		t.Fatalf("units: %v, %v", units, err)
	}
	late := []retrieve.Unit{{ID: units[0], Vector: make([]float32, 384)}} // of a job that began before the end
	if err := e.db.SaveVectors(t.Context(), u.scope.Tenant, []tenant.UserID{u.scope.User}, e.source, late, nil); err != nil {
		t.Fatal(err)
	}
	e.wantOnly(t, u, target)
}

// copyBatch is that of the migrator.
const copyBatch = 128

// TestLowRateIsKept measures the rate of the copy.
func TestLowRateIsKept(t *testing.T) {
	t.Parallel()
	e := setup(t, tenant.Partition)
	e.fill(t, e.users[0], facts(25))
	e.settle(t)
	model, g := openModel(t, "e5-small-v2-int8")
	e.start(t, e.add(t, model, g), reembed.Options{Rate: 5})
	began := time.Now()
	e.runUntil(t, reembed.Completing)
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("25 texts at 5 per second took %v", took)
	}
}
