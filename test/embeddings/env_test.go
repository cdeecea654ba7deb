package embeddings_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/internal/tokens"
)

// patience bounds every wait.
const patience = time.Minute

// env is an installation with tenants whose vectors are of all-MiniLM-L6-v2.
type env struct {
	db        *postgres.DB
	owner     *pgxpool.Pool
	index     *milvus.Index
	embedders retrieve.Embedders
	source    placement.GenerationID
	indexer   *indexing.Indexer
	memories  *memory.Service
	users     []user
}

// user is identified with every request, as after each change of a placement.
type user struct {
	scope tenant.Scope
	token tenant.Hash
}

var quiet = slog.New(slog.DiscardHandler)

func openModel(t *testing.T, name string) (retrieve.Embedder, placement.Generation) {
	t.Helper()
	m, err := embed.FindModel(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := embed.OpenLocal(embed.LocalConfig{Model: name, Dir: testkit.ModelDirs(t)[name], Library: testkit.ONNXRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, m.Generation()
}

// setup creates tenants of the isolations, each with one user.
func setup(t *testing.T, isolations ...tenant.Isolation) *env {
	t.Helper()
	d, addr := postgrestest.Create(t), testkit.Milvus(t)
	e := &env{db: postgrestest.Open(t, d)}
	var err error
	if e.owner, err = pgxpool.New(t.Context(), d.OwnerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.owner.Close)
	e.index, err = milvus.Open(t.Context(), milvus.Config{Address: addr.Addr, Username: addr.User, Password: addr.Password,
		Prefix: "gen" + strings.ToLower(rand.Text()) + "_", Dimensions: 384})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.index.Close() })
	model, generation := openModel(t, "all-MiniLM-L6-v2-int8")
	if e.source, err = e.db.EnsureGeneration(t.Context(), generation, true); err != nil {
		t.Fatal(err)
	}
	e.embedders = retrieve.Embedders{e.source: model}
	e.indexer = indexing.NewIndexer(e.db, e.index, e.embedders, quiet)
	engine := retrieve.New(retrieve.Config{Searcher: e.db, Index: e.index, Embedders: e.embedders})
	store := e.db.Memories()
	e.memories = memory.NewService(memory.Config{Store: store, Buckets: store, Searcher: engine, Index: e.index, Embedders: e.embedders, CountTokens: tokens.Count})
	e.work(t)
	for _, isolation := range isolations {
		e.users = append(e.users, e.addTenant(t, isolation))
	}
	return e
}

func (e *env) addTenant(t *testing.T, isolation tenant.Isolation) user {
	t.Helper()
	spec := tenanttest.NewSpec()
	spec.Isolation, spec.Quota.Memories, spec.Quota.UserMemories = isolation, 1e6, 1e6
	got, err := e.db.Apply(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	at, err := e.db.EnsurePlacement(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	state, err := e.db.GetPlacement(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	id, err := placement.EnsurePartition(t.Context(), e.db, placement.WaitLoaded(e.index), state.Current)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.db.SetPartitionID(t.Context(), got.ID, at, id); err != nil {
		t.Fatal(err)
	}
	c := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(rand.Text()), PasswordHash: tenant.HashSecret(rand.Text()), Issuer: tenant.IssuerOperator}
	if err := e.db.Install(t.Context(), got.ID, got.Users[0].Name, c); err != nil {
		t.Fatal(err)
	}
	return user{tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}, c.TokenHash}
}

// work runs the jobs until the test ends.
func (e *env) work(t *testing.T) {
	t.Helper()
	config, err := jobs.Config(e.indexer, e.db, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := jobs.MigrateEmbeddings(config, idle{}); err != nil {
		t.Fatal(err)
	}
	client, err := e.db.Jobs(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop workers: %v", err)
		}
	})
}

// idle is the migrator of the jobs: tests drive migrations step by step.
type idle struct{}

func (idle) Run(context.Context, time.Time) (bool, error) { return false, nil }

// add registers another model. The jobs and services use it, too.
func (e *env) add(t *testing.T, model retrieve.Embedder, g placement.Generation) placement.GenerationID {
	t.Helper()
	id, err := e.db.EnsureGeneration(t.Context(), g, false)
	if err != nil {
		t.Fatal(err)
	}
	e.embedders[id] = model
	return id
}

func (e *env) start(t *testing.T, target placement.GenerationID, o reembed.Options) {
	t.Helper()
	if err := e.db.StartEmbeddingMigration(t.Context(), target, o); err != nil {
		t.Fatal(err)
	}
}

// migrator returns a new one, as in a new process.
func (e *env) migrator(store reembed.Store) *reembed.Migrator {
	return reembed.New(reembed.Config{Store: store, Indexer: e.indexer, Partitions: e.index, Embedders: e.embedders, Log: quiet})
}

// stopping is the store of a process that ends when the migration enters a phase.
type stopping struct {
	*postgres.DB
	at   reembed.Phase
	stop context.CancelFunc
}

func (s stopping) EnterEmbeddingPhase(ctx context.Context, m reembed.Migration, to reembed.Phase, reason string, from ...reembed.Phase) (bool, error) {
	entered, err := s.DB.EnterEmbeddingPhase(ctx, m, to, reason, from...)
	if to == s.at {
		s.stop()
	}
	return entered, err
}

// runUntil runs the migration until it is in a phase.
func (e *env) runUntil(t *testing.T, want reembed.Phase) reembed.Migration {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.Tick(50 * time.Millisecond); ; {
		m := e.migration(t)
		if m.Phase == want {
			return m
		}
		if m.Phase.Finished() {
			t.Fatalf("the migration is %s: %s; %+v", m.Phase, m.Reason, m.Scores)
		}
		ctx, stop := context.WithCancel(t.Context())
		_, err := e.migrator(stopping{e.db, want, stop}).Run(ctx, time.Now().Add(time.Second))
		if err != nil && ctx.Err() == nil {
			t.Fatalf("Run: %v", err)
		}
		stop()
		select {
		case <-deadline:
			t.Fatalf("the migration is still %s", m.Phase)
		case <-tick:
		}
	}
}

func (e *env) migration(t *testing.T) reembed.Migration {
	t.Helper()
	m, err := e.db.LatestEmbeddingMigration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (e *env) identify(ctx context.Context, u user) (tenant.Identity, error) {
	return e.db.Identify(ctx, u.token)
}

func (e *env) remember(ctx context.Context, u user, text string) (string, error) {
	who, err := e.identify(ctx, u)
	if err != nil {
		return "", err
	}
	created, err := e.memories.Create(ctx, who, memory.CreateInput{Text: text})
	return created.ID, err
}

func (e *env) forget(ctx context.Context, u user, id string) error {
	who, err := e.identify(ctx, u)
	if err != nil {
		return err
	}
	return e.memories.Delete(ctx, who, id)
}

// search returns the ids of the best ten memories.
func (e *env) search(ctx context.Context, u user, query string) (ids []string, degraded bool, err error) {
	who, err := e.identify(ctx, u)
	if err != nil {
		return nil, false, err
	}
	found, err := e.memories.List(ctx, who, memory.ListInput{Query: query, Count: 10})
	if err != nil {
		return nil, false, err
	}
	for _, m := range found.Memories {
		ids = append(ids, m.ID)
	}
	return ids, found.Degraded, nil
}

// fact is a memory and a question about it in other words.
type fact struct{ text, question string }

// facts returns different facts: some only a better model tells apart.
func facts(n int) []fact {
	people := []string{"Maria", "Jonas", "Ayşe", "Pavel", "Ingrid", "Tomás", "Chloe", "Hiroshi", "Fatima", "Oskar", "Lucia", "Emeka"}
	about := [][2]string{
		{"%s keeps the spare key of the cabin under the blue flower pot next to the door.", "Where does %s hide the second key to the hut?"},
		{"%s stopped eating peanuts after an allergic reaction in the spring.", "Which food makes %s ill?"},
		{"%s drives an old red van that failed its last inspection because of the brakes.", "What is wrong with the vehicle of %s?"},
		{"%s learns the cello on Tuesdays with a teacher from the conservatory.", "Which instrument does %s practise?"},
		{"%s moved the dentist appointment to Friday because of a conference in Lyon.", "When will %s have the teeth checked?"},
		{"%s grows tomatoes and basil on the balcony and waters them every evening.", "Which vegetables does %s plant at home?"},
		{"%s was born in a small fishing village on the northern coast.", "Where did %s come into the world?"},
		{"%s prefers window seats on trains and always books the quiet coach.", "Where does %s like to sit when travelling by rail?"},
		{"%s adopted a grey cat called Pixel from the shelter last winter.", "What pet does %s own?"},
		{"%s is writing a thesis about the migration of storks over the Bosporus.", "What is the research topic of %s?"},
	}
	places := []string{"Porto", "Riga", "Bergen", "Graz", "Sofia", "Turin", "Lund", "Brno", "Vigo", "Cork", "Tartu"}
	var out []fact
	for i := range n {
		p, a := people[i%len(people)], about[(i/len(people))%len(about)]
		text := fmt.Sprintf(a[0], p) + fmt.Sprintf(" %s told %s about it in %s, in week %d.", p, people[(i+5)%len(people)], places[i*7%len(places)], 1+i/10)
		out = append(out, fact{text, fmt.Sprintf(a[1], p)})
	}
	return out
}

// fill stores facts for a user and returns the ids of their memories.
func (e *env) fill(t *testing.T, u user, list []fact) []string {
	t.Helper()
	ids := make([]string, len(list))
	var group errgroup.Group
	group.SetLimit(8)
	for i, f := range list {
		group.Go(func() (err error) {
			ids[i], err = e.remember(t.Context(), u, f.text)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// recall returns the share of questions that find their memory among the best ten.
func (e *env) recall(t *testing.T, u user, list []fact, ids []string) float64 {
	t.Helper()
	found := 0
	for i, f := range list {
		got, _, err := e.search(t.Context(), u, f.question)
		if err != nil {
			t.Fatalf("search: %v", err)
		}
		if slices.Contains(got, ids[i]) {
			found++
		}
	}
	return float64(found) / float64(len(list))
}

// indexed returns the units in Milvus at a location.
func (e *env) indexed(t *testing.T, id tenant.ID, at placement.Location) map[retrieve.UnitID]bool {
	t.Helper()
	ids, err := e.index.List(t.Context(), id, at, 0, 10000)
	if err != nil {
		t.Fatal(err)
	}
	out := map[retrieve.UnitID]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}

func (e *env) placement(t *testing.T, id tenant.ID) placement.State {
	t.Helper()
	state, err := e.db.GetPlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (e *env) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := e.owner.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// eventually waits until check returns "".
func eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.Tick(100 * time.Millisecond); ; {
		wrong := check()
		if wrong == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatal(wrong)
		case <-tick:
		}
	}
}

// settle waits until no index job is unfinished.
func (e *env) settle(t *testing.T) {
	t.Helper()
	eventually(t, func() string {
		if n := e.number(t, "select count(*) from river_job where kind = 'index.sync' and finalized_at is null"); n > 0 {
			return fmt.Sprintf("%d index jobs are unfinished", n)
		}
		return ""
	})
}
