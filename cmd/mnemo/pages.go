package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
)

// releaseStartMemory releases memory that was needed only during startup. Nothing may unload a library or unmap a file at the same time.
func releaseStartMemory(ctx context.Context, log *slog.Logger) {
	debug.FreeOSMemory()
	if err := unmapCleanPages(); err != nil {
		log.WarnContext(ctx, "failed to release startup memory", "error", err)
	}
}

// unmapCleanPages removes the pages of the program and of its libraries from the process's resident memory. They stay
// in the page cache, and an access maps them again. Startup initializes hundreds of packages, including those of
// other commands, and each access maps 16 pages or more.
func unmapCleanPages() error {
	f, err := os.Open("/proc/self/smaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not Linux
	}
	if err != nil {
		return err
	}
	defer f.Close()
	mappings, err := cleanMappings(f)
	if err != nil {
		return fmt.Errorf("read memory mappings: %w", err)
	}
	for _, m := range mappings {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings returns the read-only mappings of files, in the format of /proc/PID/smaps, whose content is that of
// the file. Others would lose changes, such as the relocations of a library, which may be in memory or swapped out.
func cleanMappings(smaps io.Reader) ([]mapping, error) {
	var out []mapping
	var current mapping
	var clean bool
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &current.start, &current.end); err != nil {
				return nil, err
			}
			clean = strings.HasPrefix(fields[1], "r-") && len(fields) > 5 && strings.HasPrefix(fields[5], "/")
		case len(fields) == 3 && (fields[0] == "Anonymous:" || fields[0] == "Swap:"):
			clean = clean && fields[1] == "0"
		case len(fields) > 0 && fields[0] == "VmFlags:" && clean: // the last line of a mapping
			out = append(out, current)
		}
	}
	return out, lines.Err()
}
