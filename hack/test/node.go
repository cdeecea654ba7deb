package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
)

// prepareNode builds and downloads all programs that test/cluster needs, except
// the product.
func prepareNode(ctx context.Context, progress *devenv.Progress) error {
	cache, err := devenv.OpenCache(progress)
	if err != nil {
		return err
	}
	if err := node.Prepare(ctx, cache); err != nil {
		return err
	}
	if _, err := devenv.Discovery(ctx, cache); err != nil {
		return err
	}
	if _, err := devenv.FindPrometheus(ctx, cache); err != nil {
		return err
	}
	root, err := devenv.RepoRoot()
	if err != nil {
		return err
	}
	done := progress.Step("Helm", "building, about 1 min on 2 cores the first time")
	out, err := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool.sh"), "helm", "version", "--short").CombinedOutput()
	done(err)
	if err != nil {
		return fmt.Errorf("build Helm: %w\n%s", err, out)
	}
	return nil
}
