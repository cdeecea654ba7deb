package main

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/telemetry"
)

// nextEmbedderFlags configure a second model, to which the embeddings migrate.
type nextEmbedderFlags struct {
	NextEmbedder             string `env:"MNEMO_NEXT_EMBEDDER" enum:"none,local,openai" default:"none" help:"Source of embeddings of the next model, to which the embeddings are migrated: none, local or openai."`
	NextModel                string `env:"MNEMO_NEXT_MODEL" enum:"${models}" default:"${defaultModel}" help:"Next model of the local embedder: ${enum}."`
	NextModelDir             string `env:"MNEMO_NEXT_MODEL_DIR" type:"path" help:"Directory with model.onnx and tokenizer.json of the next model."`
	NextEmbeddingsURL        string `env:"MNEMO_NEXT_EMBEDDINGS_URL" help:"Base URL of the embeddings endpoint of the next model."`
	NextEmbeddingsKey        string `env:"MNEMO_NEXT_EMBEDDINGS_KEY" help:"Bearer token for the embeddings endpoint of the next model."`
	NextEmbeddingsModel      string `env:"MNEMO_NEXT_EMBEDDINGS_MODEL" help:"Name of the next model at its embeddings endpoint."`
	NextEmbeddingsRevision   string `env:"MNEMO_NEXT_EMBEDDINGS_REVISION" help:"Revision of the next model."`
	NextEmbeddingsDimensions int    `env:"MNEMO_NEXT_EMBEDDINGS_DIMENSIONS" help:"Length of the next model's vectors."`
}

// next returns the flags of the next model, which shares the other settings with the
// current one; Embedder is "none" without one.
func (f nextEmbedderFlags) next(current embedderFlags) embedderFlags {
	next := current
	next.Embedder, next.Model, next.ModelDir = f.NextEmbedder, f.NextModel, f.NextModelDir
	next.EmbeddingsURL, next.EmbeddingsKey, next.EmbeddingsModel = f.NextEmbeddingsURL, f.NextEmbeddingsKey, f.NextEmbeddingsModel
	next.EmbeddingsRevision, next.EmbeddingsDimensions = f.NextEmbeddingsRevision, f.NextEmbeddingsDimensions
	return next
}

// openEmbedders opens the configured models. It returns Invalid if the database contains
// vectors of another one. counts may be nil.
func openEmbedders(ctx context.Context, s *stores, counts *telemetry.Metrics, configured ...embedderFlags) (retrieve.Embedders, error) {
	var ids []placement.GenerationID
	flags := map[placement.GenerationID]embedderFlags{}
	for _, f := range configured {
		if f.Embedder == "none" {
			continue
		}
		g, err := f.generation()
		if err != nil {
			return nil, err
		}
		id, err := s.db.EnsureGeneration(ctx, g, len(ids) == 0)
		if err != nil {
			return nil, err
		}
		ids, flags[id] = append(ids, id), f
	}
	if err := s.db.CheckGenerations(ctx, ids...); err != nil {
		return nil, err
	}
	embedders := retrieve.Embedders{}
	for id, f := range flags {
		e, err := f.open()
		if err != nil {
			return nil, err
		}
		if f.Embedder != "local" { // a local model is verified by its checksum
			e = indexing.Guard(e, id, s.db)
		}
		if counts != nil {
			e = counts.Embedder(e)
		}
		embedders[id] = e
	}
	return embedders, nil
}
