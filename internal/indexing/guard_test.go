package indexing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// endpoint is an embedder whose model can be replaced under its name.
type endpoint struct{ vector []float32 }

func (e *endpoint) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	for range texts {
		vectors = append(vectors, e.vector)
	}
	return vectors, nil
}
func (e *endpoint) EmbedQuery(context.Context, string) ([]float32, error) { return e.vector, nil }
func (e *endpoint) Model() string                                         { return "hosted" }
func (e *endpoint) Dimensions() int                                       { return len(e.vector) }

type storedFingerprint struct{ vector []float32 }

func (s *storedFingerprint) EnsureFingerprint(_ context.Context, _ placement.GenerationID, vector []float32) ([]float32, error) {
	if s.vector == nil {
		s.vector = vector
	}
	return s.vector, nil
}

// An endpoint that serves another model of the same name and length must not add its
// vectors to the others.
func TestGuardRejectsReplacedModel(t *testing.T) {
	t.Parallel()
	e, stored, now := &endpoint{[]float32{1, 0}}, &storedFingerprint{}, time.Now()
	open := func() *guarded {
		g := Guard(e, 1, stored).(*guarded)
		g.now = func() time.Time { return now }
		return g
	}
	running := open()
	if _, err := running.Embed(t.Context(), []string{"text"}); err != nil {
		t.Fatalf("Embed with the first model: %v", err)
	}
	e.vector = []float32{0.99, 0.14} // other hardware
	if _, err := open().EmbedQuery(t.Context(), "text"); err != nil {
		t.Errorf("EmbedQuery with the same model: %v", err)
	}
	e.vector = []float32{0, 1}
	now = now.Add(guardEvery + time.Second)
	for name, g := range map[string]*guarded{"a running server": running, "a new server": open()} {
		_, err := g.Embed(t.Context(), []string{"text"})
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "a different model") {
			t.Errorf("%s: Embed = %v, want Unavailable: a different model", name, err)
		}
		if _, err := g.EmbedQuery(t.Context(), "text"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: EmbedQuery = %v, want Unavailable", name, err)
		}
	}
}

// refusingEndpoint refuses every text.
type refusingEndpoint struct{ endpoint }

func (refusingEndpoint) Embed(context.Context, []string) ([][]float32, error) {
	return nil, refusedError{}
}

// An endpoint that refuses the fixed text is misconfigured: no text of a user is the cause.
func TestGuardReportsNoRefusal(t *testing.T) {
	t.Parallel()
	g := Guard(&refusingEndpoint{}, 1, &storedFingerprint{})
	if _, err := g.EmbedQuery(t.Context(), "text"); !fault.Is(err, fault.Unavailable) || retrieve.IsRefused(err) || !strings.Contains(err.Error(), "status 400") {
		t.Errorf("EmbedQuery = %v, want Unavailable with the cause, which is no refusal of the text", err)
	}
}
