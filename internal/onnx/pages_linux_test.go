package onnx

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// TestInHugePages allocates many blocks of the size of weights.
func TestInHugePages(t *testing.T) {
	address, err := purego.Dlsym(purego.RTLD_DEFAULT, "malloc")
	if err != nil {
		t.Fatal(err)
	}
	var malloc func(size uintptr) unsafe.Pointer
	purego.RegisterFunc(&malloc, address)
	const blocks, size = 40, 576 << 10
	before := hugePages(t)
	err = inHugePages(func() error {
		for range blocks {
			block := unsafe.Slice((*byte)(malloc(size)), size)
			for i := range block {
				block[i] = 1
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := hugePages(t) - before; got < blocks*size/4 {
		t.Errorf("%d of %d bytes are in huge pages", got, blocks*size)
	}
}

var anonHugePages = regexp.MustCompile(`AnonHugePages: *([0-9]+) kB`)

// hugePages returns the memory of this process in huge pages, in bytes.
func hugePages(t *testing.T) int {
	t.Helper()
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	match := anonHugePages.FindSubmatch(rollup)
	if match == nil {
		t.Fatalf("no AnonHugePages in %s", rollup)
	}
	kib, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
