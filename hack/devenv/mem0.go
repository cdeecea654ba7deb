package devenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Mem0Packages are the clients and integrations of mem0 for Python and Node.js, with
// Node.js, in one directory.
type Mem0Packages struct{ dir string }

// OpenMem0Packages returns the packages, which are installed if they are not cached. The
// npm packages are those of package.json alone: mem0ai has peers for every vector store.
func OpenMem0Packages(ctx context.Context, cache *Cache) (Mem0Packages, error) {
	dir, err := ensureSDK(ctx, cache, "mem0packages", Entry{
		Title: "clients and integrations of mem0",
		Doing: "downloading 150 MB with npm and pip, once",
		Space: 1 << 30,
	}, func(ctx context.Context, python, dir string) error {
		if err := fillNode(ctx, dir); err != nil {
			return err
		}
		if err := writeEmbedded(dir, sdkFiles, "mem0packages", "package.json", "package-lock.json", "requirements.txt", "former.txt"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, ".npmrc"), []byte("legacy-peer-deps=true\n"), 0o600); err != nil {
			return fmt.Errorf("write .npmrc: %w", err)
		}
		if err := npmCI(ctx, filepath.Join(dir, "node"), filepath.Join(dir, npmScript), dir); err != nil {
			return err
		}
		p := Mem0Packages{dir}
		for file, target := range map[string]string{"requirements.txt": p.Python(), "former.txt": p.FormerPython()} {
			if err := pip(ctx, python, "install", "--no-deps", "--only-binary=:all:", "--require-hashes",
				"--target", target, "--requirement", filepath.Join(dir, file)); err != nil {
				return err
			}
		}
		return nil
	})
	return Mem0Packages{dir}, err
}

// Python returns the directory of the Python packages.
func (p Mem0Packages) Python() string { return filepath.Join(p.dir, "python") }

// FormerPython returns the directory of mem0ai 1, whose dependencies are in Python.
func (p Mem0Packages) FormerPython() string { return filepath.Join(p.dir, "former") }

// Modules returns the directory of the npm packages.
func (p Mem0Packages) Modules() string { return filepath.Join(p.dir, "node_modules") }

// Program returns a command that runs Node.js.
func (p Mem0Packages) Program(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(p.dir, "node"), args...)
}
