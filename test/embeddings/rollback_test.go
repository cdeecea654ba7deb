package embeddings_test

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// nonsense returns vectors that have nothing to do with the text.
type nonsense struct{ retrieve.Embedder }

func (nonsense) vector(text string) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	out, sum := make([]float32, 384), 0.0
	for i := range out {
		x := r.NormFloat64()
		out[i], sum = float32(x), sum+x*x
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(sum))
	}
	return out
}

func (n nonsense) Embed(_ context.Context, texts []string) (out [][]float32, err error) {
	for _, text := range texts {
		out = append(out, n.vector(text))
	}
	return out, nil
}

func (n nonsense) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	return n.vector(text), nil
}

// shortSighted embeds only the beginning of a text.
type shortSighted struct{ retrieve.Embedder }

func (s shortSighted) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	short := make([]string, len(texts))
	for i, text := range texts {
		short[i] = text[:min(len(text), 30)]
	}
	return s.Embedder.Embed(ctx, short)
}

// TestWorseModelIsRolledBack: no user is served with a model that finds less.
func TestWorseModelIsRolledBack(t *testing.T) {
	t.Parallel()
	e := setup(t, tenant.Partition)
	u, list := e.users[0], facts(60)
	ids := e.fill(t, u, list)
	e.settle(t)
	first := e.recall(t, u, list, ids)
	model, g := openModel(t, "e5-small-v2-int8")
	for name, worse := range map[string]retrieve.Embedder{"random vectors": nonsense{model}, "truncated texts": shortSighted{model}} {
		target := e.add(t, worse, placement.Generation{Model: g.Model, Revision: name, Dimensions: 384})
		e.start(t, target, reembed.Options{CanaryPercent: 50})
		e.runUntil(t, reembed.RollingBack)
		if who, err := e.identify(t.Context(), u); err != nil || who.Generation != e.source {
			t.Errorf("%s: the user is served with generation %d, %v, want %d", name, who.Generation, err, e.source)
		}
		next := e.placement(t, u.scope.Tenant).Next.Placement.Location
		done := e.runUntil(t, reembed.RolledBack)
		t.Logf("%s: %s", name, done.Reason)
		if !strings.Contains(done.Reason, "below the current model") {
			t.Errorf("%s: reason %q, want that the probe recall is lower", name, done.Reason)
		}
		e.wantOnly(t, u, e.source)
		e.wantDropped(t, u, next)
		if r := e.recall(t, u, list, ids); r != first {
			t.Errorf("%s: recall after the rollback = %.3f, want %.3f", name, r, first)
		}
	}
}

// TestRollbackDuringCanary rolls back by command.
func TestRollbackDuringCanary(t *testing.T) {
	t.Parallel()
	e := setup(t, tenant.Partition)
	u := e.users[0]
	e.fill(t, u, facts(60))
	e.settle(t)
	model, g := openModel(t, "e5-small-v2-int8")
	target := e.add(t, model, g)
	e.start(t, target, reembed.Options{CanaryPercent: 100, CanaryFor: time.Hour})
	e.runUntil(t, reembed.Canary)
	served := func() placement.GenerationID {
		t.Helper()
		who, err := e.identify(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		return who.Generation
	}
	if got := served(); got != target {
		t.Errorf("the user of the canary is served with generation %d, want %d", got, target)
	}
	if err := e.db.RollBackEmbeddingMigration(t.Context(), "users complained"); err != nil {
		t.Fatal(err)
	}
	if got := served(); got != e.source {
		t.Errorf("immediately after the rollback, the user is served with generation %d, want %d", got, e.source)
	}
	if done := e.runUntil(t, reembed.RolledBack); done.Reason != "users complained" {
		t.Errorf("reason %q", done.Reason)
	}
	e.wantOnly(t, u, e.source)
}

// TestMigrationToEndpoint migrates to an OpenAI-compatible endpoint whose vectors have
// another length, and back.
func TestMigrationToEndpoint(t *testing.T) {
	t.Parallel()
	e := setup(t, tenant.Shared)
	u, list := e.users[0], facts(60)
	ids := e.fill(t, u, list)
	e.settle(t)
	first := e.recall(t, u, list, ids)
	endpoint := serveDoubled(t, e.embedders[e.source])
	model, err := embed.NewOpenAI(embed.OpenAIConfig{BaseURL: endpoint, Model: "doubled", Dimensions: 768})
	if err != nil {
		t.Fatal(err)
	}
	id := e.add(t, model, placement.Generation{Model: "doubled", Dimensions: 768})
	e.embedders[id] = indexing.Guard(model, id, e.db)
	for _, target := range []placement.GenerationID{id, e.source} {
		e.start(t, target, reembed.Options{})
		e.runUntil(t, reembed.Completed)
		e.wantOnly(t, u, target)
		if r := e.recall(t, u, list, ids); r < first-0.02 {
			t.Errorf("recall of generation %d = %.3f, want %.3f", target, r, first)
		}
	}
}

// serveDoubled serves vectors of a model, each twice in a row.
func serveDoubled(t *testing.T, model retrieve.Embedder) (url string) {
	t.Helper()
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		err := json.NewDecoder(r.Body).Decode(&in)
		vectors, embedErr := model.Embed(r.Context(), in.Input)
		if err != nil || embedErr != nil {
			http.Error(w, "unavailable", http.StatusServiceUnavailable)
			return
		}
		var out struct {
			Data []item `json:"data"`
		}
		for i, v := range vectors {
			out.Data = append(out.Data, item{i, append(append([]float32{}, v...), v...)})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}
