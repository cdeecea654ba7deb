package sdk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// unreleased is the version of the packages in the repository.
const unreleased = "0.0.0"

// epoch is the time of all files in the packages, so that the same source gives the
// same bytes: the first one that zip files can represent.
const epoch = "SOURCE_DATE_EPOCH=315532800"

// buildPython builds with the backend of pyproject.toml.
const buildPython = "import sys, flit_core.buildapi as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"

// Build writes the packages of a version to out.
func Build(ctx context.Context, tools devenv.SDKTools, root, version, out string) error {
	out, err := filepath.Abs(out) // the builds run in directories of their own
	if err != nil {
		return fmt.Errorf("output directory: %w", err)
	}
	if err := BuildPython(ctx, tools, root, version, out); err != nil {
		return err
	}
	return BuildTypeScript(ctx, tools, root, version, out)
}

// BuildPython writes the wheel and the source distribution of a version to out. It
// does not use the network.
func BuildPython(ctx context.Context, tools devenv.SDKTools, root, version, out string) error {
	return inCopy(filepath.Join(root, "sdk/python"), version, "src/mnemo/_version.py", func(dir string) error {
		cmd := tools.Python(ctx, "-c", buildPython, out)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, epoch)
		return run(cmd)
	})
}

// BuildTypeScript writes the npm package of a version to out. It does not use the
// network.
func BuildTypeScript(ctx context.Context, tools devenv.SDKTools, root, version, out string) error {
	return inCopy(filepath.Join(root, "sdk/typescript"), version, "package.json", func(dir string) error {
		if err := os.Symlink(tools.Modules(), filepath.Join(dir, "node_modules")); err != nil {
			return fmt.Errorf("link packages: %w", err)
		}
		cjs := filepath.Join(dir, "dist/cjs")
		if err := os.MkdirAll(cjs, 0o755); err != nil {
			return fmt.Errorf("create %s: %w", cjs, err)
		}
		// The package is of type module, except for this directory.
		if err := os.WriteFile(filepath.Join(cjs, "package.json"), []byte("{\"type\":\"commonjs\"}\n"), 0o644); err != nil {
			return fmt.Errorf("write package.json: %w", err)
		}
		for _, cmd := range []*exec.Cmd{
			tools.Node(ctx, "typescript/bin/tsc", "--project", "tsconfig.json"),
			tools.Node(ctx, "typescript/bin/tsc", "--project", "tsconfig.cjs.json"),
			tools.Npm(ctx, "pack", "--ignore-scripts", "--offline", "--pack-destination", out),
		} {
			cmd.Dir = dir
			if err := run(cmd); err != nil {
				return err
			}
		}
		return nil
	})
}

// inCopy runs build in a temporary copy of a package in which versionFile names the
// version.
func inCopy(source, version, versionFile string, build func(dir string) error) error {
	dir, err := os.MkdirTemp("", "mnemo-sdk-")
	if err != nil {
		return fmt.Errorf("create build directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		return fmt.Errorf("copy %s: %w", source, err)
	}
	path := filepath.Join(dir, versionFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	if strings.Count(string(content), `"`+unreleased+`"`) != 1 {
		return fmt.Errorf("%s must contain the version %s once", versionFile, unreleased)
	}
	stamped := strings.Replace(string(content), `"`+unreleased+`"`, `"`+version+`"`, 1)
	if err := os.WriteFile(path, []byte(stamped), 0o644); err != nil {
		return fmt.Errorf("write version: %w", err)
	}
	return build(dir)
}
