//go:build !linux

package onnx

// inHugePages calls load. Huge pages need Linux.
func inHugePages(load func() error) error { return load() }
