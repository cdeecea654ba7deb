package installation

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
)

// serveEmbeddings answers /embeddings as OpenAI does, for a model of one idea:
// words that end in the same digits mean the same, and no other word means
// anything. What "blue17" asks for is found at "green17", by meaning alone.
func serveEmbeddings(tb testing.TB) string {
	tb.Helper()
	type embedding struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data := make([]embedding, len(asked.Input))
		for i, text := range asked.Input {
			data[i] = embedding{Object: "embedding", Index: i, Embedding: meaning(text)}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": asked.Model, "data": data})
	}))
	tb.Cleanup(server.Close)
	return server.URL
}

var numbered = regexp.MustCompile(`\b[a-z]+([0-9]+)\b`)

// meaning is the direction of the sum of the text's ideas.
func meaning(text string) []float32 {
	sum := make([]float64, dimensions)
	sum[0] = 1e-3 // so that a text without any has a direction
	for _, word := range numbered.FindAllStringSubmatch(text, -1) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(word[1]))
		r := rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // the same for the same word
		for i := range sum {
			sum[i] += r.NormFloat64()
		}
	}
	var norm float64
	for _, x := range sum {
		norm += x * x
	}
	out := make([]float32, dimensions)
	for i, x := range sum {
		out[i] = float32(x / math.Sqrt(norm))
	}
	return out
}
