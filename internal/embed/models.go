package embed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/placement"
)

// DefaultModel is the name of the default local model.
const DefaultModel = "e5-small-v2-int8"

// Model describes a local model. Its Name is stored with the vectors: models with different
// vectors have different names, and their vectors cannot share an index.
type Model struct {
	Name       string
	Dimensions int
	// Window is the maximum number of tokens of a text, special tokens included.
	Window int
	// QueryPrefix and PassagePrefix precede a text, as in the model's training.
	QueryPrefix, PassagePrefix string
	pooling                    pooling
	// sum is the SHA-256 of model.onnx.
	sum string
}

// models are sorted by name.
var models = []Model{
	{
		Name: "all-MiniLM-L6-v2-int8", Dimensions: 384, Window: 256, pooling: poolMean,
		sum: "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
	},
	{
		Name: "bge-small-en-v1.5-int8", Dimensions: 384, Window: 512, pooling: poolFirst,
		QueryPrefix: "Represent this sentence for searching relevant passages: ",
		sum:         "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
	},
	{
		Name: "e5-small-v2-int8", Dimensions: 384, Window: 512, pooling: poolMean,
		QueryPrefix: "query: ", PassagePrefix: "passage: ",
		sum: "7d9092cb25f2bd1c023b7e8d2aa459044a02030ac880e5a59fdaf27af69f1ded",
	},
	{
		Name: "multilingual-e5-small-int4", Dimensions: 384, Window: 512, pooling: poolMean,
		QueryPrefix: "query: ", PassagePrefix: "passage: ",
		sum: "34a06f689237193b5826751b99e011196766b4512603a117d6f16811d7c4ff9b",
	},
}

// Generation identifies the model's vectors.
func (m Model) Generation() placement.Generation {
	settings := fmt.Sprintf("pooling %d, window %d, prefixes %q and %q", m.pooling, m.Window, m.QueryPrefix, m.PassagePrefix)
	return placement.Generation{Model: m.Name, Revision: m.sum, Settings: settings, Dimensions: m.Dimensions}
}

// Models returns the local models, sorted by name.
func Models() []Model { return slices.Clone(models) }

// FindModel returns the local model of that name. The error lists the names.
func FindModel(name string) (Model, error) {
	i := slices.IndexFunc(models, func(m Model) bool { return m.Name == name })
	if i < 0 {
		names := make([]string, len(models))
		for i, m := range models {
			names[i] = m.Name
		}
		return Model{}, fmt.Errorf("unknown model %q: choose one of %s", name, strings.Join(names, ", "))
	}
	return models[i], nil
}
