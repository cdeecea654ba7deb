package image

import (
	"cmp"
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

// Source is the input of a build of Mnemo.
type Source struct {
	// Root is the top of the checkout.
	Root string
	// Version is the version that the binary reports.
	Version string
	// OS and Arch are as in GOOS and GOARCH. By default, the binary runs in Linux on
	// this machine's architecture.
	OS, Arch string
	// Overlay, if not empty, is a file for `go build -overlay` that describes
	// changes to the checkout.
	Overlay string
}

// Build builds the binary at path, reproducibly.
func (s Source) Build(ctx context.Context, path string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("go is missing: install Go 1.26 or newer and put it in PATH")
	}
	const stamp = "-X github.com/mnemo-dev/mnemo/internal/telemetry.version="
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false", "-overlay", s.Overlay,
		"-ldflags", "-s -w -buildid= "+stamp+s.Version, "-o", path, "./cmd/mnemo")
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+cmp.Or(s.OS, "linux"), "GOARCH="+cmp.Or(s.Arch, runtime.GOARCH), "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build mnemo: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Libraries are the directories with the libraries of an image, for its architecture.
type Libraries struct {
	// System contains unpacked packages with the C and C++ libraries.
	System string
	// ONNXRuntime contains libonnxruntime.so.1 and its licenses.
	ONNXRuntime string
}

// Mnemo builds the product's image from its binary and the libraries that it loads.
func (t Target) Mnemo(binary string, l Libraries) (v1.Image, error) {
	system, err := systemLibraries(l.System, t.Arch)
	if err != nil {
		return nil, err
	}
	onnxruntime := Layer{{Path: "/usr/lib/libonnxruntime.so.1", Mode: 0o755, From: filepath.Join(l.ONNXRuntime, "libonnxruntime.so.1")}}
	for _, name := range []string{"LICENSE", "ThirdPartyNotices.txt"} {
		onnxruntime = append(onnxruntime, File{Path: "/usr/share/doc/onnxruntime/" + name, Mode: 0o644, From: filepath.Join(l.ONNXRuntime, name)})
	}
	return t.New([]Layer{base(), system, onnxruntime, {{Path: "/mnemo", Mode: 0o755, From: binary}}}, v1.Config{
		Entrypoint:   []string{"/mnemo"},
		Cmd:          []string{"serve"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
	})
}

// Model builds an image with only the files of the embedding model, for mounting.
func (t Target) Model(dir string) (v1.Image, error) {
	files, err := ModelLayer(dir, "/")
	if err != nil {
		return nil, err
	}
	return t.New([]Layer{files}, v1.Config{WorkingDir: "/"})
}

// ModelLayer returns a layer with the files of the embedding model at a path of the image.
func ModelLayer(dir, at string) (Layer, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the model: %w", err)
	}
	var files Layer
	for _, e := range entries {
		files = append(files, File{Path: filepath.Join(at, e.Name()), Mode: 0o444, From: filepath.Join(dir, e.Name())})
	}
	return files, nil
}

// Program builds an image with only a static program.
func (t Target) Program(binary string, args ...string) (v1.Image, error) {
	path := "/" + filepath.Base(binary)
	return t.New([]Layer{{{Path: path, Mode: 0o755, From: binary}}}, v1.Config{
		Entrypoint: slices.Concat([]string{path}, args),
		WorkingDir: "/",
	})
}
