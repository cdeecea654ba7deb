// Command join moves the fragments in docs/changelog to the section of a version in CHANGELOG.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mnemo-dev/mnemo/hack/changelog"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/changelog/join VERSION")
		os.Exit(2)
	}
	if err := join(".", os.Args[1], time.Now().UTC().Format(time.DateOnly)); err != nil {
		fmt.Fprintln(os.Stderr, "changelog:", err)
		os.Exit(1)
	}
}

func join(root, version, date string) error {
	file := filepath.Join(root, "CHANGELOG.md")
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read changelog: %w", err)
	}
	text, fragments, err := changelog.Fragments(root)
	if err != nil {
		return err
	}
	joined, err := changelog.Release(string(old), version, date, text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(joined), 0o644); err != nil {
		return fmt.Errorf("write changelog: %w", err)
	}
	for _, fragment := range fragments {
		if err := os.Remove(fragment); err != nil {
			return fmt.Errorf("delete fragment: %w", err)
		}
	}
	return nil
}
