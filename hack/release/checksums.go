package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
)

// writeChecksums writes the SHA-256 sum of every published file in the format of sha256sum.
func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.Out)
	if err != nil {
		return fmt.Errorf("read output directory: %w", err)
	}
	var sums strings.Builder
	for _, e := range entries {
		if e.IsDir() || !isPublished(e.Name()) {
			continue
		}
		content, err := os.ReadFile(r.path(e.Name()))
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	if err := os.WriteFile(r.path("checksums.txt"), []byte(sums.String()), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	return nil
}

// isPublished reports whether a file is published, and not only read by the release workflow.
func isPublished(name string) bool {
	return name != "notes.md" && name != "sboms.txt"
}
