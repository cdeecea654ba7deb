package onnx

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// TestInHugePages allocates blocks of the size of weights and, as onnxruntime does, frees others between them.
func TestInHugePages(t *testing.T) {
	var malloc func(size uintptr) unsafe.Pointer
	var free func(unsafe.Pointer)
	for name, function := range map[string]any{"malloc": &malloc, "free": &free} {
		address, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
		if err != nil {
			t.Fatal(err)
		}
		purego.RegisterFunc(function, address)
	}
	const blocks, size = 40, 576 << 10
	before := hugePages(t)
	err := inHugePages(func() error {
		var others []unsafe.Pointer
		for i := range blocks {
			block := malloc(size)
			content := unsafe.Slice((*byte)(block), size)
			for j := range content {
				content[j] = 1
			}
			if i%2 == 1 {
				others = append(others, block)
			}
		}
		for _, block := range others {
			free(block)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := hugePages(t) - before; got < blocks*size/4 && canCollapse(t) {
		t.Errorf("%d of %d bytes are in huge pages", got, blocks*size)
	}
}

// canCollapse reports whether the kernel can move memory into huge pages, which is optional.
func canCollapse(t *testing.T) bool {
	t.Helper()
	memory, err := unix.Mmap(-1, 0, 2*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	offset := -int(uintptr(unsafe.Pointer(&memory[0]))) & (hugePage - 1)
	aligned := memory[offset : offset+hugePage]
	aligned[0] = 1
	err = unix.Madvise(aligned, unix.MADV_COLLAPSE)
	t.Logf("madvise: %v", err)
	return err == nil
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
