package devenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// BuildMnemo builds the product of the checkout for tests, with additional flags of `go build`. Nothing debugs
// it, and without debug information it is linked in about 60 % of the time.
func BuildMnemo(ctx context.Context, path string, flags ...string) error {
	root, err := RepoRoot()
	if err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", path}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/mnemo")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build mnemo: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
