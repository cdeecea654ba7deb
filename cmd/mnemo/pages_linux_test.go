package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Starting the test has read at least as much of the program as starting a server.
func TestUnmapCleanPages(t *testing.T) {
	before := residentFilePages(t)
	if err := unmapCleanPages(); err != nil {
		t.Fatal(err)
	}
	if after := residentFilePages(t); after > before*3/4 {
		t.Errorf("%d of %d KiB of files are still mapped", after, before)
	}
}

// residentFilePages returns the resident memory of this process that is in files, in KiB.
func residentFilePages(t *testing.T) (size int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(value, &size); err != nil {
		t.Fatalf("read RssFile: %v", err)
	}
	return size
}

func TestCleanMappings(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-02516000 r-xp 00000000 fe:00 18 /usr/bin/mnemo
Rss:               26136 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
02516000-05017000 r--p 02116000 fe:00 18 /usr/bin/mnemo
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
05017000-051a9000 rw-p 04c17000 fe:00 18 /usr/bin/mnemo
Anonymous:             0 kB
VmFlags: rd wr mr mw me
7ff27400000-7ff28c00000 r--p 00000000 00:00 0
Anonymous:             0 kB
VmFlags: rd mr mw me
7ff28c00000-7ff28d00000 r--p 00000000 00:00 0 [vvar]
Anonymous:             0 kB
VmFlags: rd mr mw me
7f4d8eda7000-7f4d8edf8000 r--p 01600000 fe:00 19 /usr/lib/libonnxruntime.so.1 (deleted)
Anonymous:           324 kB
Swap:                  0 kB
VmFlags: rd mr mw me
7f4d8edf9000-7f4d8edfa000 r--p 01600000 fe:00 20 /usr/lib/libc.so.6
Anonymous:             0 kB
Swap:                 16 kB
VmFlags: rd mr mw me
`
	got, err := cleanMappings(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{{0x400000, 0x2516000}, {0x2516000, 0x5017000}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
}
