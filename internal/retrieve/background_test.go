package retrieve

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// gated is a model whose embeddings of passages wait until the gate is opened.
type gated struct {
	letters
	gate  chan struct{}
	calls *atomic.Int32
}

func (g gated) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	g.calls.Add(1)
	select {
	case <-g.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return g.letters.Embed(ctx, texts)
}

// A measurement that hangs delays the searches of its generation by EmbedTimeout at most, once, and those of
// others not at all. It continues if the request that started it is canceled.
func TestBackgroundHangs(t *testing.T) {
	t.Parallel()
	slow := gated{gate: make(chan struct{}), calls: &atomic.Int32{}}
	e := New(Config{Embedders: Embedders{1: slow, 2: letters{}}, EmbedTimeout: time.Minute})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if b := e.background(canceled, 1); b != nil {
		t.Error("a canceled search waited for the measurement")
	}
	if b := e.background(t.Context(), 2); b == nil {
		t.Error("no background of a generation while another one is measured")
	}
	waiting := make(chan *background)
	go func() { waiting <- e.background(t.Context(), 1) }()
	close(slow.gate)
	if b := <-waiting; b == nil {
		t.Error("the measurement ended with the canceled search")
	}
	if n := slow.calls.Load(); n != 2 {
		t.Errorf("%d embeddings of passages, want one for memories and one for messages", n)
	}
}

// Searches do not wait for a measurement that has lasted longer than EmbedTimeout.
func TestBackgroundIsSlow(t *testing.T) {
	t.Parallel()
	slow := gated{gate: make(chan struct{}), calls: &atomic.Int32{}}
	e := New(Config{Embedders: Embedders{1: slow}, EmbedTimeout: time.Millisecond})
	for range 3 {
		if b := e.background(t.Context(), 1); b != nil {
			t.Error("background of a model that does not answer")
		}
	}
	close(slow.gate)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for e.background(ctx, 1) == nil {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if n := slow.calls.Load(); n != 2 {
		t.Errorf("%d embeddings of passages, want those of one measurement", n)
	}
}

// flat is a model that gives all texts the same vector.
type flat struct{ letters }

func (flat) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1}
	}
	return out, nil
}

func (flat) EmbedQuery(context.Context, string) ([]float32, error) { return []float32{1}, nil }

// A model that does not tell texts apart is logged once, and not measured again.
func TestBackgroundOfFlatModel(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := New(Config{Embedders: Embedders{7: flat{}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		if b := e.background(t.Context(), placement.GenerationID(7)); b != nil {
			t.Error("calibrated scores of a model that does not tell texts apart")
		}
	}
	if n := strings.Count(log.String(), "generation=7"); n != 1 {
		t.Errorf("%d log lines, want 1:\n%s", n, log.String())
	}
}
