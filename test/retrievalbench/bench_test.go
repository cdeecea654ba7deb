package retrievalbench

import (
	"cmp"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var (
	data      = flag.String("data", "", "dataset files, separated by commas; the generated sets if empty")
	server    = flag.String("url", "", "a running server, with -token; starts one if empty")
	token     = flag.String("token", "", "the token of a user without conversations")
	rankings  = flag.String("rankings", "lexical,dense,fused", "rankings to measure")
	jsonFile  = flag.String("json", "", "file for the reports as JSON")
	threshold = flag.Float64("threshold", retrieve.DefaultMinScore, "score below which a passage counts as irrelevant")
)

// dimensions is the length of the vectors.
const dimensions = installation.ModelDimensions

// TestRetrieval measures retrieval, and holds it to limits on the generated sets.
func TestRetrieval(t *testing.T) {
	t.Parallel()
	sets := generated()
	if *data != "" {
		sets = nil
		for path := range strings.SplitSeq(*data, ",") {
			if !filepath.IsAbs(path) {
				path = filepath.Join("../..", path) // of the repository
			}
			d, err := load(path)
			if err != nil {
				t.Fatal(err)
			}
			sets = append(sets, d)
		}
	}
	url, secret, model := *server, *token, "of the server"
	if url == "" {
		s := installation.ServeLocal(t, "reader")
		url, secret, model = s.URL, s.Tokens["reader"], modelOf(t, s.DB)
	}
	u := connect(t, url, secret)
	var reports []report
	for _, d := range sets {
		answers := answersOf(t, u, d)
		for ranking := range strings.SplitSeq(*rankings, ",") {
			r := report{Dataset: d.name, Format: d.format, Hash: d.hash, Ranking: ranking, Threshold: *threshold,
				Server: cmp.Or(*server, "started for the test"), Model: model}
			for _, h := range d.histories {
				for _, c := range h.chats {
					r.Units += len(c.messages)
				}
			}
			r.summarize(answers[ranking])
			t.Logf("\n%s", r)
			reports = append(reports, r)
			if *data == "" {
				checkGenerated(t, r)
			}
		}
	}
	if *jsonFile == "" {
		return
	}
	raw, err := json.MarshalIndent(reports, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*jsonFile, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// modelOf returns the embedding model whose vectors a server stores.
func modelOf(t *testing.T, db *postgres.DB) string {
	t.Helper()
	used, err := db.UsedGenerations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(used) != 1 {
		t.Fatalf("the server stores vectors of %d models, want 1: %v", len(used), used)
	}
	return used[0].Model
}

// answersOf asks every question of a dataset with each ranking.
func answersOf(t *testing.T, u user, d dataset) map[string][]answer {
	t.Helper()
	out := map[string][]answer{}
	for _, h := range d.histories {
		s, err := u.load(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.SplitSeq(*rankings, ",") {
			for _, q := range h.unanswerable().questions {
				a, err := u.ask(t.Context(), s, q, client.SearchRequestRanking(name))
				if err != nil {
					t.Fatal(err)
				}
				out[name] = append(out[name], a)
			}
		}
		if err := u.clear(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// connect returns a user of a server.
func connect(t *testing.T, url, token string) user {
	t.Helper()
	c, err := client.New(url, token, client.WithHTTPClient(&http.Client{Timeout: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	return user{c}
}
