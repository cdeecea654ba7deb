package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mnemo-dev/mnemo/internal/onnx"
)

// The files of a model.
const (
	weightsFile   = "model.onnx"
	tokenizerFile = "tokenizer.json" //nolint:gosec // a file name, no credential
)

var errClosed = errors.New("the embedder is closed")

// LocalConfig configures a Local.
type LocalConfig struct {
	// Model is a name in Models. The default is DefaultModel.
	Model string
	// Dir contains model.onnx and tokenizer.json of the model.
	Dir string
	// Library is the shared library of onnxruntime: a path, or a name in the loader's
	// search path. The default is onnx.DefaultLibrary.
	Library string
	// Workers is the number of texts computed at a time. The default is GOMAXPROCS.
	Workers int
	// Threads is the number of threads that compute one text. The default of 1 has the
	// best throughput.
	Threads int
}

// Local embeds with a model in this process. It is safe for concurrent use. A text's vector
// does not depend on the other texts of a call.
type Local struct {
	model     Model
	tokenizer tokenizer
	session   *onnx.Session
	library   string
	// Queries have slots of their own: they do not wait for passages.
	passages, queries *queue
}

// OpenLocal loads the model and onnxruntime: a fraction of a second, and about as much memory
// as the file has. The file stays mapped and must not change. An error says
// what is missing and how to get it.
func OpenLocal(c LocalConfig) (*Local, error) {
	if c.Model == "" {
		c.Model = DefaultModel
	}
	m, err := FindModel(c.Model)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, tokenizerFile)
	t, err := loadTokenizer(path, m.Window)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w; %s", path, err, m.howToGet())
	}
	if err := m.verify(filepath.Join(c.Dir, weightsFile)); err != nil {
		return nil, fmt.Errorf("load model %s: %w; %s", c.Model, err, m.howToGet())
	}
	return open(c, m, t)
}

func open(c LocalConfig, m Model, t tokenizer) (*Local, error) {
	if c.Library == "" {
		c.Library = onnx.DefaultLibrary
	}
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	library, err := onnx.Load(c.Library)
	if err != nil {
		return nil, fmt.Errorf("%w; Mnemo's images contain the library; elsewhere, install it or name its path: it is in the Python package onnxruntime, folder onnxruntime/capi", err)
	}
	session, err := library.Open(filepath.Join(c.Dir, weightsFile), max(c.Threads, 1))
	if err != nil {
		return nil, err
	}
	return &Local{
		model: m, tokenizer: t, session: session, library: library.Version(),
		passages: newQueue(c.Workers), queries: newQueue(c.Workers),
	}, nil
}

// howToGet is appended to errors about the model's files.
func (m Model) howToGet() string {
	return "get model.onnx and tokenizer.json of " + m.Name + ": see docs/models.md"
}

// verify checks that a file is the model: a fine-tuned one has other vectors, which must
// not share an index.
func (m Model) verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != m.sum {
		return fmt.Errorf("%s is another file: its SHA-256 is %s, want %s", path, sum, m.sum)
	}
	return nil
}

// Embed returns one vector of length 1 per passage, a text to be found, in order. Text beyond
// Window is ignored. It fails if ctx is done or the embedder is closed.
func (l *Local) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	err := l.passages.do(ctx, len(texts), func(i int) (err error) {
		vectors[i], err = l.vector(l.model.PassagePrefix + texts[i])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("embed %d texts locally: %w", len(texts), err)
	}
	return vectors, nil
}

// EmbedQuery returns the vector of a search query. It does not wait for passages.
func (l *Local) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	var vector []float32
	err := l.queries.do(ctx, 1, func(int) (err error) {
		vector, err = l.vector(l.model.QueryPrefix + text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("embed a query locally: %w", err)
	}
	return vector, nil
}

// vector computes one text. Int8 models quantize the values of a whole pass
// together, so texts in one pass would change each other's vectors.
func (l *Local) vector(text string) ([]float32, error) {
	states, err := l.session.Run(l.tokenizer.encode(text))
	if err != nil {
		return nil, err
	}
	return l.model.pooling.apply(states, l.model.Dimensions), nil
}

// Model is the model's name.
func (l *Local) Model() string { return l.model.Name }

// Dimensions is the length of the model's vectors.
func (l *Local) Dimensions() int { return l.model.Dimensions }

// Window is the maximum number of tokens of a text that are embedded.
func (l *Local) Window() int { return l.model.Window }

// Runtime is the version of onnxruntime.
func (l *Local) Runtime() string { return l.library }

// CountTokens returns the number of tokens in a text, including the two special
// tokens and without the limit of Window. It costs about a microsecond per ten tokens.
func (l *Local) CountTokens(text string) int {
	return l.tokenizer.count(text)
}

// Close waits for running passes and releases the model. Running and later calls fail.
func (l *Local) Close() error {
	l.passages.close()
	l.queries.close()
	l.session.Close()
	return nil
}
