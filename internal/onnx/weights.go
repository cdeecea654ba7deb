package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the ONNX format (onnx.proto).
const (
	modelGraph         protowire.Number = 7 // ModelProto
	graphInitializer   protowire.Number = 5 // GraphProto
	tensorRawData      protowire.Number = 9 // TensorProto
	tensorExternalData protowire.Number = 13
	tensorDataLocation protowire.Number = 14
	entryKey           protowire.Number = 1 // StringStringEntryProto
	entryValue         protowire.Number = 2
	locationExternal                    = 1
)

// minExternal is the smallest tensor that stays in the file, in bytes.
const minExternal = 16 << 10

// readModel returns the model in a file without its weights. In place of each large
// tensor is a reference to its bytes in the file, which onnxruntime maps: the
// weights are not copied, and the system can reclaim their memory.
func readModel(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, errors.New("the file is empty")
	}
	raw, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	defer func() { _ = syscall.Munmap(raw) }()
	return externalize(raw, filepath.Base(path))
}

// externalize replaces large tensors by references into the file of that name, whose
// content is raw.
func externalize(raw []byte, file string) ([]byte, error) {
	r := rewriter{file: file, whole: raw}
	model, err := r.message(raw, func(number protowire.Number, graph []byte) ([]byte, error) {
		if number != modelGraph {
			return graph, nil
		}
		return r.message(graph, func(number protowire.Number, tensor []byte) ([]byte, error) {
			if number != graphInitializer {
				return tensor, nil
			}
			return r.tensor(tensor)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("not an ONNX model: %w", err)
	}
	return model, nil
}

type rewriter struct {
	file  string
	whole []byte
}

// message copies a message and replaces each of its fields of bytes by the result of replace.
func (r *rewriter) message(raw []byte, replace func(protowire.Number, []byte) ([]byte, error)) ([]byte, error) {
	var out []byte
	err := fields(raw, func(number protowire.Number, field, value []byte) error {
		if value == nil {
			out = append(out, field...)
			return nil
		}
		replaced, err := replace(number, value)
		if err != nil {
			return err
		}
		out = protowire.AppendTag(out, number, protowire.BytesType)
		out = protowire.AppendBytes(out, replaced)
		return nil
	})
	return out, err
}

// tensor returns the tensor with a reference in place of its data if that is large.
func (r *rewriter) tensor(raw []byte) ([]byte, error) {
	var out, data []byte
	err := fields(raw, func(number protowire.Number, field, value []byte) error {
		if number == tensorRawData && len(value) >= minExternal {
			data = value
			return nil
		}
		out = append(out, field...)
		return nil
	})
	if err != nil || data == nil {
		return out, err
	}
	// data is a part of whole, so the difference of their capacities is its offset.
	offset := cap(r.whole) - cap(data)
	for _, entry := range [][2]string{{"location", r.file}, {"offset", strconv.Itoa(offset)}, {"length", strconv.Itoa(len(data))}} {
		var e []byte
		e = protowire.AppendString(protowire.AppendTag(e, entryKey, protowire.BytesType), entry[0])
		e = protowire.AppendString(protowire.AppendTag(e, entryValue, protowire.BytesType), entry[1])
		out = protowire.AppendBytes(protowire.AppendTag(out, tensorExternalData, protowire.BytesType), e)
	}
	return protowire.AppendVarint(protowire.AppendTag(out, tensorDataLocation, protowire.VarintType), locationExternal), nil
}

// fields calls each for every field of a message: the whole field, and its value if that
// is bytes.
func fields(raw []byte, each func(number protowire.Number, field, value []byte) error) error {
	for len(raw) > 0 {
		number, kind, size := protowire.ConsumeTag(raw)
		if size < 0 {
			return protowire.ParseError(size)
		}
		length := protowire.ConsumeFieldValue(number, kind, raw[size:])
		if length < 0 {
			return protowire.ParseError(length)
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(raw[size:])
		}
		if err := each(number, raw[:size+length], value); err != nil {
			return err
		}
		raw = raw[size+length:]
	}
	return nil
}
