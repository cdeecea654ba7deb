package sdk

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

//go:embed generate.py
var generatePython string

// Generate writes the generated files of the SDKs in the checkout at root.
func Generate(ctx context.Context, tools devenv.SDKTools, root string) error {
	contract := filepath.Join(root, "api/openapi.json")
	if err := run(tools.Python(ctx, "-c", generatePython, contract, filepath.Join(root, "sdk/python/src/mnemo"))); err != nil {
		return err
	}
	return run(tools.Node(ctx, "openapi-typescript/bin/cli.js", contract, "--output", filepath.Join(root, "sdk/typescript/src/schema.ts")))
}

// run runs a command and adds its output to the error.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, strings.TrimSpace(string(out)))
	}
	return nil
}
