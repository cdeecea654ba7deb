package indexing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// refusingEmbedder refuses requests with some texts, like an endpoint that returns
// status 400.
type refusingEmbedder struct {
	envEmbedder
	refuses func(text string) bool
	calls   *int
}

type refusedError struct{}

func (refusedError) Error() string { return "status 400 Bad Request" }
func (refusedError) Refused() bool { return true }

func (e refusingEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	*e.calls++
	if slices.ContainsFunc(texts, e.refuses) {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), refusedError{})
	}
	return e.envEmbedder.Embed(ctx, texts)
}

// setupRefusing returns an environment with 500 units and an indexer whose embedder
// refuses some of their texts.
func setupRefusing(refuses func(text string) bool) (e *env, x *Indexer, calls *int) {
	e, calls = newEnv(), new(int)
	for id := retrieve.UnitID(1); id <= syncBatch; id++ {
		e.live[id] = true
	}
	x = e.indexer()
	x.embedders = retrieve.Embedders{0: refusingEmbedder{envEmbedder{e}, refuses, calls}}
	return e, x, calls
}

func allUnits() []retrieve.UnitID {
	ids := make([]retrieve.UnitID, syncBatch)
	for i := range ids {
		ids[i] = retrieve.UnitID(i + 1)
	}
	return ids
}

// A refused text delays no other unit and fails no job.
func TestSyncIsolatesRefusedText(t *testing.T) {
	t.Parallel()
	e, x, calls := setupRefusing(func(text string) bool { return text == "text 123" })
	if err := x.Sync(t.Context(), "t", allUnits()); err != nil {
		t.Errorf("Sync with a refused text: %v", err)
	}
	if n := len(e.indexed); n != syncBatch-1 {
		t.Errorf("%d units are indexed, want %d", n, syncBatch-1)
	}
	if e.confirmed[123] {
		t.Error("the refused unit is confirmed")
	}
	// 32 batches, 2 × log2(16) requests to find the text, and one to test the endpoint.
	if *calls > 32+8+1 {
		t.Errorf("%d requests, want at most 41", *calls)
	}
}

// A refused text is requested again, less and less often, and indexed when the
// endpoint accepts it.
func TestRefusedTextIsRetried(t *testing.T) {
	t.Parallel()
	refused := true
	e, x, calls := setupRefusing(func(text string) bool { return refused && text == "text 123" })
	now := time.Now()
	x.refused.now = func() time.Time { return now }
	attempts := 0
	for range 7 * 24 * 6 { // a week of sweeps every 10 minutes
		*calls = 0
		if err := x.Sync(t.Context(), "t", []retrieve.UnitID{123}); err != nil {
			t.Fatalf("Sync: %v", err)
		}
		if *calls > 0 {
			attempts++
		}
		now = now.Add(10 * time.Minute)
	}
	if attempts < 7 || attempts > 15 {
		t.Errorf("%d attempts in a week, want 7 to 15", attempts)
	}
	refused, now = false, now.Add(24*time.Hour)
	if err := x.Sync(t.Context(), "t", []retrieve.UnitID{123}); err != nil {
		t.Fatalf("Sync: %v", err)
	}
	if _, indexed := e.indexed[123]; !indexed {
		t.Error("the unit is not indexed although its text is accepted")
	}
}

// If the endpoint refuses every text, its configuration is wrong: no unit is skipped.
func TestSyncFailsIfAllTextsAreRefused(t *testing.T) {
	t.Parallel()
	_, x, calls := setupRefusing(func(string) bool { return true })
	for range 2 {
		*calls = 0
		if err := x.Sync(t.Context(), "t", allUnits()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Sync = %v, want Unavailable", err)
		}
		if *calls == 0 || *calls > 6 {
			t.Errorf("%d requests, want 1 to 6", *calls)
		}
	}
}

// A job waits for a failing endpoint instead of recording every attempt as an error.
func TestFailingEmbedderIsUnavailable(t *testing.T) {
	t.Parallel()
	e := newEnv()
	e.live[1] = true
	cause := errors.New("status 401 Unauthorized")
	e.onCall = func(call string) error {
		if call == "embed" {
			return cause
		}
		return nil
	}
	if err := e.indexer().Sync(t.Context(), "t", []retrieve.UnitID{1}); !fault.Is(err, fault.Unavailable) || !errors.Is(err, cause) {
		t.Errorf("Sync = %v, want Unavailable with the cause", err)
	}
}

// The number of remembered refusals is bounded.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRefusals()
	for id := range retrieve.UnitID(maxRefusals + 100) {
		r.add(refusalKey{unit: id})
	}
	if n := len(r.units); n != maxRefusals {
		t.Errorf("%d refusals, want %d", n, maxRefusals)
	}
}
