package retrieve

import (
	"context"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	defaultRerankTimeout  = 300 * time.Millisecond
	defaultRerankPassages = 20
)

// rerank sorts the best results by the scores of the reranker. The places keep their
// calibrated scores, so that the threshold and the comparison of memories with messages
// remain valid. If the reranker fails or exceeds its time, the order stays.
func (e *Engine) rerank(ctx context.Context, q Query, found []Found, texts map[UnitID]string) {
	if e.Reranker == nil || q.SkipRerank {
		return
	}
	n := 0
	for n < min(len(found), e.RerankPassages) && texts[found[n].ID] != "" {
		n++
	}
	if n < 2 {
		return
	}
	head, list := found[:n], make([]string, n)
	for i, f := range head {
		list[i] = texts[f.ID]
	}
	scores := e.askReranker(ctx, q.Text, list)
	if scores == nil {
		trace.Degrade(ctx, trace.Rerank)
		return
	}
	reorder(head, scores)
}

// reorder sorts results by new scores, highest first. The places keep their old ones.
func reorder(found []Found, scores []float64) {
	old := slices.Clone(found)
	order := make([]int, len(found))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	for i, from := range order {
		found[i] = old[from]
		found[i].Score = old[i].Score
	}
}

// askReranker returns the scores, or nil if the reranker is unavailable or slow.
func (e *Engine) askReranker(ctx context.Context, query string, texts []string) []float64 {
	call, admitted := e.reranker.Start(e.Now())
	if !admitted {
		return nil
	}
	staged, end := trace.Begin(ctx, trace.Rerank)
	defer end()
	limited, cancel := context.WithTimeout(staged, e.RerankTimeout)
	defer cancel()
	// A question that fills the window of the model leaves no space for the texts.
	scores, err := e.Reranker.Rerank(limited, beginning(query, maxPiece), texts)
	e.note(ctx, &e.reranker, call, err, "reranker")
	if err != nil || len(scores) != len(texts) {
		return nil
	}
	return scores
}
