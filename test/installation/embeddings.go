package installation

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
)

// Embeddings serves OpenAI's /embeddings with a fake model: words that end in the
// same digits have the same meaning, and other words have none. A semantic search
// for "blue17" finds "green17".
func Embeddings() http.Handler {
	type embedding struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data := make([]embedding, len(request.Input))
		for i, text := range request.Input {
			data[i] = embedding{Object: "embedding", Index: i, Embedding: meaning(text)}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": request.Model, "data": data})
	})
}

var numbered = regexp.MustCompile(`\b[a-z]+([0-9]+)\b`)

// meaning returns the normalized sum of the vectors of a text's numbered words.
func meaning(text string) []float32 {
	sum := make([]float64, dimensions)
	sum[0] = 1e-3 // a direction for texts without numbered words
	for _, word := range numbered.FindAllStringSubmatch(text, -1) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(word[1]))
		r := rand.New(rand.NewPCG(h.Sum64(), 1)) // the same for the same word
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
