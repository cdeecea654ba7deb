package onnx

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// DefaultLibrary is found in the loader's search path, where Mnemo's image and
// distributions install onnxruntime.
const DefaultLibrary = "libonnxruntime.so.1"

// Library is onnxruntime, loaded into this process.
type Library struct {
	api     api
	version string
	env     unsafe.Pointer
	memory  unsafe.Pointer // describes tensors in Go's memory
}

// loaded are the libraries by path. A library is never unloaded: its threads may
// still run.
var loaded = struct {
	sync.Mutex
	libraries map[string]*Library
}{libraries: map[string]*Library{}}

// Load loads the shared library of onnxruntime 1.17 or newer: a path, or a name in
// the loader's search path. It loads each path once.
func Load(path string) (*Library, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if l := loaded.libraries[path]; l != nil {
		return l, nil
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load onnxruntime: %w", err)
	}
	l := &Library{}
	if l.version, err = l.api.bind(handle); err != nil {
		return nil, fmt.Errorf("load onnxruntime from %s: %w", path, err)
	}
	if err := l.initialize(); err != nil {
		return nil, fmt.Errorf("initialize onnxruntime %s: %w", l.version, err)
	}
	loaded.libraries[path] = l
	return l, nil
}

func (l *Library) initialize() error {
	if err := l.api.check(l.api.createEnv(logLevelError, "mnemo", &l.env)); err != nil {
		return err
	}
	if err := l.api.check(l.api.disableTelemetry(l.env)); err != nil {
		return err
	}
	return l.api.check(l.api.createCPUMemory(allocatorTypeDevice, memoryTypeDefault, &l.memory))
}

// Version is the version of onnxruntime, such as "1.31.1".
func (l *Library) Version() string { return l.version }
