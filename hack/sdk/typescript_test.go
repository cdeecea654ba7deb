package sdk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/sdk"
)

const root = "../.."

// TestTypeScriptTypes compiles the documented examples, and types.mts, as strictly as a project can ask for, with
// each version of the package ai that is a peer of the npm package.
func TestTypeScriptTypes(t *testing.T) {
	t.Parallel()
	cache, err := devenv.OpenCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := devenv.OpenSDKTools(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	built := t.TempDir()
	if err := sdk.BuildTypeScript(t.Context(), tools, root, "1.2.3", built); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"ai", "ai-6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t, tools, filepath.Join(built, "mnemo-client-1.2.3.tgz"), version)
			args := []string{"--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck",
				"--target", "es2022", "--module", "nodenext", "--types", "node"}
			cmd := tools.Node(t.Context(), "typescript/bin/tsc", append(args, writePrograms(t, dir)...)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("tsc: %v\n%s", err, out)
			}
		})
	}
}

// newProject returns a directory in which the packed npm package is installed, and as ai the package of the given name.
func newProject(t *testing.T, tools devenv.SDKTools, tarball, ai string) string {
	t.Helper()
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	installed := filepath.Join(modules, "mnemo-client")
	if err := os.MkdirAll(installed, 0o700); err != nil {
		t.Fatal(err)
	}
	tar := exec.CommandContext(t.Context(), "tar", "-xzf", tarball, "-C", installed, "--strip-components=1")
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	for name, target := range map[string]string{"ai": ai, "@types": "@types", "zod": "zod"} {
		if err := os.Symlink(filepath.Join(tools.Modules(), target), filepath.Join(modules, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var example = regexp.MustCompile("(?s)```ts\n(.*?)```")

// writePrograms writes the examples of the documentation and types.mts to dir, and returns the names of the files.
func writePrograms(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, document := range []string{"docs/connect/typescript.md", "sdk/typescript/README.md"} {
		examples := example.FindAllSubmatch(read(t, filepath.Join(root, document)), -1)
		if len(examples) == 0 {
			t.Fatalf("%s has no examples", document)
		}
		for _, found := range examples {
			name := "example" + strconv.Itoa(len(names)+1) + ".mts"
			write(t, filepath.Join(dir, name), found[1])
			names = append(names, name)
		}
	}
	write(t, filepath.Join(dir, "types.mts"), read(t, filepath.Join(root, "sdk/typescript/test/types.mts")))
	return append(names, "types.mts")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
