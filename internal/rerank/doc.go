// Package rerank scores texts for a question with a model at an endpoint that is compatible with
// text-embeddings-inference (TEI), Cohere or Jina.
package rerank
