package devenv

import (
	"context"
	"os/exec"
	"path/filepath"
)

// Clients are programs of others that are tested with Mnemo, in one directory.
type Clients struct{ dir string }

// OpenClients returns the programs, which are installed if they are not cached.
func OpenClients(ctx context.Context, cache *Cache) (Clients, error) {
	dir, err := ensureSDK(ctx, cache, "clients", Entry{
		Title: "clients that are tested with Mnemo",
		Doing: "downloading 90 MB with npm and pip, once",
		Space: 400 << 20,
	}, func(ctx context.Context, _, dir string) error {
		if err := fillNode(ctx, dir); err != nil {
			return err
		}
		if err := writeEmbedded(dir, sdkFiles, "clients", "package.json", "package-lock.json"); err != nil {
			return err
		}
		return npmInstall(ctx, dir)
	})
	return Clients{dir}, err
}

// Node returns a command that runs Node.js.
func (c Clients) Node(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(c.dir, "node"), args...)
}

// Modules returns the directory of the npm packages.
func (c Clients) Modules() string { return filepath.Join(c.dir, "node_modules") }

// Workerd returns a command that runs the runtime of Cloudflare Workers.
func (c Clients) Workerd(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(c.Modules(), "@cloudflare/workerd-linux-64/bin/workerd"), args...)
}
