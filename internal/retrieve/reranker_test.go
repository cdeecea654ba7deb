package retrieve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// lastFirst reranks in the opposite order.
type lastFirst struct {
	calls, texts int
	query        string
	err          error
	hangs        bool
}

func (r *lastFirst) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	r.calls, r.texts, r.query = r.calls+1, len(texts), query
	if r.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	scores := make([]float64, len(texts))
	for i := range scores {
		scores[i] = float64(i)
	}
	return scores, r.err
}

func TestSearchReranks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		reranker *lastFirst
		skip     bool
		want     []UnitID
		degraded []string
		calls    int
	}{
		"Best":    {"only the best three are sent and sorted", &lastFirst{}, false, []UnitID{3, 2, 1, 4, 5}, nil, 1},
		"Skip":    {"the request asks for the order without it", &lastFirst{}, true, []UnitID{1, 2, 3, 4, 5}, nil, 0},
		"Error":   {"an error does not fail the search", &lastFirst{err: errors.New("refused")}, false, []UnitID{1, 2, 3, 4, 5}, []string{trace.Rerank}, 1},
		"Timeout": {"the time budget is short", &lastFirst{hangs: true}, false, []UnitID{1, 2, 3, 4, 5}, []string{trace.Rerank}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			s := &stores{coverage: Coverage{All: true}}
			for i := range 5 {
				s.exact = append(s.exact, Hit{ID: UnitID(i + 1), Score: 0.9 - float64(i)/10})
			}
			e := s.engine(&now)
			e.Reranker, e.RerankTimeout, e.RerankPassages = tc.reranker, 20*time.Millisecond, 3
			var missing trace.Degraded
			zero := 0.0
			r, err := e.Search(trace.WithDegraded(t.Context(), &missing), tenant.Scope{Tenant: "t", User: 1}, homeLocation,
				Query{Kind: Memory, Text: "q", Limit: 5, MinScore: &zero, SkipRerank: tc.skip})
			if err != nil {
				t.Fatal(err)
			}
			var got []UnitID
			for i, f := range r.Found {
				got = append(got, f.ID)
				if i > 0 && f.Score > r.Found[i-1].Score {
					t.Errorf("score %v follows %v: places keep their scores", f.Score, r.Found[i-1].Score)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.degraded, missing.Stages()); diff != "" {
				t.Errorf("missing stages (-want +got):\n%s", diff)
			}
			if tc.reranker.calls != tc.calls || tc.calls > 0 && tc.reranker.texts != 3 {
				t.Errorf("%d calls with %d texts, want %d with 3", tc.reranker.calls, tc.reranker.texts, tc.calls)
			}
		})
	}
}

// After repeated failures searches do not wait for the reranker.
func TestSearchAvoidsFailingReranker(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &stores{coverage: Coverage{All: true}, exact: []Hit{{1, 0.9}, {2, 0.8}}}
	e := s.engine(&now)
	r := &lastFirst{err: errors.New("refused")}
	e.Reranker = r
	for range 20 {
		search(t, e, homeLocation, 5)
	}
	if r.calls >= 20 {
		t.Errorf("%d calls in 20 searches", r.calls)
	}
}

// A question that the reranker refuses does not affect those of others.
func TestRefusedQuestionIsReranked(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &stores{coverage: Coverage{All: true}, exact: []Hit{{1, 0.9}, {2, 0.8}}}
	e := s.engine(&now)
	r := &lastFirst{err: fmt.Errorf("call the endpoint: %w", refusedError{})}
	e.Reranker = r
	search(t, e, homeLocation, 5)
	r.err = nil
	got, _ := search(t, e, homeLocation, 5)
	if diff := cmp.Diff([]UnitID{2, 1}, got); diff != "" {
		t.Errorf("order of the next search (-want +got):\n%s", diff)
	}
}

// The reranker is sent the beginning of a long question, which leaves space for a passage.
func TestLongQuestionIsShortened(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &stores{coverage: Coverage{All: true}, exact: []Hit{{1, 0.9}, {2, 0.8}}}
	e := s.engine(&now)
	r := &lastFirst{}
	e.Reranker = r
	text := strings.Repeat("Where is the ferry? ", 50_000)
	if _, err := e.Search(t.Context(), tenant.Scope{Tenant: "t", User: 1}, homeLocation, Query{Kind: Memory, Text: text, Limit: 5}); err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(r.query)); n < 100 || n > maxPiece {
		t.Errorf("the question has %d words, want 100 to %d", n, maxPiece)
	}
}
