package devenv

import (
	"context"
	"embed"
	"os/exec"
	"path/filepath"
)

// mcpConformanceFiles are the packages of the suite with hashes.
//
//go:embed mcpconformance
var mcpConformanceFiles embed.FS

// mcpConformanceVersion must change when the packages in mcpconformance do.
const mcpConformanceVersion = "0.1.16-1"

// MCPConformance is the conformance suite of the Model Context Protocol.
type MCPConformance struct{ dir string }

// MCPConformanceSuite returns the suite, which is installed if it is not cached.
func MCPConformanceSuite(ctx context.Context, cache *Cache) (MCPConformance, error) {
	dir, err := cache.Ensure(ctx, Entry{
		Key:   "mcp-conformance-" + mcpConformanceVersion,
		Title: "conformance suite of the Model Context Protocol 0.1.16",
		Doing: "downloading Node.js with pip and its packages with npm, 60 MB, once",
		Space: 300 << 20,
		Fill: func(ctx context.Context, dir string) error {
			if err := fillNode(ctx, dir); err != nil {
				return err
			}
			if err := writeEmbedded(dir, mcpConformanceFiles, "mcpconformance", "package.json", "package-lock.json"); err != nil {
				return err
			}
			return npmInstall(ctx, dir)
		},
	})
	return MCPConformance{dir}, err
}

// Server returns a command that tests the MCP server at url. The scenarios in the
// YAML file expected fail; if another one fails, or one of them succeeds, the
// command does.
func (m MCPConformance) Server(ctx context.Context, url, expected string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(m.dir, "node"), filepath.Join(m.dir, "node_modules", ".bin", "conformance"),
		"server", "--url", url, "--expected-failures", expected)
}
