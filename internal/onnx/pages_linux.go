package onnx

import (
	"sync"

	"github.com/ebitengine/purego"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// hugePage is the usual size of a huge page, in bytes.
const hugePage = 2 << 20

// loading is held while a model is loaded.
var loading sync.Mutex

// inHugePages calls load, and moves the memory that was allocated meanwhile into huge pages, as far as possible. A pass reads all weights,
// 20 MB of the default model, and translates fewer addresses then. It is only an optimization, so failures are ignored: the C library may not
// be glibc, Linux before 6.1 cannot move memory, and there may be no free huge pages.
func inHugePages(load func() error) error {
	loading.Lock()
	defer loading.Unlock()
	// By default, glibc maps blocks like the weights separately, and each is smaller than a huge page.
	setMmapThreshold(maxMmapThreshold)
	defer setMmapThreshold(defaultMmapThreshold)
	before, known := allocations()
	if err := load(); err != nil || !known {
		return err
	}
	after, _ := allocations()
	for start, end := range after {
		start = max(start, before[start]) // a range that grew upwards; one that grew downwards has a new start, and is moved as a whole
		start, end = (start+hugePage-1)/hugePage*hugePage, end/hugePage*hugePage
		if start < end {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_COLLAPSE)
		}
	}
	return nil
}

// Sizes in bytes of the blocks that malloc maps separately, and unmaps when they are freed.
const (
	defaultMmapThreshold = 128 << 10
	maxMmapThreshold     = 32 << 20
)

// setMmapThreshold sets the threshold of glibc's malloc, which then no longer raises it when such a block is freed.
func setMmapThreshold(size int32) {
	const mMmapThreshold = -3 // M_MMAP_THRESHOLD in malloc.h
	address, err := purego.Dlsym(purego.RTLD_DEFAULT, "mallopt")
	if err != nil {
		return
	}
	var mallopt func(option, value int32) int32
	purego.RegisterFunc(&mallopt, address)
	mallopt(mMmapThreshold, size)
}

// allocations returns the private writable memory of this process that belongs to no file: the end of each range by its start. It returns false if
// it is unknown.
func allocations() (ends map[uintptr]uintptr, ok bool) {
	self, err := procfs.Self()
	if err != nil {
		return nil, false
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return nil, false
	}
	ends = map[uintptr]uintptr{}
	for _, m := range maps {
		if m.Perms.Write && m.Perms.Private && (m.Pathname == "" || m.Pathname == "[heap]") {
			ends[m.StartAddr] = m.EndAddr
		}
	}
	return ends, true
}
