package main

import (
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/rerank"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// rerankFlags configure the model that sorts search results again.
type rerankFlags struct {
	RerankURL      string         `env:"MNEMO_RERANK_URL" help:"Base URL of a reranking endpoint, without /rerank, such as https://api.cohere.com/v2. Default: results are not reranked."`
	RerankDialect  rerank.Dialect `env:"MNEMO_RERANK_DIALECT" default:"tei" enum:"tei,cohere,jina" help:"Request format: tei (text-embeddings-inference), cohere (also vLLM and Infinity) or jina."`
	RerankModel    string         `env:"MNEMO_RERANK_MODEL" help:"Name of the model at the reranking endpoint. Not used by tei."`
	RerankKey      string         `env:"MNEMO_RERANK_KEY" help:"Bearer token for the reranking endpoint, if it requires one."`
	RerankTimeout  time.Duration  `env:"MNEMO_RERANK_TIMEOUT" default:"300ms" help:"Time budget for reranking; on timeout, results are returned unreranked."`
	RerankPassages int            `env:"MNEMO_RERANK_PASSAGES" default:"20" help:"Number of results that are sent to the reranking endpoint."`
}

// open returns the reranker, or nil if none is configured.
func (f rerankFlags) open() (retrieve.Reranker, error) {
	if f.RerankURL == "" {
		return nil, nil //nolint:nilnil // none is configured
	}
	if f.RerankPassages < 2 || f.RerankPassages > 100 {
		return nil, fmt.Errorf("--rerank-passages must be 2 to 100, not %d", f.RerankPassages)
	}
	client, err := rerank.New(rerank.Config{URL: f.RerankURL, Dialect: f.RerankDialect, Model: f.RerankModel, APIKey: f.RerankKey})
	if err != nil {
		return nil, fmt.Errorf("--rerank-url, --rerank-dialect, --rerank-model: %w", err)
	}
	return client, nil
}
