package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (b *testBundle) ensureGeneration(t *testing.T, g placement.Generation) placement.GenerationID {
	t.Helper()
	id, err := b.EnsureGeneration(t.Context(), g, true)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestGenerationsAreIdentifiedByEverythingThatChangesVectors(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ids := map[placement.GenerationID]placement.Generation{}
	for _, g := range []placement.Generation{
		{Model: "m", Dimensions: 384}, {Model: "m", Dimensions: 768}, {Model: "M", Dimensions: 384},
		{Model: "m", Revision: "2", Dimensions: 384}, {Model: "m", Settings: "prefix", Dimensions: 384},
	} {
		id := b.ensureGeneration(t, g)
		if other, taken := ids[id]; taken {
			t.Errorf("%+v and %+v are the same generation", g, other)
		}
		if again := b.ensureGeneration(t, g); again != id {
			t.Errorf("%+v is generation %d and %d", g, id, again)
		}
		ids[id] = g
	}
	if n := b.number(t, "select count(distinct name) from embedding_generations"); n != len(ids) {
		t.Errorf("%d names of %d generations: their collections would mix vectors", n, len(ids))
	}
}

// A server with another model of the same length is rejected as soon as a tenant has a
// placement.
func TestServerWithAnotherModelIsRejected(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	other := placement.Generation{Model: "another-model", Dimensions: postgrestest.Generation.Dimensions}
	theirs := b.ensureGeneration(t, other)
	if err := b.CheckGenerations(t.Context(), theirs); err != nil {
		t.Errorf("CheckGenerations without a placement: %v", err)
	}
	ours := b.ensureGeneration(t, postgrestest.Generation) // the active one again
	if _, err := b.EnsurePlacement(t.Context(), b.users[0].Tenant); err != nil {
		t.Fatal(err)
	}
	if err := b.CheckGenerations(t.Context(), ours); err != nil {
		t.Errorf("CheckGenerations with the model: %v", err)
	}
	if err := b.CheckGenerations(t.Context(), theirs, ours); err != nil {
		t.Errorf("CheckGenerations with both models: %v", err)
	}
	err := b.CheckGenerations(t.Context(), theirs)
	wantKind(t, "CheckGenerations with another model", err, fault.Invalid)
	for _, want := range []string{"1 tenants", "test-model", "docs/models.md"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if b.ensureGeneration(t, other); b.number(t, "select id from embedding_generations where active") != int(ours) {
		t.Error("a model that is not in use became the active one")
	}
}

// Vectors of two generations are stored side by side and never compared with each other,
// although they have the same length.
func TestVectorsOfGenerationsAreSeparate(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, alice := t.Context(), b.users[0]
	first, second := []float32{1, 0}, []float32{0, 1}
	owner := b.upsert(t, alice, newConversation("a", 0, 1)).Conversation.ID
	id := b.unitsOf(t, owner)[0]
	save := func(g placement.GenerationID, vector []float32) {
		t.Helper()
		if err := b.SaveVectors(ctx, alice.Tenant, []tenant.UserID{alice.User}, g, withVectors(map[retrieve.UnitID][]float32{id: vector}), nil); err != nil {
			t.Fatal(err)
		}
	}
	save(1, first)
	save(2, second)
	save(1, second) // neither is replaced
	save(2, first)
	wantScores := func(g placement.GenerationID, want []float64) {
		t.Helper()
		q := retrieve.Request{Kind: retrieve.Chat, Generation: g, Limit: 5}
		exact, coverage, err := b.exact(ctx, alice, q, first)
		if err != nil {
			t.Fatal(err)
		}
		scored, err := b.Score(ctx, alice, g, []retrieve.UnitID{id}, first)
		if err != nil {
			t.Fatal(err)
		}
		described, err := b.Describe(ctx, alice, q, []retrieve.UnitID{id})
		if err != nil {
			t.Fatal(err)
		}
		for what, hits := range map[string][]retrieve.Hit{"Exact": exact, "Score": scored} {
			got := make([]float64, len(hits))
			for i, h := range hits {
				got[i] = h.Score
			}
			if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("%s of generation %d (-want +got):\n%s", what, g, diff)
			}
		}
		if coverage.Missing != (len(want) == 0) {
			t.Errorf("coverage of generation %d = %+v", g, coverage)
		}
		if got := len(described[0].Vector); got != 2*len(want) {
			t.Errorf("Describe of generation %d returns a vector of length %d", g, got)
		}
	}
	wantScores(1, []float64{1})
	wantScores(2, []float64{0})
	wantScores(3, nil)
	if _, err := b.Conversations().Upsert(ctx, alice, newConversation("a", 0, 2)); err != nil {
		t.Fatal(err)
	}
	units, err := b.Load(ctx, alice.Tenant, b.unitsOf(t, owner))
	if err != nil || len(units) != 2 {
		t.Fatalf("Load = %v, %v", units, err)
	}
}

// The vectors of a database from before generations belong to the model in the names of
// its collections.
func TestVectorsFromBeforeGenerations(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	exec(t, b.owner, "insert into embedding_generations (name, dimensions, active) values ('mnemo_test_model_384', 384, true)")
	exec(t, b.owner, `insert into placements (tenant_id, generation, collection, partition)
		select id, 'mnemo_test_model_384', 'mnemo_test_model_384_1', 't' || id from tenants`)
	other := b.ensureGeneration(t, placement.Generation{Model: "another", Dimensions: 384})
	wantKind(t, "CheckGenerations with another model", b.CheckGenerations(t.Context(), other), fault.Invalid)
	ours := b.ensureGeneration(t, placement.Generation{Model: "Test-Model", Revision: "sum", Dimensions: 384})
	if err := b.CheckGenerations(t.Context(), ours); err != nil {
		t.Errorf("CheckGenerations with the model of the collections: %v", err)
	}
	changed := b.ensureGeneration(t, placement.Generation{Model: "Test-Model", Revision: "another sum", Dimensions: 384})
	wantKind(t, "CheckGenerations with another file of that name", b.CheckGenerations(t.Context(), changed), fault.Invalid)
}

var _ indexing.Fingerprints = (*postgres.DB)(nil)

func TestFirstFingerprintIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.ensureGeneration(t, postgrestest.Generation)
	for _, vector := range [][]float32{{1, 0}, {0, 1}} {
		got, err := b.EnsureFingerprint(t.Context(), id, vector)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]float32{1, 0}, got); diff != "" {
			t.Errorf("fingerprint (-want +got):\n%s", diff)
		}
	}
}

