package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Source is what Mnemo is built from.
type Source struct {
	// Root is the top of the checkout.
	Root string
	// Version is what the binary says it is.
	Version string
	// Overlay is a file as `go build -overlay` takes it, for a build that
	// differs from the checkout; none when empty.
	Overlay string
}

// Build writes the binary to path as the Dockerfile does: static, and the same
// for the same source.
func (s Source) Build(ctx context.Context, path string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("go is missing: install Go 1.26 or newer and put it in PATH")
	}
	const stamp = "-X github.com/mnemo-dev/mnemo/internal/telemetry.version="
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false", "-overlay", s.Overlay,
		"-ldflags", "-s -w -buildid= "+stamp+s.Version, "-o", path, "./cmd/mnemo")
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOEXPERIMENT="+experiment())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build mnemo: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// experiment is what the local embedder's kernels need, for amd64 so far.
func experiment() string {
	if runtime.GOARCH == "amd64" {
		return "simd"
	}
	return ""
}

// Mnemo makes the product's image of its binary.
func Mnemo(binary string) (v1.Image, error) {
	return New([]Layer{base(), {{Path: "/mnemo", Mode: 0o755, From: binary}}}, v1.Config{
		Entrypoint:   []string{"/mnemo"},
		Cmd:          []string{"serve"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
	})
}

// Model makes an image of the embedding model's files alone, to be mounted.
func Model(dir string) (v1.Image, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	var files Layer
	for _, e := range entries {
		files = append(files, File{Path: "/" + e.Name(), Mode: 0o444, From: filepath.Join(dir, e.Name())})
	}
	return New([]Layer{files}, v1.Config{WorkingDir: "/"})
}

// Program makes an image of a static program and nothing else.
func Program(binary string, args ...string) (v1.Image, error) {
	path := "/" + filepath.Base(binary)
	return New([]Layer{{{Path: path, Mode: 0o755, From: binary}}}, v1.Config{
		Entrypoint: slices.Concat([]string{path}, args),
		WorkingDir: "/",
	})
}
