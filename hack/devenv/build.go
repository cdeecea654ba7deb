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
)

// built is a program that is built from a module of hack/, which pins it, and
// kept in the cache.
type built struct {
	name, pkg string
	module    string // its directory below hack/
	flags     []string
	// key begins the names of its entries in the cache.
	key             string
	title, estimate string
}

// buildEnv overrides what the product is built with: an experiment of the
// product's would only make another copy of everything in Go's build cache.
var buildEnv = []string{"CGO_ENABLED=0", "GOEXPERIMENT=", "GOWORK=off"}

// ensureBuilt returns the path of each program by its name, built from source
// the first time.
func ensureBuilt(ctx context.Context, cache *Cache, programs []built) (map[string]string, error) {
	root, err := RepoRoot()
	if err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	for _, p := range programs {
		module := filepath.Join(root, "hack", p.module)
		key, err := p.cacheKey(module)
		if err != nil {
			return nil, err
		}
		dir, err := cache.Ensure(ctx, Entry{
			Key:   key,
			Title: p.title,
			Doing: "building from source, " + p.estimate + ", once",
			// Most of it is Go's build cache.
			Space: 4 << 30,
			Fill: func(ctx context.Context, dir string) error {
				return p.build(ctx, module, filepath.Join(dir, p.name), filepath.Join(cache.Root, "build-"+p.name+".log"))
			},
		})
		if err != nil {
			return nil, err
		}
		binaries[p.name] = filepath.Join(dir, p.name)
	}
	return binaries, nil
}

// cacheKey changes with whatever changes the program: what its module pins,
// and the module's own code if it has any.
func (p built) cacheKey(module string) (string, error) {
	h := sha256.New()
	for _, pattern := range []string{"*.go", "go.*"} {
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
	_, _ = fmt.Fprint(h, buildEnv, p.flags, runtime.GOARCH)
	return p.key + "-" + hex.EncodeToString(h.Sum(nil)[:6]) + "-" + p.name, nil
}

// build builds the program; what Go says goes to log.
func (p built) build(ctx context.Context, module, output, log string) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("go is missing: install Go 1.26 or newer and put it in PATH")
	}
	f, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("create build log: %w", err)
	}
	defer f.Close()
	args := append([]string{"build", "-trimpath"}, p.flags...)
	cmd := exec.CommandContext(ctx, goTool, append(args, "-o", output, p.pkg)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), buildEnv...)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build (%w); the end of its log %s:\n%s", err, log, lastLines(log, 8))
	}
	return os.Remove(log)
}
