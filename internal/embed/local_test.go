package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func openTest(t testing.TB, opts LocalOptions, kern *kernels) *Local {
	t.Helper()
	l, err := openLocal(testkit.ModelDir(t), opts, kern)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// reference is one text as sentence-transformers sees it; testdata/README.md says
// how the file was made.
type reference struct {
	Text   string    `json:"text"`
	IDs    []int32   `json:"ids"`
	Vector []float32 `json:"vector"`
}

func references(t testing.TB) []reference {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var refs []reference
	if err := json.Unmarshal(raw, &refs); err != nil {
		t.Fatal(err)
	}
	if len(refs) < 40 {
		t.Fatalf("%d references, want at least 40", len(refs))
	}
	return refs
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

func short(text string) string {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return fmt.Sprintf("%q", text)
}

func TestLocalAgreesWithReference(t *testing.T) {
	t.Parallel()
	refs := references(t)
	texts := make([]string, len(refs))
	for i, ref := range refs {
		texts[i] = ref.Text
	}
	for _, kern := range availableKernels() {
		t.Run(kern.name, func(t *testing.T) {
			t.Parallel()
			l := openTest(t, LocalOptions{}, kern)
			if l.Model() != modelName || l.Dimensions() != 384 || l.Window() != 256 {
				t.Errorf("model %q, %d dimensions, window %d; want %q, 384, 256", l.Model(), l.Dimensions(), l.Window(), modelName)
			}
			vectors, err := l.Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			worst := 1.0
			for i, ref := range refs {
				if diff := cmp.Diff(ref.IDs, l.tokenizer.encode(ref.Text)); diff != "" {
					t.Errorf("%s: token ids (-want +got):\n%s", short(ref.Text), diff)
				}
				c := cosine(ref.Vector, vectors[i])
				worst = min(worst, c)
				if c < 0.9999 {
					t.Errorf("%s: cosine %.6f with the reference", short(ref.Text), c)
				}
				if length := math.Sqrt(dotSelf(vectors[i])); math.Abs(length-1) > 1e-5 {
					t.Errorf("%s: length %v, want 1", short(ref.Text), length)
				}
			}
			t.Logf("%d texts, worst cosine %.7f", len(refs), worst)
		})
	}
}

func dotSelf(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

// A text's vector must not depend on the other texts of the call or on concurrent calls,
// which share matrix products and workers.
func TestLocalEmbedIsIndependentOfBatch(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 3}, availableKernels()[0])
	refs := references(t)
	var texts []string
	for _, ref := range refs {
		texts = append(texts, ref.Text)
	}
	batch, err := l.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			alone, err := l.Embed(t.Context(), []string{text})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(batch[i], alone[0]); diff != "" {
				t.Errorf("vector of %s (-in a batch +alone):\n%s", short(text), diff)
			}
		})
	}
}

func TestLocalEmbedNothing(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 1}, availableKernels()[0])
	vectors, err := l.Embed(t.Context(), nil)
	if err != nil || len(vectors) != 0 {
		t.Errorf("Embed(nil) = %v, %v; want nothing", vectors, err)
	}
}

func TestLocalEmbedCancelled(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 1}, availableKernels()[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Embed(ctx, manyTexts(50)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if _, err := l.Embed(t.Context(), []string{"the workers still run"}); err != nil {
		t.Error(err)
	}
}

func TestLocalEmbedClosed(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 2}, availableKernels()[0])
	running := make(chan error)
	go func() {
		_, err := l.Embed(t.Context(), manyTexts(500))
		running <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-running; !errors.Is(err, errClosed) {
		t.Errorf("running call: error %v, want %v", err, errClosed)
	}
	if _, err := l.Embed(t.Context(), []string{"late"}); !errors.Is(err, errClosed) {
		t.Errorf("later call: error %v, want %v", err, errClosed)
	}
}

