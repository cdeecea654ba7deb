package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// slowVector embeds like oneVector until the timeout of the job ends one of the requests.
type slowVector struct {
	oneVector
	timeout  context.CancelFunc
	requests int // before the timeout
	texts    int // that were embedded
}

func (s *slowVector) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if s.requests--; s.requests < 0 {
		s.timeout()
		return nil, ctx.Err()
	}
	s.texts += len(texts)
	return s.oneVector.Embed(ctx, texts)
}

// rememberLater stores memories whose vectors an index job computes, and returns their units.
func (m *migrationEnv) rememberLater(t *testing.T, n int) []retrieve.UnitID {
	t.Helper()
	for i := range n {
		text := fmt.Sprintf("Key %d opens the shed.", 10+i)
		if _, err := m.db.Memories().Create(t.Context(), m.scope, memory.NewMemory{
			CreateInput: memory.CreateInput{Text: text}, Tokens: 1, Units: retrieve.MemoryUnits(text),
		}); err != nil {
			t.Fatal(err)
		}
	}
	units, err := m.db.Live(t.Context(), m.scope.Tenant, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return units
}

// count returns an aggregate of the units and the usage of the tenant.
func (m *migrationEnv) count(t *testing.T, what string) (n int) {
	t.Helper()
	if err := m.owner.QueryRow(t.Context(), "select "+what+" from units join usage using (tenant_id) where tenant_id = $1", m.scope.Tenant).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUnitsStoredBeforeThePlacement: the operator issues tokens while it assigns a placement, so a job can run before the placement exists.
func TestUnitsStoredBeforeThePlacement(t *testing.T) {
	t.Parallel()
	m := openMigration(t)
	got, err := m.db.Apply(t.Context(), m.spec)
	if err != nil {
		t.Fatal(err)
	}
	m.scope = tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}
	units := m.rememberLater(t, 2)
	indexer := indexing.NewIndexer(m.db, m.index, retrieve.Embedders{1: oneVector{}}, slog.New(slog.DiscardHandler))
	if err := indexer.Sync(t.Context(), m.scope.Tenant, units); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a placement: %v, want Unavailable", err)
	}
	m.reconcile(t, tenant.Partition)
	if err := indexer.Sync(t.Context(), m.scope.Tenant, units); err != nil {
		t.Error(err)
	}
	if n := m.count(t, "count(indexed_at)"); n != len(units) {
		t.Errorf("%d units are confirmed, want %d", n, len(units))
	}
}

// TestTimeoutKeepsVectors: a job whose texts are embedded too slowly for one attempt completes with the next one, which
// embeds only the rest.
func TestTimeoutKeepsVectors(t *testing.T) {
	t.Parallel()
	const memories, request = 40, 16
	m := openMigration(t)
	m.reconcile(t, tenant.Partition)
	units := m.rememberLater(t, memories)
	// attempt indexes the units with a timeout after some requests, and returns how many texts were embedded.
	attempt := func(requests int) (texts int, err error) {
		ctx, timeout := context.WithCancel(t.Context())
		defer timeout()
		model := &slowVector{timeout: timeout, requests: requests}
		err = indexing.NewIndexer(m.db, m.index, retrieve.Embedders{1: model}, slog.New(slog.DiscardHandler)).Sync(ctx, m.scope.Tenant, units)
		return model.texts, err
	}
	if _, err := attempt(2); err == nil {
		t.Fatal("an attempt with a timeout succeeded")
	}
	if n := m.count(t, "count(embedding)"); n != 2*request {
		t.Errorf("%d units have a vector after the timeout, want %d", n, 2*request)
	}
	if n := m.count(t, "count(indexed_at)"); n != 0 {
		t.Errorf("%d units are confirmed after the timeout, want none", n)
	}
	counted := m.count(t, "coalesce(max(embedded_tokens), 0)")
	texts, err := attempt(memories)
	if err != nil {
		t.Fatal(err)
	}
	if texts != memories-2*request {
		t.Errorf("the next attempt embedded %d texts, want the %d that are missing", texts, memories-2*request)
	}
	if n := m.count(t, "count(indexed_at)"); n != memories {
		t.Errorf("%d units are confirmed, want %d", n, memories)
	}
	if n := m.count(t, "max(embedded_tokens)"); n*2*request != counted*memories {
		t.Errorf("%d tokens of %d units were counted, and %d of all, want each once", counted, 2*request, n)
	}
}

// TestSweepConfirmsIndexedUnits: a sweep was killed after it had written units to the index, before it saved their vectors. No job is
// left that would do it.
func TestSweepConfirmsIndexedUnits(t *testing.T) {
	t.Parallel()
	m := openMigration(t)
	at := m.reconcile(t, tenant.Partition).Current.Location
	units := m.rememberLater(t, 2)
	vectors, _ := oneVector{}.Embed(t.Context(), make([]string, len(units)))
	entries := make([]indexing.Entry, len(units))
	for i, id := range units {
		entries[i] = indexing.Entry{ID: id, User: int64(m.scope.User), Kind: retrieve.Memory, Vector: vectors[i]}
	}
	if err := m.index.Upsert(t.Context(), m.scope.Tenant, at, entries); err != nil {
		t.Fatal(err)
	}
	indexer := indexing.NewIndexer(m.db, m.index, retrieve.Embedders{1: oneVector{}}, slog.New(slog.DiscardHandler))
	for round, want := range []indexing.Drift{{Missing: len(units)}, {}} {
		if got, err := indexer.Sweep(t.Context(), m.scope.Tenant); err != nil || got != want {
			t.Errorf("sweep %d = %+v, %v, want %+v", round, got, err, want)
		}
	}
	for _, column := range []string{"embedding", "indexed_at"} {
		if n := m.count(t, "count("+column+")"); n != len(units) {
			t.Errorf("%d units have %s, want %d", n, column, len(units))
		}
	}
}
