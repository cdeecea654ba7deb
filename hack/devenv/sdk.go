package devenv

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sdkFiles pin, by hash, the packages that generate, build and test the SDKs, clients of others,
// and what `make bench` compares with.
// To update requirements.txt, run uv pip compile --universal --python-version 3.11
// --generate-hashes --no-annotate --no-header; to update package-lock.json, run npm
// install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts.
//
//go:embed sdktools sdkpackages clients benchpeers mem0packages
var sdkFiles embed.FS

// SDKTools are the programs that generate and build the SDKs, and the npm packages
// that the adapters of the TypeScript SDK are for, in one directory.
type SDKTools struct{ dir string }

// OpenSDKTools returns the tools of the SDKs, which are installed if they are not
// cached.
func OpenSDKTools(ctx context.Context, cache *Cache) (SDKTools, error) {
	dir, err := ensureSDK(ctx, cache, "sdktools", Entry{
		Title: "generators of the SDKs",
		Doing: "downloading 90 MB with npm and pip, once",
		Space: 600 << 20,
	}, func(ctx context.Context, python, dir string) error {
		if err := fillNode(ctx, dir); err != nil {
			return err
		}
		if err := writeEmbedded(dir, sdkFiles, "sdktools", "package.json", "package-lock.json", "requirements.txt"); err != nil {
			return err
		}
		if err := npmCI(ctx, filepath.Join(dir, "node"), filepath.Join(dir, npmScript), dir); err != nil {
			return err
		}
		return pip(ctx, python, "install", "--no-deps", "--only-binary=:all:", "--require-hashes",
			"--target", filepath.Join(dir, "python"), "--requirement", filepath.Join(dir, "requirements.txt"))
	})
	return SDKTools{dir}, err
}

// Python returns a command that runs python3 with the Python packages of the tools.
func (s SDKTools) Python(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "python3", args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(s.dir, "python"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// Node returns a command that runs a script of an npm package of the tools.
func (s SDKTools) Node(ctx context.Context, script string, args ...string) *exec.Cmd {
	return s.Program(ctx, append([]string{filepath.Join(s.Modules(), script)}, args...)...)
}

// Npm returns a command that runs npm.
func (s SDKTools) Npm(ctx context.Context, args ...string) *exec.Cmd {
	return s.Program(ctx, append([]string{filepath.Join(s.dir, npmScript)}, args...)...)
}

// Program returns a command that runs Node.js.
func (s SDKTools) Program(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(s.dir, "node"), args...)
}

// Modules returns the directory of the npm packages of the tools.
func (s SDKTools) Modules() string { return filepath.Join(s.dir, "node_modules") }

// SDKPackages are the packages that the Python SDK requires and that its adapters
// are for, in one directory.
type SDKPackages struct{ dir string }

// OpenSDKPackages returns the packages, which are installed if they are not cached.
func OpenSDKPackages(ctx context.Context, cache *Cache) (SDKPackages, error) {
	dir, err := ensureSDK(ctx, cache, "sdkpackages", Entry{
		Title: "packages that the Python SDK is tested with",
		Doing: "downloading 100 MB with pip, once",
		Space: 1 << 30,
	}, func(ctx context.Context, python, dir string) error {
		if err := writeEmbedded(dir, sdkFiles, "sdkpackages", "requirements.txt"); err != nil {
			return err
		}
		p := SDKPackages{dir}
		if err := pip(ctx, python, "download", "--no-deps", "--only-binary=:all:", "--require-hashes",
			"--dest", p.Wheels(), "--requirement", filepath.Join(dir, "requirements.txt")); err != nil {
			return err
		}
		return pip(ctx, python, "install", "--no-deps", "--no-index", "--find-links", p.Wheels(),
			"--target", p.Python(), "--requirement", filepath.Join(dir, "requirements.txt"))
	})
	return SDKPackages{dir}, err
}

// OpenBenchPeers returns a directory for PYTHONPATH with the software that Mnemo is
// compared with. It is installed if it is not cached.
func OpenBenchPeers(ctx context.Context, cache *Cache) (string, error) {
	return ensureSDK(ctx, cache, "benchpeers", Entry{
		Title: "software to compare with",
		Doing: "downloading 150 MB with pip, once",
		Space: 1 << 30,
	}, func(ctx context.Context, python, dir string) error {
		if err := writeEmbedded(dir, sdkFiles, "benchpeers", "requirements.txt"); err != nil {
			return err
		}
		return pip(ctx, python, "install", "--no-deps", "--only-binary=:all:", "--require-hashes",
			"--target", dir, "--requirement", filepath.Join(dir, "requirements.txt"))
	})
}

// Wheels returns the directory of the wheels of the Python packages.
func (p SDKPackages) Wheels() string { return filepath.Join(p.dir, "wheels") }

// Python returns the directory of the installed Python packages.
func (p SDKPackages) Python() string { return filepath.Join(p.dir, "python") }

// ensureSDK returns the directory of the packages that the files in folder pin, for
// the installed version of Python.
func ensureSDK(ctx context.Context, cache *Cache, folder string, e Entry, fill func(ctx context.Context, python, dir string) error) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("python3 is missing: install Python 3.11 or newer with pip (Debian: apt-get install python3-pip)")
	}
	tag, err := exec.CommandContext(ctx, python, "-c", "import sys; print(sys.implementation.cache_tag)").Output()
	if err != nil {
		return "", fmt.Errorf("get the version of python3: %w", err)
	}
	sum := sha256.New()
	entries, err := sdkFiles.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", folder, err)
	}
	for _, file := range entries {
		content, err := sdkFiles.ReadFile(folder + "/" + file.Name())
		if err != nil {
			return "", fmt.Errorf("read %s: %w", file.Name(), err)
		}
		sum.Write(content)
	}
	e.Key = folder + "-" + hex.EncodeToString(sum.Sum(nil)[:6]) + "-" + nodeWheel.Version + "-" + strings.TrimSpace(string(tag))
	e.Fill = func(ctx context.Context, dir string) error { return fill(ctx, python, dir) }
	return cache.Ensure(ctx, e)
}

// pip runs a command of pip.
func pip(ctx context.Context, python, command string, args ...string) error {
	args = append([]string{"-m", "pip", command, "--quiet", "--disable-pip-version-check"}, args...)
	if out, err := exec.CommandContext(ctx, python, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("pip %s (is the package index reachable?): %w\n%s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}
