// Package embed computes embeddings: [Local] runs all-MiniLM-L6-v2 in this process,
// [OpenAI] calls any OpenAI-compatible /v1/embeddings endpoint. Both implement the
// Embedder interfaces that their users declare.
//
// The local model is plain Go over the published model.safetensors and
// tokenizer.json; it does not use cgo. The files, in processing order:
//
//	local.go, pool.go          Embed: split into pieces, share the workers fairly
//	tokenizer.go, normalize.go text to WordPiece ids, as the model was trained
//	forward.go, attention.go   ids to a vector, six transformer layers
//	model.go, safetensors.go   the weights and where they come from
//	matrix.go, kernel*.go      matrix products and the hot loops
//
// With GOEXPERIMENT=simd on amd64 the kernels use AVX-512 or AVX2, chosen at run
// time; elsewhere they are plain Go and roughly a tenth as fast.
package embed
