package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// openTest opens the default model.
func openTest(t testing.TB, c LocalConfig) *Local {
	t.Helper()
	c.Library = testkit.ONNXRuntime(t)
	if c.Dir == "" {
		c.Dir = testkit.ModelDir(t)
	}
	l, err := OpenLocal(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// references are made by Hugging Face tokenizers and onnxruntime in fp32;
// testdata/README.md says how.
type references struct {
	Tokens []struct {
		Text string
		IDs  []int64
	}
	// Vectors are those of the first texts and of the last, by model.
	Vectors map[string]struct{ Query, Passage [][]float32 }
}

func readReferences(t testing.TB) references {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var refs references
	if err := json.Unmarshal(raw, &refs); err != nil {
		t.Fatal(err)
	}
	if len(refs.Tokens) < 40 {
		t.Fatalf("%d references, want 40 at least", len(refs.Tokens))
	}
	return refs
}

// texts returns the texts with vectors, if there are count: the first 12, and the last if there are 13.
func (r references) texts(count int) []string {
	var texts []string
	for _, ref := range append(slices.Clone(r.Tokens[:12]), r.Tokens[len(r.Tokens)-1])[:count] {
		texts = append(texts, ref.Text)
	}
	return texts
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

// minCosine is the minimum of the mean cosine to the references. A single text may be 0.01
// below. The multilingual model has the same weights as its reference.
var minCosine = map[string]float64{
	"all-MiniLM-L6-v2-int8": 0.98, "bge-small-en-v1.5-int8": 0.98, "e5-small-v2-int8": 0.995, "multilingual-e5-small-int4": 0.999,
}

// TestModelsAgreeWithReference compares each model with its original in fp32, for queries
// and passages, so that pooling, prefixes and windows are those of the model.
func TestModelsAgreeWithReference(t *testing.T) {
	t.Parallel()
	refs, dirs := readReferences(t), testkit.ModelDirs(t)
	if len(minCosine) != len(Models()) {
		t.Errorf("%d models have a minimum, want all of %d", len(minCosine), len(Models()))
	}
	for _, m := range Models() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			l := openTest(t, LocalConfig{Model: m.Name, Dir: dirs[m.Name]})
			want, ok := refs.Vectors[m.Name]
			if !ok {
				t.Fatal("no reference vectors")
			}
			texts := refs.texts(len(want.Passage))
			passages, err := l.Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			var sum float64
			compare := func(kind, text string, want, got []float32) {
				t.Helper()
				c := cosine(want, got)
				sum += c
				if c < minCosine[m.Name]-0.01 {
					t.Errorf("%s %s: cosine %.4f", kind, short(text), c)
				}
				if length := cosineLength(got); math.Abs(length-1) > 1e-5 {
					t.Errorf("%s %s: length %v, want 1", kind, short(text), length)
				}
			}
			for i, text := range texts {
				compare("passage", text, want.Passage[i], passages[i])
				query, err := l.EmbedQuery(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				compare("query", text, want.Query[i], query)
			}
			mean := sum / float64(2*len(texts))
			t.Logf("mean cosine %.4f", mean)
			if mean < minCosine[m.Name] {
				t.Errorf("mean cosine %.4f, want %.3f at least", mean, minCosine[m.Name])
			}
		})
	}
}

func cosineLength(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// TestTokenizersAgreeWithReference compares token ids of accents, other scripts, emoji,
// code, special tokens, and texts at the limits of a word and of the window.
func TestTokenizersAgreeWithReference(t *testing.T) {
	t.Parallel()
	tok := testTokenizer(t)
	for _, ref := range readReferences(t).Tokens {
		if diff := cmp.Diff(ref.IDs, tok.encode(ref.Text)); diff != "" {
			t.Errorf("%s: token ids (-want +got):\n%s", short(ref.Text), diff)
		}
	}
}

// TestLocalEmbedIsIndependentOfBatch checks that a text's vector depends neither on the
// other texts of a call nor on concurrent callers.
func TestLocalEmbedIsIndependentOfBatch(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 3})
	var texts []string
	for _, ref := range readReferences(t).Tokens {
		texts = append(texts, ref.Text)
	}
	together, err := l.Embed(t.Context(), texts)
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
			if diff := cmp.Diff(together[i], alone[0]); diff != "" {
				t.Errorf("%s differs when alone:\n%s", short(text), diff)
			}
		})
	}
}

// TestLocalThreads checks that several threads for a text change its vector by
// rounding only.
func TestLocalThreads(t *testing.T) {
	t.Parallel()
	one, two := openTest(t, LocalConfig{}), openTest(t, LocalConfig{Threads: 2})
	for _, text := range manyTexts(3) {
		a, err := one.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		b, err := two.EmbedQuery(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if c := cosine(a, b); c < 0.999 {
			t.Errorf("cosine %.5f between one and two threads", c)
		}
	}
}

// TestLocalEmbedFewTexts covers no text, an empty one and one far longer than the window.
func TestLocalEmbedFewTexts(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 1})
	long := strings.Repeat("word ", 100_000)
	for name, texts := range map[string][]string{"None": nil, "Empty": {""}, "Long": {long}} {
		vectors, err := l.Embed(t.Context(), texts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(vectors) != len(texts) {
			t.Errorf("%s: %d vectors, want %d", name, len(vectors), len(texts))
		}
		for _, v := range vectors {
			if len(v) != l.Dimensions() {
				t.Errorf("%s: %d dimensions, want %d", name, len(v), l.Dimensions())
			}
		}
	}
}

