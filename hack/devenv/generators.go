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

// generatorFiles pin linters and client generators for OpenAPI documents by hash.
// To update requirements.txt, run uv pip compile --universal --python-version 3.11
// --generate-hashes --no-annotate --no-header.
//
//go:embed generators
var generatorFiles embed.FS

var openAPIGenerator = Jar{
	Group:   "org.openapitools",
	Name:    "openapi-generator-cli",
	Version: "7.25.0",
	SHA256:  "41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae",
}

// Generators are programs that read OpenAPI documents, in one directory.
type Generators struct{ dir string }

// OpenAPIGenerators returns the linters and client generators, which are installed
// if they are not cached.
func OpenAPIGenerators(ctx context.Context, cache *Cache) (Generators, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return Generators{}, errors.New("python3 is missing: install Python 3.11 or newer with pip (Debian: apt-get install python3-pip)")
	}
	tag, err := exec.CommandContext(ctx, python, "-c", "import sys; print(sys.implementation.cache_tag)").Output()
	if err != nil {
		return Generators{}, fmt.Errorf("get the version of python3: %w", err)
	}
	sum := sha256.New()
	for _, name := range []string{"package-lock.json", "requirements.txt"} {
		content, err := generatorFiles.ReadFile("generators/" + name)
		if err != nil {
			return Generators{}, fmt.Errorf("read %s: %w", name, err)
		}
		sum.Write(content)
	}
	dir, err := cache.Ensure(ctx, Entry{
		Key:   "generators-" + hex.EncodeToString(sum.Sum(nil)[:6]) + "-" + openAPIGenerator.Version + "-" + strings.TrimSpace(string(tag)),
		Title: "OpenAPI linters and client generators",
		Doing: "downloading 120 MB with npm, pip and Maven, once",
		Space: 600 << 20,
		Fill:  func(ctx context.Context, dir string) error { return fillGenerators(ctx, python, dir) },
	})
	return Generators{dir}, err
}

func fillGenerators(ctx context.Context, python, dir string) error {
	if err := fillNode(ctx, dir); err != nil {
		return err
	}
	if err := writeEmbedded(dir, generatorFiles, "generators", "package.json", "package-lock.json", "requirements.txt"); err != nil {
		return err
	}
	if err := npmInstall(ctx, dir); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:",
		"--require-hashes", "--target", filepath.Join(dir, "python"), "--requirement", filepath.Join(dir, "requirements.txt"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pip could not install openapi-python-client (is the package index reachable?): %w\n%s", err, strings.TrimSpace(string(out)))
	}
	_, err := openAPIGenerator.Fetch(ctx, dir)
	return err
}

// Node returns a command that runs a script of an npm package, such as
// "typescript/bin/tsc".
func (g Generators) Node(ctx context.Context, script string, args ...string) *exec.Cmd {
	return g.Program(ctx, filepath.Join(g.Modules(), script), args...)
}

// Program returns a command that runs a script with Node.js.
func (g Generators) Program(ctx context.Context, script string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(g.dir, "node"), append([]string{script}, args...)...)
}

// Modules returns the directory of the npm packages.
func (g Generators) Modules() string { return filepath.Join(g.dir, "node_modules") }

// Python returns a command that runs python3 with the Python packages and their
// programs.
func (g Generators) Python(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "python3", args...)
	packages := filepath.Join(g.dir, "python")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PATH="+filepath.Join(packages, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// Java returns a command that runs openapi-generator.
func (g Generators) Java(ctx context.Context, args ...string) *exec.Cmd {
	jar := filepath.Join(g.dir, openAPIGenerator.Name+"-"+openAPIGenerator.Version+".jar")
	return exec.CommandContext(ctx, "java", append([]string{"-jar", jar}, args...)...)
}
