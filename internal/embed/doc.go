// Package embed computes embeddings: [Local] runs a model in this process, [OpenAI]
// calls any OpenAI-compatible /v1/embeddings endpoint. Both implement the Embedder
// interfaces that their users declare.
//
// A local model is one of [Models], a file model.onnx that internal/onnx runs and its
// tokenizer.json. The files, in processing order:
//
//	models.go                  the models by name: prefixes, pooling, checksum
//	local.go, queue.go         texts to vectors, and the order of the work
//	tokenizer.go, unigram.go   text to ids, for multilingual models
//	wordpiece.go, normalize.go text to ids, for models in English
//	pooling.go                 hidden states to one vector
package embed
