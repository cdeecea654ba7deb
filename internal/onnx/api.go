package onnx

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// apiVersion is the version of the C interface in use. Every onnxruntime from 1.17
// provides it; the interface only grows.
const apiVersion = 17

// Values of the C interface's enumerations.
const (
	logLevelError       = 3
	elementTypeInt64    = 7
	allocatorTypeDevice = 0
	memoryTypeDefault   = 0
)

// status is an OrtStatus; nil is success.
type status unsafe.Pointer

// api holds the functions in use of the C interface, a table of function pointers.
type api struct {
	errorMessage      func(status) string
	disableTelemetry  func(env unsafe.Pointer) status
	createEnv         func(level int32, name string, env *unsafe.Pointer) status
	createSession     func(env, model unsafe.Pointer, size uintptr, options unsafe.Pointer, session *unsafe.Pointer) status
	run               func(session, options unsafe.Pointer, inputs *unsafe.Pointer, values *unsafe.Pointer, count uintptr, outputs *unsafe.Pointer, outputCount uintptr, results *unsafe.Pointer) status
	createOptions     func(options *unsafe.Pointer) status
	createRunOptions  func(options *unsafe.Pointer) status
	addRunConfig      func(options unsafe.Pointer, key, value string) status
	releaseRunOptions func(unsafe.Pointer)
	setLogLevel       func(options unsafe.Pointer, level int32) status
	setIntraOpThreads func(options unsafe.Pointer, count int32) status
	setInterOpThreads func(options unsafe.Pointer, count int32) status
	addConfig         func(options unsafe.Pointer, key, value string) status
	createTensor      func(memory, data unsafe.Pointer, size uintptr, shape *int64, rank uintptr, elementType int32, value *unsafe.Pointer) status
	tensorData        func(value unsafe.Pointer, data *unsafe.Pointer) status
	createCPUMemory   func(allocator, memoryType int32, memory *unsafe.Pointer) status
	releaseStatus     func(status)
	releaseSession    func(unsafe.Pointer)
	releaseValue      func(unsafe.Pointer)
	releaseOptions    func(unsafe.Pointer)
	tensorInfo        func(value unsafe.Pointer, info *unsafe.Pointer) status
	elementCount      func(info unsafe.Pointer, count *uintptr) status
	releaseInfo       func(unsafe.Pointer)
}

// functions returns where each function of a is in the table of the C interface, by
// its index in struct OrtApi of onnxruntime_c_api.h.
func (a *api) functions() map[int]any {
	return map[int]any{
		2: &a.errorMessage, 3: &a.createEnv, 6: &a.disableTelemetry, 8: &a.createSession, 9: &a.run,
		10: &a.createOptions, 39: &a.createRunOptions, 97: &a.releaseRunOptions, 165: &a.addRunConfig, 22: &a.setLogLevel,
		24: &a.setIntraOpThreads, 25: &a.setInterOpThreads, 49: &a.createTensor, 51: &a.tensorData,
		64: &a.elementCount, 65: &a.tensorInfo, 69: &a.createCPUMemory,
		93: &a.releaseStatus, 95: &a.releaseSession, 96: &a.releaseValue, 99: &a.releaseInfo, 100: &a.releaseOptions,
		130: &a.addConfig,
	}
}

// apiBase is struct OrtApiBase: two function pointers.
type apiBase struct{ getAPI, getVersion uintptr }

// bind looks up the functions in a loaded library and returns its version.
func (a *api) bind(handle uintptr) (version string, err error) {
	symbol, err := purego.Dlsym(handle, "OrtGetApiBase")
	if err != nil {
		return "", fmt.Errorf("not onnxruntime: %w", err)
	}
	var getBase func() unsafe.Pointer
	purego.RegisterFunc(&getBase, symbol)
	base := (*apiBase)(getBase())
	var getVersion func() string
	purego.RegisterFunc(&getVersion, base.getVersion)
	var getAPI func(uint32) unsafe.Pointer
	purego.RegisterFunc(&getAPI, base.getAPI)
	version = getVersion()
	table := getAPI(apiVersion)
	if table == nil {
		return "", fmt.Errorf("onnxruntime %s is too old: 1.%d or newer is required", version, apiVersion)
	}
	for index, function := range a.functions() {
		purego.RegisterFunc(function, *(*uintptr)(unsafe.Add(table, uintptr(index)*unsafe.Sizeof(uintptr(0)))))
	}
	return version, nil
}

// check turns a status into an error and releases it.
func (a *api) check(s status) error {
	if s == nil {
		return nil
	}
	defer a.releaseStatus(s)
	return errors.New(a.errorMessage(s))
}
