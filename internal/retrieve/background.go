package retrieve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

const (
	// backgroundTimeout limits the embedding of the references.
	backgroundTimeout = 10 * time.Second
	// backgroundRetry is the time after a failure before the next attempt.
	backgroundRetry = 15 * time.Second
	// leastScale is the scale below which a model does not tell texts apart.
	leastScale = 1e-3
	// parallelEmbeds limits the concurrent embeddings of references.
	parallelEmbeds = 4
)

// background is how similar a model finds texts that have nothing to do with each other.
// It makes the cosines of different questions and models comparable.
type background struct {
	mean      map[Kind][]float32 // of the reference texts
	scale     map[Kind]float64   // by how much a text exceeds the others for its question
	unrelated [][]float32        // questions about nothing in particular
}

// margin returns by how much a cosine with the question exceeds that of arbitrary
// texts: about 0 for an unrelated text and 1 for one that answers the question.
func (b *background) margin(kind Kind, question []float32, cosine float64) float64 {
	return (cosine - Dot(question, b.mean[kind])) / b.scale[kind]
}

// noise returns the best margin that an unrelated question typically has among texts.
func (b *background) noise(kind Kind, texts [][]float32) float64 {
	best := make([]float64, len(b.unrelated))
	for i, q := range b.unrelated {
		most := -1.0
		for _, t := range texts {
			most = max(most, Dot(q, t))
		}
		best[i] = b.margin(kind, q, most)
	}
	slices.Sort(best)
	n := len(best)
	return (best[(n-1)/2] + best[n/2]) / 2
}

// referenceDate is the date of the reference texts as messages.
var referenceDate = time.Date(2024, time.January, 15, 0, 0, 0, 0, time.UTC)

// measure embeds the references. It returns nil for a model that does not tell them
// apart.
func measure(ctx context.Context, e Embedder, r references) (*background, error) {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	var texts, questions []string
	for _, p := range r.Pairs {
		texts, questions = append(texts, p[0]), append(questions, p[1])
	}
	texts = append(texts, r.Texts...)
	vectors, err := embedQueries(ctx, e, append(questions, r.Unrelated...))
	if err != nil {
		return nil, err
	}
	questionVectors := vectors[:len(questions)]
	b := &background{mean: map[Kind][]float32{}, scale: map[Kind]float64{}, unrelated: vectors[len(questions):]}
	for _, kind := range []Kind{Memory, Chat} {
		passages, err := e.Embed(ctx, formatted(kind, texts))
		if err != nil {
			return nil, fmt.Errorf("embed references: %w", err)
		}
		if len(passages) != len(texts) {
			return nil, fmt.Errorf("embed references: %d vectors for %d texts", len(passages), len(texts))
		}
		b.mean[kind] = average(passages)
		if b.scale[kind] = contrast(questionVectors, passages); b.scale[kind] < leastScale {
			return nil, nil
		}
	}
	return b, nil
}

// formatted returns the texts to embed for memories or messages.
func formatted(kind Kind, texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		switch {
		case kind == Memory:
			out[i] = MemoryDense(text)
		case i < len(learnedRelevance.References.Pairs) || i%2 == 0:
			out[i] = ChatDense(referenceDate, "human", text)
		default:
			out[i] = ChatDense(referenceDate, "assistant", text)
		}
	}
	return out
}

func embedQueries(ctx context.Context, e Embedder, texts []string) ([][]float32, error) {
	out, errs := make([][]float32, len(texts)), make([]error, len(texts))
	slots := make(chan struct{}, parallelEmbeds)
	var wait sync.WaitGroup
	for i, text := range texts {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i], errs[i] = e.EmbedQuery(ctx, text)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("embed reference question: %w", err)
		}
	}
	return out, nil
}

// contrast returns by how much the passage of each question exceeds the others, on
// average. The first passages belong to the questions.
func contrast(questions, passages [][]float32) (sum float64) {
	for i, q := range questions {
		own, others := Dot(q, passages[i]), 0.0
		for j, p := range passages {
			if j != i {
				others += Dot(q, p)
			}
		}
		sum += own - others/float64(len(passages)-1)
	}
	return sum / float64(len(questions))
}

func average(vectors [][]float32) []float32 {
	out := make([]float32, len(vectors[0]))
	for _, v := range vectors {
		for i := range min(len(v), len(out)) {
			out[i] += v[i] / float32(len(vectors))
		}
	}
	return out
}

// backgrounds holds the background of each generation's model.
type backgrounds struct {
	mu    sync.Mutex
	known map[placement.GenerationID]*background
	retry map[placement.GenerationID]time.Time // after a failed measurement
	// running has a channel for each measurement, which is closed at its end or when
	// searches no longer wait for it.
	running map[placement.GenerationID]<-chan struct{}
}

func newBackgrounds() backgrounds {
	return backgrounds{known: map[placement.GenerationID]*background{}, retry: map[placement.GenerationID]time.Time{},
		running: map[placement.GenerationID]<-chan struct{}{}}
}

// background returns that of the generation's model, or nil if it is not available. The
// first call starts its measurement. Searches wait for it within EmbedTimeout of its start,
// and use none afterwards until it ends.
func (e *Engine) background(ctx context.Context, g placement.GenerationID) *background {
	all := &e.backgrounds
	all.mu.Lock()
	b, ok := all.known[g]
	running := all.running[g]
	if running == nil && !ok && !e.Now().Before(all.retry[g]) {
		// Later searches need it too, even if this one is canceled.
		detached := context.WithoutCancel(ctx)
		waiting, end := context.WithTimeout(detached, e.EmbedTimeout)
		running, all.running[g] = waiting.Done(), waiting.Done()
		go func() {
			defer end()
			e.learn(detached, g)
		}()
	}
	all.mu.Unlock()
	if running == nil {
		return b
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.known[g]
}

// learn measures the background of a generation's model.
func (e *Engine) learn(ctx context.Context, g placement.GenerationID) {
	b, err := e.measure(ctx, g)
	switch {
	case err != nil:
		e.Log.WarnContext(ctx, "search without calibrated scores", "generation", g, "error", err)
	case b == nil:
		e.Log.WarnContext(ctx, "search without calibrated scores: the embedding model does not tell the reference texts apart", "generation", g)
	}
	all := &e.backgrounds
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.running, g)
	if err != nil {
		all.retry[g] = e.Now().Add(backgroundRetry)
	} else {
		all.known[g] = b
	}
}

func (e *Engine) measure(ctx context.Context, g placement.GenerationID) (*background, error) {
	model, err := e.Embedders.get(g)
	if err != nil {
		return nil, err
	}
	return measure(ctx, model, learnedRelevance.References)
}
