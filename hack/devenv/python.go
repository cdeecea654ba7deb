package devenv

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pythonMCP pins the official Python MCP client and its dependencies.
//
//go:embed python-mcp.txt
var pythonMCP []byte

// PythonMCP returns a directory for PYTHONPATH with the official Python client of
// the Model Context Protocol. It is downloaded for the installed version of
// Python if it is not cached.
func PythonMCP(ctx context.Context, cache *Cache) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("python3 is missing: install Python 3.10 or newer with pip (Debian: apt-get install python3-pip)")
	}
	version, err := exec.CommandContext(ctx, python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		return "", fmt.Errorf("get the version of python3: %w", err)
	}
	sum := sha256.Sum256(pythonMCP)
	return cache.Ensure(ctx, Entry{
		Key:   "python-mcp-" + strings.TrimSpace(string(version)) + "-" + hex.EncodeToString(sum[:6]),
		Title: "Python's MCP client",
		Doing: "downloading 15 MB with pip, once",
		Space: 100 << 20,
		Fill: func(ctx context.Context, dir string) error {
			requirements := filepath.Join(dir, "requirements.txt")
			if err := os.WriteFile(requirements, pythonMCP, 0o644); err != nil {
				return fmt.Errorf("write pip requirements: %w", err)
			}
			cmd := exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:",
				"--disable-pip-version-check", "--root-user-action=ignore", "--target", dir, "--requirement", requirements)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("pip could not install Python's MCP client (is the package index reachable?): %w\n%s", err, strings.TrimSpace(string(out)))
			}
			return nil
		},
	})
}
