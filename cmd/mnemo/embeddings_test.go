package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestEmbeddings(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	tn := e.apply(t, tenanttest.NewSpec())
	e.rebuildIndex(t, tn.ID, 0)
	status := []string{"embeddings", "status"}
	migrate := []string{"embeddings", "migrate", "--canary-for", "30m"}
	rollback := []string{"embeddings", "rollback", "--reason", "changed our minds"}
	e.expectOutput(t, "e5-small-v2-int8", status...)
	e.expectError(t, "no next model is configured", migrate...)
	e.expectError(t, "there has been no embedding migration", rollback...)

	// Another model of the same length is refused.
	t.Setenv("MNEMO_MODEL", "all-MiniLM-L6-v2-int8")
	e.expectError(t, "the vectors of 1 tenants were computed by model e5-small-v2-int8", "index", "repair", "--all")
	t.Setenv("MNEMO_MODEL", "e5-small-v2-int8")

	t.Setenv("MNEMO_NEXT_EMBEDDER", "local")
	t.Setenv("MNEMO_NEXT_MODEL", "e5-small-v2-int8")
	e.expectError(t, "all vectors already use model e5-small-v2-int8", migrate...)
	t.Setenv("MNEMO_NEXT_MODEL", "all-MiniLM-L6-v2-int8")
	t.Setenv("MNEMO_NEXT_MODEL_DIR", testkit.ModelDirs(t)["all-MiniLM-L6-v2-int8"])
	e.expectError(t, "--canary-percent", append(migrate, "--canary-percent", "101")...)
	e.expectOutput(t, "migrating to model all-MiniLM-L6-v2-int8", migrate...)
	e.expectError(t, "in progress", migrate...)
	for _, want := range []string{"all-MiniLM-L6-v2-int8", "copying", "1 to copy, 0 copied, 0 migrated", "10 % of the users for 30m0s"} {
		e.expectOutput(t, want, status...)
	}
	e.expectOutput(t, "rolling back", rollback...)
	e.expectOutput(t, "changed our minds", status...)
	e.expectError(t, "can no longer be rolled back", rollback...)
	e.expectOutput(t, "nothing to repair", "index", "repair", "--all") // with both models
}

// An endpoint that refuses every text is unavailable. One that refuses a query is not.
func TestRefusingEndpointIsUnavailable(t *testing.T) {
	t.Parallel()
	var refusesAll atomic.Bool
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if refusesAll.Load() || strings.Contains(string(body), "refused") {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[1]}]}`)
	}))
	t.Cleanup(endpoint.Close)
	s := &stores{db: openEnv(t, postgrestest.Create(t)).db}
	// embed embeds a query with a new process and returns mnemo_dependency_up.
	embed := func(text string) float64 {
		t.Helper()
		registry, counts := newMetrics()
		embedders, err := openEmbedders(t.Context(), s, counts, embedderFlags{
			Embedder: "openai", EmbeddingsURL: endpoint.URL, EmbeddingsModel: "hosted", EmbeddingsDimensions: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range embedders {
			_, _ = e.EmbedQuery(t.Context(), text)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "mnemo_dependency_up" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no mnemo_dependency_up")
		return 0
	}
	if up := embed("refused"); up != 1 {
		t.Errorf("mnemo_dependency_up is %v after a refused query, want 1", up)
	}
	refusesAll.Store(true)
	if up := embed("text"); up != 0 {
		t.Errorf("mnemo_dependency_up is %v although every text is refused, want 0", up)
	}
}

func TestEmbeddingStats(t *testing.T) {
	now := time.Now()
	scores := reembed.Scores{Source: 0.5, Target: 0.75}
	for name, tc := range map[string]struct {
		migration reembed.Migration
		want      telemetry.EmbeddingStats
	}{
		"none": {},
		"canary": {
			reembed.Migration{ID: 1, Phase: reembed.Canary, Options: reembed.Options{CanaryPercent: 10}, Idle: time.Minute, Ready: 3, Scores: scores},
			telemetry.EmbeddingStats{CanaryPercent: 10, Idle: time.Minute, Ready: 3, Previous: 0.5, Next: 0.75},
		},
		"rolling back": {
			reembed.Migration{ID: 1, Phase: reembed.RollingBack, Ready: 3}, telemetry.EmbeddingStats{RolledBack: true, Ready: 3},
		},
		"rolled back lately": {
			reembed.Migration{ID: 1, Phase: reembed.RolledBack, FinishedAt: now.Add(-time.Hour), Idle: time.Hour}, telemetry.EmbeddingStats{RolledBack: true},
		},
		"rolled back long ago": {reembed.Migration{ID: 1, Phase: reembed.RolledBack, FinishedAt: now.Add(-25 * time.Hour)}, telemetry.EmbeddingStats{}},
		"completed":            {reembed.Migration{ID: 1, Phase: reembed.Completed, Migrated: 3}, telemetry.EmbeddingStats{CanaryPercent: 100}},
	} {
		if diff := cmp.Diff(tc.want, embeddingStats(tc.migration, now)); diff != "" {
			t.Errorf("%s: statistics (-want +got):\n%s", name, diff)
		}
	}
}
