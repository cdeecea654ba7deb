package devenv

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

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
	if err := fillNode(ctx, dir); err != nil {
		return err
	}
	if err := writeEmbedded(dir, oidcProviderFiles, "oidcprovider", "package.json", "package-lock.json", "provider.js"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "oidc-provider"), []byte(oidcProviderScript), 0o755); err != nil {
		return fmt.Errorf("write start script: %w", err)
	}
	return npmInstall(ctx, dir)
}

const oidcProviderScript = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/node" "$here/provider.js" "$@"
`
