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
