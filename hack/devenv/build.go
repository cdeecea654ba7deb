package devenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Built is a program that is built from a module in hack/, which pins its
// version, and stored in the cache.
type Built struct {
	Name, Package string
	Module        string // directory below hack/
	Flags         []string
	// Key is the prefix of its cache keys.
	Key             string
	Title, Estimate string
}

// buildEnv overrides the user's build settings, so that Go's build cache does not
// contain another copy of every package.
var buildEnv = []string{"CGO_ENABLED=0", "GOEXPERIMENT=", "GOWORK=off"}

// Unoptimized disables optimization, for programs whose speed does not matter
// here: they compile in about 60 % of the time. All of them use it and so share
// compiled packages.
const Unoptimized = "-gcflags=all=-N -l"

// EnsureBuilt returns the path of each program by name, and builds the programs
// that are not cached.
func EnsureBuilt(ctx context.Context, cache *Cache, programs []Built) (map[string]string, error) {
	root, err := RepoRoot()
	if err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	for _, p := range programs {
		module := filepath.Join(root, "hack", p.Module)
		key, err := p.cacheKey(module)
		if err != nil {
			return nil, err
		}
		dir, err := cache.Ensure(ctx, Entry{
			Key:   key,
			Title: p.Title,
			Doing: "building from source, " + p.Estimate + ", once",
			// Most of the space is for Go's build cache.
			Space: 4 << 30,
			Fill: func(ctx context.Context, dir string) error {
				return p.build(ctx, module, filepath.Join(dir, p.Name), filepath.Join(cache.Root, "build-"+p.Name+".log"))
			},
		})
		if err != nil {
			return nil, err
		}
		binaries[p.Name] = filepath.Join(dir, p.Name)
	}
	return binaries, nil
}

// Path returns the path of the program in the cache, whether it has been built or not.
func (p Built) Path(cache *Cache) (string, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	key, err := p.cacheKey(filepath.Join(root, "hack", p.Module))
	if err != nil {
		return "", err
	}
	return filepath.Join(cache.Root, key, p.Name), nil
}

// cacheKey depends on everything that determines the program: the module's
// requirements, the code of its package if the module contains it, and the flags.
func (p Built) cacheKey(module string) (string, error) {
	h := sha256.New()
	patterns := []string{"go.*"}
	if strings.HasPrefix(p.Package, ".") {
		patterns = append(patterns, filepath.Join(p.Package, "*.go"))
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(module, pattern))
		if err != nil {
			return "", fmt.Errorf("list %s: %w", module, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				return "", fmt.Errorf("read module: %w", err)
			}
			h.Write(data)
		}
	}
	_, _ = fmt.Fprint(h, buildEnv, p.Flags, runtime.GOARCH)
	return p.Key + "-" + hex.EncodeToString(h.Sum(nil)[:6]) + "-" + p.Name, nil
}

// build builds the program and writes Go's output to log.
func (p Built) build(ctx context.Context, module, output, log string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("go is missing: install Go 1.26 or newer and put it in PATH")
	}
	f, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("create build log: %w", err)
	}
	defer f.Close()
	args := append([]string{"build", "-trimpath"}, p.Flags...)
	cmd := exec.CommandContext(ctx, goTool, append(args, "-o", output, p.Package)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), buildEnv...)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build (%w); the end of its log %s:\n%s", err, log, lastLines(log, 8))
	}
	return os.Remove(log)
}
