package image

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// TestMain has what is compiled here, minutes long where Go's cache is empty,
// yield to the servers that are tested beside it.
func TestMain(m *testing.M) {
	if err := lowerPriority(); err != nil {
		fmt.Fprintln(os.Stderr, "lower priority:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// lowerPriority lowers the priority of every existing thread. On Linux, the priority belongs to
// a thread and is inherited by the threads and processes that it starts.
func lowerPriority() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, 19); err != nil {
			return err
		}
	}
	return nil
}
