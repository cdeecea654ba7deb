package onnx

import (
	"github.com/ebitengine/purego"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// hugePage is the usual size of a huge page, in bytes.
const hugePage = 2 << 20

// inHugePages calls load, and moves the memory that it allocated with malloc into huge pages, as far as possible. A pass reads all weights, 20 MB of
// the default model, and translates fewer addresses then. It is only an optimization, so failures are ignored: the C library may not be glibc, Linux before 6.1 cannot move
// memory, and no huge page may be free.
func inHugePages(load func() error) error {
	// By default, glibc maps blocks like the weights one by one, and each is smaller than a huge page.
	setMmapThreshold(maxMmapThreshold)
	defer setMmapThreshold(defaultMmapThreshold)
	before := allocations()
	if err := load(); err != nil {
		return err
	}
	for start, end := range allocations() {
		if before[start] == end {
			continue
		}
		start, end = (start+hugePage-1)/hugePage*hugePage, end/hugePage*hugePage
		if start < end {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_COLLAPSE)
		}
	}
	return nil
}

// Sizes in bytes from which malloc maps a block of its own, which returns to the system when it is freed.
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

// allocations returns the private writable memory of this process that belongs to no file or stack: the end of each range by its start.
func allocations() map[uintptr]uintptr {
	ends := map[uintptr]uintptr{}
	self, err := procfs.Self()
	if err != nil {
		return ends
	}
	maps, _ := self.ProcMaps()
	for _, m := range maps {
		if m.Perms.Write && m.Perms.Private && (m.Pathname == "" || m.Pathname == "[heap]") {
			ends[m.StartAddr] = m.EndAddr
		}
	}
	return ends
}
