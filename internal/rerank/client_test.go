package rerank

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/openai"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const key = "rr-secret-key"

// server speaks one dialect. It rejects what the dialect does not define, and scores with
// the local embedding model.
type server struct {
	model   *embed.Local
	dialect Dialect
}

func newServer(t *testing.T, d Dialect) *httptest.Server {
	t.Helper()
	model, err := embed.OpenLocal(embed.LocalConfig{Dir: testkit.ModelDir(t), Library: testkit.ONNXRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(server{model, d})
	t.Cleanup(func() {
		s.Close()
		_ = model.Close()
	})
	return s
}

func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/base/rerank" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer "+key {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"invalid key ` + key + `"}}`))
		return
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	var answer any
	var err error
	switch s.dialect {
	case TEI:
		answer, err = s.tei(r.Context(), decoder)
	case Cohere:
		answer, err = s.cohere(r.Context(), decoder)
	case Jina:
		answer, err = s.jina(r.Context(), decoder)
	}
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

type rank struct {
	Index int     `json:"index"`
	Score float64 `json:"score"`
}

// tei is POST /rerank of text-embeddings-inference.
func (s server) tei(ctx context.Context, d *json.Decoder) (any, error) {
	var in struct {
		Query       string   `json:"query"`
		Texts       []string `json:"texts"`
		RawScores   bool     `json:"raw_scores"`
		ReturnText  bool     `json:"return_text"`
		Truncate    bool     `json:"truncate"`
		TruncateDir string   `json:"truncation_direction"`
	}
	if err := d.Decode(&in); err != nil {
		return nil, err
	}
	return s.score(ctx, in.Query, in.Texts)
}

type relevance struct {
	Index          int            `json:"index"`
	RelevanceScore float64        `json:"relevance_score"`
	Document       map[string]any `json:"document,omitempty"`
}

// cohere is POST /v2/rerank of Cohere.
func (s server) cohere(ctx context.Context, d *json.Decoder) (any, error) {
	var in struct {
		Model           string   `json:"model"`
		Query           string   `json:"query"`
		Documents       []string `json:"documents"`
		TopN            int      `json:"top_n"`
		MaxTokensPerDoc int      `json:"max_tokens_per_doc"`
		Priority        int      `json:"priority"`
	}
	if err := d.Decode(&in); err != nil || in.Model == "" {
		return nil, errors.Join(err, errors.New("invalid"))
	}
	ranks, err := s.score(ctx, in.Query, in.Documents)
	results := []relevance{}
	for _, r := range ranks[:min(len(ranks), in.TopN)] {
		results = append(results, relevance{Index: r.Index, RelevanceScore: r.Score})
	}
	return map[string]any{"results": results, "id": "07734bd2", "meta": map[string]any{"billed_units": map[string]any{"search_units": 1}}}, err
}

// jina is POST /v1/rerank of Jina, which returns the documents unless told otherwise.
func (s server) jina(ctx context.Context, d *json.Decoder) (any, error) {
	var in struct {
		Model           string   `json:"model"`
		Query           string   `json:"query"`
		Documents       []string `json:"documents"`
		TopN            int      `json:"top_n"`
		ReturnDocuments *bool    `json:"return_documents"`
	}
	if err := d.Decode(&in); err != nil || in.Model == "" {
		return nil, errors.Join(err, errors.New("invalid"))
	}
	ranks, err := s.score(ctx, in.Query, in.Documents)
	results := []relevance{}
	for _, r := range ranks[:min(len(ranks), in.TopN)] {
		one := relevance{Index: r.Index, RelevanceScore: r.Score}
		if in.ReturnDocuments == nil || *in.ReturnDocuments {
			one.Document = map[string]any{"text": in.Documents[r.Index]}
		}
		results = append(results, one)
	}
	return map[string]any{"model": in.Model, "usage": map[string]any{"total_tokens": 100}, "results": results}, err
}

// score returns the texts by their cosine with the question, best first.
func (s server) score(ctx context.Context, query string, texts []string) ([]rank, error) {
	q, err := s.model.EmbedQuery(ctx, query)
	if err != nil {
		return nil, err
	}
	vectors, err := s.model.Embed(ctx, texts)
	out := make([]rank, len(vectors))
	for i, v := range vectors {
		out[i] = rank{i, retrieve.Dot(q, v)}
	}
	slices.SortFunc(out, func(a, b rank) int {
		if a.Score > b.Score {
			return -1
		}
		return 1
	})
	return out, err
}

// Each dialect returns the model's score of each text, in the order of the texts.
func TestRerank(t *testing.T) {
	t.Parallel()
	texts := []string{"The harbour closes at nine.", "My dentist is Dr Weber in Main Street.", "Paris is the capital of France."}
	for _, d := range Dialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			client, err := New(Config{URL: newServer(t, d).URL + "/base", APIKey: key, Dialect: d, Model: "reranker"})
			if err != nil {
				t.Fatal(err)
			}
			for question, best := range map[string]int{"Who is my dentist?": 1, "What is the capital of France?": 2} {
				scores, err := client.Rerank(t.Context(), question, texts)
				if err != nil {
					t.Fatal(err)
				}
				if len(scores) != len(texts) || slices.Index(scores, slices.Max(scores)) != best {
					t.Errorf("%s: scores %v, want text %d first", question, scores, best)
				}
			}
		})
	}
}

func TestRerankErrors(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"missing text":       `[{"index":0,"score":0.5}]`,
		"index out of range": `[{"index":0,"score":0.5},{"index":2,"score":0.5}]`,
		"no index":           `[{"score":0.5},{"index":1,"score":0.5}]`,
		"no score":           `{"results":[{"index":0},{"index":1,"relevance_score":1}]}`,
		"no results":         `{"error":"x"}`,
		"null":               `null`,
		"not JSON":           `<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
			t.Cleanup(s.Close)
			client, err := New(Config{URL: s.URL, Dialect: TEI})
			if err != nil {
				t.Fatal(err)
			}
			if scores, err := client.Rerank(t.Context(), "secret question", []string{"secret text", "b"}); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("scores %v, error %v: want an error without the texts", scores, err)
			}
		})
	}
}

// The error of a refused key does not contain a key.
func TestRerankHidesTheKey(t *testing.T) {
	t.Parallel()
	client, err := New(Config{URL: newServer(t, TEI).URL + "/wrong", APIKey: key, Dialect: TEI})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Rerank(t.Context(), "q", []string{"a"})
	var status *openai.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized || strings.Contains(err.Error(), key) {
		t.Errorf("error %v, want status 401 without the key", err)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"":                  {URL: "http://tei:8080", Dialect: TEI},
		"model is required": {URL: "https://api.jina.ai/v1", Dialect: Jina},
		"dialect must be":   {URL: "https://x", Dialect: "own", Model: "m"},
		"URL must be":       {URL: "tei:8080", Dialect: TEI},
	} {
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}
