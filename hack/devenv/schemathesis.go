package devenv

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const schemathesisVersion = "4.32.5"

// schemathesisPackages pins schemathesis and its dependencies by hash. To update
// it, run uv pip compile --universal --python-version 3.11 --generate-hashes
// --no-annotate --no-header on "schemathesis==VERSION".
//
//go:embed schemathesis.txt
var schemathesisPackages []byte

// Schemathesis returns a directory of Python packages with schemathesis, which
// tests an HTTP API against its OpenAPI document: run bin/st with python3 and the
// directory as PYTHONPATH. It is installed if it is not cached.
func Schemathesis(ctx context.Context, cache *Cache) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("python3 is missing: install Python 3.11 or newer with pip (Debian: apt-get install python3-pip)")
	}
	// Some of the packages are built for one version of Python.
	tag, err := exec.CommandContext(ctx, python, "-c",
		"import sys; assert sys.version_info >= (3, 11), 'it is '+sys.version; print(sys.implementation.cache_tag)").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("schemathesis needs Python 3.11 or newer: %w\n%s", err, strings.TrimSpace(string(tag)))
	}
	return cache.Ensure(ctx, Entry{
		Key:   "schemathesis-" + schemathesisVersion + "-" + strings.TrimSpace(string(tag)),
		Title: "schemathesis " + schemathesisVersion,
		Doing: "installing 43 MB with pip, once",
		Space: 200 << 20,
		Fill:  func(ctx context.Context, dir string) error { return fillSchemathesis(ctx, python, dir) },
	})
}

func fillSchemathesis(ctx context.Context, python, dir string) error {
	requirements := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(requirements, schemathesisPackages, 0o644); err != nil {
		return fmt.Errorf("write pip requirements: %w", err)
	}
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:",
		"--require-hashes", "--target", dir, "--requirement", requirements)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pip could not install schemathesis %s (is the package index reachable?): %w\n%s",
			schemathesisVersion, err, strings.TrimSpace(string(out)))
	}
	return nil
}
