package onnx

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"
)

// The inputs and the output of an encoder, zero-terminated. All exports of BERT use these names.
var (
	inputNames = []*byte{
		unsafe.StringData("input_ids\x00"), unsafe.StringData("attention_mask\x00"), unsafe.StringData("token_type_ids\x00"),
	}
	outputName = unsafe.StringData("last_hidden_state\x00")
)

// Session is a model ready to run. Its methods are safe for concurrent use.
type Session struct {
	library *Library
	// mu is held for reading during a pass, and for writing to close.
	mu      sync.RWMutex
	session unsafe.Pointer // nil when closed
	// shrink are the options of a long pass: they return its memory to the system, which
	// the arena would keep for the next one.
	shrink unsafe.Pointer
}

// longPass is the number of tokens from which a pass returns its memory. Memory grows with the
// square of the tokens; shorter passes are faster with memory at hand.
const longPass = 256

var errClosed = errors.New("the model is closed")

// Open loads an encoder from an ONNX file. threads is the number of threads of a pass; with
// one, a pass runs in its caller's thread. The weights stay in the file, which must
// not change.
func (l *Library) Open(path string, threads int) (*Session, error) {
	model, err := readModel(path)
	if err != nil {
		return nil, fmt.Errorf("read model %s: %w", path, err)
	}
	s := &Session{library: l}
	if err := inHugePages(func() error { return s.open(model, filepath.Dir(path), threads) }); err != nil {
		return nil, fmt.Errorf("load model %s with onnxruntime %s: %w", path, l.version, err)
	}
	return s, nil
}

func (s *Session) open(model []byte, dir string, threads int) error {
	a := &s.library.api
	var options unsafe.Pointer
	if err := a.check(a.createOptions(&options)); err != nil {
		return err
	}
	defer a.releaseOptions(options)
	steps := []func() error{
		func() error { return a.check(a.setLogLevel(options, logLevelError)) },
		func() error { return a.check(a.setIntraOpThreads(options, int32(min(max(threads, 0), math.MaxInt32)))) },
		func() error { return a.check(a.setInterOpThreads(options, 1)) },
		// An arena would keep the memory of the longest text for each concurrent pass.
		func() error { return a.check(a.createRunOptions(&s.shrink)) },
		func() error {
			return a.check(a.addRunConfig(s.shrink, "memory.enable_memory_arena_shrinkage", "cpu:0"))
		},
		// Threads that spin between passes would take processors from the rest of the server.
		func() error { return a.check(a.addConfig(options, "session.intra_op.allow_spinning", "0")) },
		func() error {
			return a.check(a.addConfig(options, "session.model_external_initializers_file_folder_path", dir))
		},
		func() error {
			return a.check(a.createSession(s.library.env, unsafe.Pointer(&model[0]), uintptr(len(model)), options, &s.session))
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Run computes the hidden state of each token of one text: len(ids) vectors, one after
// another.
func (s *Session) Run(ids []int64) ([]float32, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return nil, errClosed
	}
	if len(ids) == 0 {
		return nil, errors.New("no tokens")
	}
	mask, types := make([]int64, len(ids)), make([]int64, len(ids))
	for i := range mask {
		mask[i] = 1
	}
	a := &s.library.api
	var inputs [3]unsafe.Pointer
	defer func() {
		for _, value := range inputs {
			if value != nil {
				a.releaseValue(value)
			}
		}
	}()
	for i, data := range [][]int64{ids, mask, types} {
		value, err := s.tensor(data)
		if err != nil {
			return nil, err
		}
		inputs[i] = value
	}
	var output, options unsafe.Pointer
	if len(ids) >= longPass {
		options = s.shrink
	}
	names := [...]unsafe.Pointer{unsafe.Pointer(inputNames[0]), unsafe.Pointer(inputNames[1]), unsafe.Pointer(inputNames[2])}
	outputs := unsafe.Pointer(outputName)
	err := a.check(a.run(s.session, options, &names[0], &inputs[0], uintptr(len(inputs)), &outputs, 1, &output))
	runtime.KeepAlive(ids)
	runtime.KeepAlive(mask)
	runtime.KeepAlive(types)
	if err != nil {
		return nil, fmt.Errorf("run the model on %d tokens: %w", len(ids), err)
	}
	defer a.releaseValue(output)
	return s.values(output)
}

// tensor describes data, which the caller keeps alive, as a batch of one text.
func (s *Session) tensor(data []int64) (value unsafe.Pointer, err error) {
	shape := [2]int64{1, int64(len(data))}
	a := &s.library.api
	err = a.check(a.createTensor(s.library.memory, unsafe.Pointer(&data[0]), uintptr(len(data)*8), &shape[0], 2, elementTypeInt64, &value))
	return value, err
}

// values copies the numbers of a tensor.
func (s *Session) values(tensor unsafe.Pointer) ([]float32, error) {
	a := &s.library.api
	var info, data unsafe.Pointer
	var count uintptr
	if err := a.check(a.tensorInfo(tensor, &info)); err != nil {
		return nil, err
	}
	defer a.releaseInfo(info)
	if err := a.check(a.elementCount(info, &count)); err != nil {
		return nil, err
	}
	if err := a.check(a.tensorData(tensor, &data)); err != nil {
		return nil, err
	}
	return append([]float32(nil), unsafe.Slice((*float32)(data), count)...), nil
}

// Close waits for running passes and releases the model. Later passes fail.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		s.library.api.releaseSession(s.session)
		s.library.api.releaseRunOptions(s.shrink)
		s.session = nil
	}
}
