// Package onnx runs transformer encoders with onnxruntime, which it loads at run time
// without cgo: no C compiler is needed to build Mnemo, and nothing is loaded in
// processes that do not use a local model.
//
//	library.go, api.go   the shared library and its C interface
//	session.go           a model, and a pass through it
//	weights.go           the weights, mapped from the model's file instead of copied
//	pages_linux.go       huge pages for the weights that onnxruntime repacks
package onnx