func TestLocalEmbedCanceled(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Embed(ctx, manyTexts(50)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if _, err := l.EmbedQuery(ctx, "where"); !errors.Is(err, context.Canceled) {
		t.Errorf("query: error %v, want context.Canceled", err)
	}
	if _, err := l.Embed(t.Context(), []string{"the model still runs"}); err != nil {
		t.Error(err)
	}
}

func TestLocalEmbedClosed(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 2})
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
	if _, err := l.EmbedQuery(t.Context(), "late"); !errors.Is(err, errClosed) {
		t.Errorf("later call: error %v, want %v", err, errClosed)
	}
}

// TestLocalQueryPassesBatch checks that queries do not wait for a batch: with one worker, many are
// answered while a batch of 500 is still running.
func TestLocalQueryPassesBatch(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	batch := make(chan error, 1)
	go func() {
		_, err := l.Embed(ctx, manyTexts(500))
		batch <- err
	}()
	for range 20 {
		if _, err := l.EmbedQuery(t.Context(), "where do I like to sit?"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-batch:
		t.Errorf("the batch was over before 20 queries (error %v)", err)
	default:
	}
	cancel()
	if err := <-batch; !errors.Is(err, context.Canceled) {
		t.Errorf("batch error %v, want context.Canceled", err)
	}
}

// TestLocalBatchesAlternate checks that a small batch started during a big one ends
// first.
func TestLocalBatchesAlternate(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	big := make(chan error, 1)
	go func() {
		_, err := l.Embed(ctx, manyTexts(500))
		big <- err
	}()
	if _, err := l.Embed(t.Context(), manyTexts(4)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-big:
		t.Errorf("500 texts were done before 4 (error %v)", err)
	default:
	}
	cancel()
	<-big
}

// manyTexts are n texts of 64 tokens with the prefix of the default model.
func manyTexts(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strings.Repeat("word ", 59) + string(rune('a'+i%26))
	}
	return texts
}

func TestLocalCountTokens(t *testing.T) {
	t.Parallel()
	l := openTest(t, LocalConfig{Workers: 1})
	for text, want := range map[string]int{"": 2, "hello world": 4, "passage: " + manyTexts(1)[0]: 64, strings.Repeat("a ", 1000): 1002} {
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
	cases := map[string]struct {
		reason string
		config LocalConfig
		files  map[string][]byte
		want   string
	}{
		"UnknownModel": {"a misspelled name", LocalConfig{Model: "e5-small"}, nil, "choose one of all-MiniLM-L6-v2-int8, bge-small-en-v1.5-int8, e5-small-v2-int8, multilingual-e5-small-int4"},
		"Empty":        {"an empty folder lacks the tokenizer", LocalConfig{}, nil, "tokenizer.json of e5-small-v2-int8: see docs/models.md"},
		"NotJSON":      {"a web page saved instead", LocalConfig{}, map[string][]byte{tokenizerFile: []byte("<html>")}, "parse"},
		"OtherKind":    {"a BPE tokenizer is another model's", LocalConfig{}, map[string][]byte{tokenizerFile: []byte(`{"model":{"type":"BPE"}}`)}, "not the tokenizer"},
		"NoWeights":    {"the weights are missing", LocalConfig{}, map[string][]byte{tokenizerFile: tokenizer}, "model.onnx"},
		"OtherWeights": {"a fine-tuned model", LocalConfig{}, map[string][]byte{tokenizerFile: tokenizer, weightsFile: []byte("x")}, "another file: its SHA-256 is 2d711642"},
		"OtherModel":   {"the folder of another model", LocalConfig{Model: "bge-small-en-v1.5-int8", Dir: testkit.ModelDir(t)}, nil, "load model bge-small-en-v1.5-int8"},
		"NoLibrary":    {"onnxruntime is not installed", LocalConfig{Dir: testkit.ModelDir(t), Library: "/nowhere/libonnxruntime.so"}, nil, "Python package onnxruntime"},
		"OtherLibrary": {"a path of another library", LocalConfig{Dir: testkit.ModelDir(t), Library: "libc.so.6"}, nil, "not onnxruntime"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.config.Dir == "" {
				tc.config.Dir = t.TempDir()
			}
			for file, content := range tc.files {
				if err := os.WriteFile(filepath.Join(tc.config.Dir, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := OpenLocal(tc.config)
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %q lacks %q", tc.reason, err, tc.want)
			}
		})
	}
}