// Queries take precedence over the remaining texts of a batch: with one worker, 20
// queries complete while a batch of 500 is still running.
func TestLocalQueriesOvertakeBatch(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 1}, availableKernels()[0])
	ctx, cancel := context.WithCancel(t.Context())
	batch := make(chan error, 1)
	go func() {
		_, err := l.Embed(ctx, manyTexts(500))
		batch <- err
	}()
	for range 20 {
		if _, err := l.Embed(t.Context(), []string{"where do I like to sit?"}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-batch:
		t.Errorf("the batch completed before 20 queries (error %v)", err)
	default:
	}
	cancel()
	if err := <-batch; !errors.Is(err, context.Canceled) {
		t.Errorf("batch error %v, want context.Canceled", err)
	}
}

// Batches alternate: a small batch started during a large one completes first.
func TestLocalBatchesAlternate(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 1}, availableKernels()[0])
	ctx, cancel := context.WithCancel(t.Context())
	large := make(chan error, 1)
	go func() {
		_, err := l.Embed(ctx, manyTexts(500))
		large <- err
	}()
	if _, err := l.Embed(t.Context(), manyTexts(4)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-large:
		t.Errorf("500 texts completed before 4 (error %v)", err)
	default:
	}
	cancel()
	<-large
}

// manyTexts returns n texts of 64 tokens each.
func manyTexts(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strings.Repeat("word ", 61) + string(rune('a'+i%26))
	}
	return texts
}

func TestLocalCountTokens(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalOptions{Workers: 1}, availableKernels()[0])
	for text, want := range map[string]int{"": 2, "hello world": 4, manyTexts(1)[0]: 64, strings.Repeat("a ", 1000): 1002} {
		if got := l.CountTokens(text); got != want {
			t.Errorf("CountTokens(%s) = %d, want %d", short(text), got, want)
		}
	}
}

func TestOpenLocalErrors(t *testing.T) {
	t.Parallel()
	tokenizer, err := os.ReadFile(filepath.Join(testkit.ModelDir(t), tokenizerFile))
	if err != nil {
		t.Fatal(err)
	}
	header := func(json string) []byte {
		return append([]byte{byte(len(json)), byte(len(json) >> 8), 0, 0, 0, 0, 0, 0}, json...)
	}
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		want   string
	}{
		"Empty":         {"an empty directory", nil, "tokenizer.json"},
		"NotJSON":       {"a web page instead of the file", map[string][]byte{tokenizerFile: []byte("<html>")}, "parse"},
		"OtherKind":     {"a tokenizer of another type", map[string][]byte{tokenizerFile: []byte(`{"model":{"type":"BPE"}}`)}, "not the tokenizer"},
		"NoWeights":     {"the weights are missing", map[string][]byte{tokenizerFile: tokenizer}, "model.safetensors"},
		"LFSPointer":    {"a Git LFS pointer instead of the file", map[string][]byte{tokenizerFile: tokenizer, weightsFile: []byte("version https://git-lfs.github.com/spec/v1")}, "not one of a safetensors"},
		"Truncated":     {"a truncated download", map[string][]byte{tokenizerFile: tokenizer, weightsFile: header("{")[:8]}, "read header"},
		"MissingTensor": {"another model", map[string][]byte{tokenizerFile: tokenizer, weightsFile: header(`{"__metadata__":{"format":"pt"}}`)}, "is missing"},
		"WrongShape": {"a larger model", map[string][]byte{tokenizerFile: tokenizer,
			weightsFile: header(`{"embeddings.word_embeddings.weight":{"dtype":"F32","shape":[30522,768],"data_offsets":[0,4]}}`)}, "[30522 768], want F32 [30522 384]"},
		"WrongOffsets": {"an invalid header", map[string][]byte{tokenizerFile: tokenizer,
			weightsFile: header(`{"embeddings.word_embeddings.weight":{"dtype":"F32","shape":[30522,384],"data_offsets":[0,4]}}`)}, "has offsets"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := OpenLocal(dir, LocalOptions{})
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			for _, want := range []string{tc.want, dir, "pip download"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %q does not contain %q", tc.reason, err, want)
				}
			}
		})
	}
}
