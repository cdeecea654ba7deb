package embed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
)

// The shape of all-MiniLM-L6-v2. It is checked against the file and cannot be
// configured: another model is another Model name and another index.
const (
	hidden    = 384
	heads     = 12
	headDim   = hidden / heads // 32, one panel
	inner     = 1536           // width of the feed-forward layer
	layers    = 6
	vocabSize = 30522
	// window is the model's limit in tokens, [CLS] and [SEP] included.
	window = 256
)

const (
	modelName = "all-MiniLM-L6-v2"
	// modelSum is the SHA-256 of the published model.safetensors.
	modelSum = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)

// model holds the weights; it is read-only from loadModel to close.
type model struct {
	name string
	// words is vocabSize × hidden. A text needs only a few rows of it, which are
	// read through the page cache: in memory, they would be half of the weights.
	words table
	// positions is window × hidden, including the only token type in use.
	positions []float32
	norm      layerNorm
	layers    [layers]layer
	file      *os.File // the source of words
}

// layer is one transformer block.
type layer struct {
	qkv        *matrix // hidden → 3×hidden: queries (scaled), keys, values
	output     *matrix // hidden → hidden
	outputNorm layerNorm
	up         *matrix // hidden → inner
	down       *matrix // inner → hidden
	downNorm   layerNorm
}

type layerNorm struct{ gain, bias []float32 } // hidden each

// linear is a layer as PyTorch stores it: weight is [output][input].
type linear struct{ weight, bias []float32 }

// loadModel reads and packs the weights, about 43 MB, and keeps the file open to read
// words from it.
func loadModel(path string) (*model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := readModel(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return m, nil
}

func readModel(f *os.File) (*model, error) {
	name, err := identify(f)
	if err != nil {
		return nil, err
	}
	tensors, err := readTensorFile(f)
	if err != nil {
		return nil, err
	}
	words, err := tensors.table("embeddings.word_embeddings.weight", vocabSize, hidden)
	if err != nil {
		return nil, err
	}
	r := &weightReader{file: tensors}
	m := &model{name: name, words: words, positions: r.positions(), norm: r.norm("embeddings.LayerNorm"), file: f}
	for i := range m.layers {
		m.layers[i] = r.layer(fmt.Sprintf("encoder.layer.%d.", i))
	}
	return m, r.err
}

// close closes the file. No pass may be running.
func (m *model) close() error { return m.file.Close() }

// identify names the model by its content. Fine-tuned models have the same
// shapes but other vectors, and must not share an index: they get the start of
// their checksum in the name.
func identify(f io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if sum == modelSum {
		return modelName, nil
	}
	return modelName + "@" + sum[:8], nil
}

// weightReader keeps the first error, so that callers check it once; after an error it
// returns zero values.
type weightReader struct {
	file *tensorFile
	err  error
}

func (r *weightReader) read(name string, shape ...int) []float32 {
	if r.err != nil {
		return nil
	}
	values, err := r.file.read(name, shape...)
	r.err = err
	return values
}

func (r *weightReader) positions() []float32 {
	// The table has 512 rows; sentence-transformers truncates texts at 256.
	positions := r.read("embeddings.position_embeddings.weight", 512, hidden)
	types := r.read("embeddings.token_type_embeddings.weight", 2, hidden)
	if r.err != nil {
		return nil
	}
	positions = append([]float32(nil), positions[:window*hidden]...)
	for i := range positions {
		positions[i] += types[i%hidden]
	}
	return positions
}

func (r *weightReader) norm(name string) layerNorm {
	return layerNorm{gain: r.read(name+".weight", hidden), bias: r.read(name+".bias", hidden)}
}

func (r *weightReader) linear(name string, out, in int) linear {
	return linear{weight: r.read(name+".weight", out, in), bias: r.read(name+".bias", out)}
}

func (r *weightReader) layer(prefix string) layer {
	query := r.linear(prefix+"attention.self.query", hidden, hidden)
	key := r.linear(prefix+"attention.self.key", hidden, hidden)
	value := r.linear(prefix+"attention.self.value", hidden, hidden)
	output := r.linear(prefix+"attention.output.dense", hidden, hidden)
	up := r.linear(prefix+"intermediate.dense", inner, hidden)
	down := r.linear(prefix+"output.dense", hidden, inner)
	l := layer{outputNorm: r.norm(prefix + "attention.output.LayerNorm"), downNorm: r.norm(prefix + "output.LayerNorm")}
	if r.err != nil {
		return l
	}
	// Attention divides scores by √headDim; done once here instead.
	for _, part := range [][]float32{query.weight, query.bias} {
		for i := range part {
			part[i] *= float32(1 / math.Sqrt(headDim))
		}
	}
	l.qkv = packMatrix(hidden, query, key, value)
	l.output = packMatrix(hidden, output)
	l.up = packMatrix(hidden, up)
	l.down = packMatrix(inner, down)
	return l
}
