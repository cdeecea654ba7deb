package devenv

import (
	"fmt"
	"os"
	"path/filepath"
)

// RepoRoot returns the top of the checkout that contains the working directory.
func RepoRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "kube", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of Mnemo: change to one", start)
		}
	}
}
