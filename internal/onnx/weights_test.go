package onnx

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// TestExternalize checks that a large tensor becomes a reference to its bytes in the
// file, and that everything else is unchanged.
func TestExternalize(t *testing.T) {
	t.Parallel()
	const name protowire.Number = 8
	large, small := bytes.Repeat([]byte("w"), minExternal), []byte("few")
	tensor := func(data []byte) []byte {
		return field(graphInitializer, append(field(name, []byte("t")), field(tensorRawData, data)...))
	}
	graph := append(field(1, []byte("node")), append(tensor(small), tensor(large)...)...)
	producer := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7)
	raw := append(producer, field(modelGraph, graph)...)
	model, err := externalize(raw, "model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(model, large) {
		t.Error("the large tensor was copied")
	}
	for _, want := range [][]byte{producer, field(1, []byte("node")), tensor(small)} {
		if !bytes.Contains(model, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for key, value := range map[string]string{
		"location": "model.onnx", "offset": strconv.Itoa(bytes.Index(raw, large)), "length": strconv.Itoa(minExternal),
	} {
		if !bytes.Contains(model, append(field(entryKey, []byte(key)), field(entryValue, []byte(value))...)) {
			t.Errorf("the reference lacks %s %s", key, value)
		}
	}
}

func TestReadModelErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, want string }{
		"Empty":     {"", "empty"},
		"NotAModel": {"version https://git-lfs.github.com/spec/v1", "not an ONNX model"},
	} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readModel(path); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

func FuzzExternalize(f *testing.F) {
	f.Add(field(modelGraph, field(graphInitializer, field(tensorRawData, make([]byte, minExternal)))))
	f.Add([]byte("\x3a\x05\x2a\x03\x4a\x09"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if model, err := externalize(raw, "f"); err == nil && len(raw) < minExternal && !bytes.Equal(model, raw) && len(model) > len(raw)+16 {
			t.Fatalf("a model without large tensors grew from %d to %d bytes", len(raw), len(model))
		}
	})
}