// refusing is a model that refuses texts that contain a word; "" for none.
type refusing struct {
	word       string
	dimensions int
}

type textRefused struct{}

func (textRefused) Error() string { return "text refused" }
func (textRefused) Refused() bool { return true }

func (m refusing) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if m.word != "" && strings.Contains(text, m.word) {
			return nil, textRefused{}
		}
		vectors[i] = make([]float32, m.dimensions)
		vectors[i][0] = 1
	}
	return vectors, nil
}

func (m refusing) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := m.Embed(ctx, []string{text})
	return vectors[0], err
}

func (m refusing) Model() string   { return "refusing" }
func (m refusing) Dimensions() int { return m.dimensions }

// TestSweepEmbedsTextsThatTheNextModelRefused: a sweep retries a text that a model refused during the migration to it.
func TestSweepEmbedsTextsThatTheNextModelRefused(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b, quiet, ctx := setupIn(t, d, nil), slog.New(slog.DiscardHandler), t.Context()
	scope := b.users[0]
	if _, err := postgrestest.OpenUnindexed(t, d).EnsurePlacement(ctx, scope.Tenant); err != nil {
		t.Fatal(err)
	}
	ids := slices.Concat(b.unitsOf(t, b.remember(t, scope, "plums", nil)), b.unitsOf(t, b.remember(t, scope, "pears", nil)))
	models := retrieve.Embedders{1: refusing{dimensions: postgrestest.Generation.Dimensions}}
	next, err := b.EnsureGeneration(ctx, placement.Generation{Model: "next", Dimensions: 8}, false)
	if err != nil {
		t.Fatal(err)
	}
	models[next] = refusing{word: "pears", dimensions: 8}
	indexer := indexing.NewIndexer(b.DB, indexing.NoIndex{Log: quiet}, models, quiet)
	if err := indexer.Sync(ctx, scope.Tenant, ids); err != nil {
		t.Fatal(err)
	}
	if err := b.StartEmbeddingMigration(ctx, next, reembed.Options{}); err != nil {
		t.Fatal(err)
	}
	migrator := reembed.New(reembed.Config{Store: b.DB, Indexer: indexer, Partitions: indexing.NoIndex{Log: quiet}, Embedders: models, Log: quiet})
	if again, err := migrator.Run(ctx, time.Now().Add(time.Hour)); again || err != nil {
		t.Fatalf("Run = %t, %v", again, err)
	}
	if m, err := b.LatestEmbeddingMigration(ctx); err != nil || m.Phase != reembed.Completed {
		t.Fatalf("the migration is %s, %v", m.Phase, err)
	}
	models[next] = refusing{dimensions: 8}
	indexer = indexing.NewIndexer(b.DB, indexing.NoIndex{Log: quiet}, models, quiet) // whose time to retry has come
	for round, want := range []indexing.Drift{{Missing: 1}, {}} {
		if got, err := indexer.Sweep(ctx, scope.Tenant); err != nil || got != want {
			t.Errorf("sweep %d = %+v, %v, want %+v", round, got, err, want)
		}
	}
	q := retrieve.Request{Kind: retrieve.Memory, Generation: next, Unindexed: true, Limit: 5}
	hits, coverage, err := b.exact(ctx, scope, q, []float32{1, 0, 0, 0, 0, 0, 0, 0})
	if err != nil || len(hits) != 2 || coverage.Missing {
		t.Errorf("Exact = %v, %+v, %v, want both units", hits, coverage, err)
	}
}

// Other transactions delete all units of a batch while it waits for them. The vectors of later units are deleted nevertheless.
func TestDeleteOtherVectorsBesideDeletions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, id := t.Context(), b.users[0].Tenant
	b.insertUnits(t, b.users[0], b.remember(t, b.users[0], "Many units.", nil), 1200, "now()")
	b.remember(t, b.users[2], "A memory of another tenant.", nil)
	exec(t, b.owner, "update units set embedding = '\\x0000', generation_id = 2")
	if _, err := b.EnsurePlacement(ctx, id); err != nil { // in generation 1
		t.Fatal(err)
	}
	tx, err := b.owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "delete from units where id in (select id from units where tenant_id = $1 order by id limit 500)", id); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- b.DeleteOtherVectors(ctx, id) }()
	awaitRow(t, b.owner, deleted, "select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and l.locktype = 'transactionid' and not l.granted")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if n := b.number(t, "select count(*) from units where tenant_id = $1 and generation_id = 2", id); n != 0 {
		t.Errorf("%d units have vectors of the other generation, want none", n)
	}
	if n := b.number(t, "select count(*) from units where tenant_id <> $1 and generation_id = 2", id); n != 1 {
		t.Errorf("%d units of the other tenant have vectors of that generation, want 1", n)
	}
}
