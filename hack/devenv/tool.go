package devenv

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tool runs a tool of hack/tools at its pinned version and returns its standard
// output. root is the top of the checkout.
func Tool(ctx context.Context, root, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool.sh"), append([]string{name}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
