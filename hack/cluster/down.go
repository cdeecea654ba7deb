package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

// down ends a cluster, or what is left of one that crashed, and looks whether
// anything of it is left on this machine.
func down(ctx context.Context, o options) error {
	place, err := node.Place(o.dir)
	if err != nil {
		return err
	}
	if err := devenv.StopRecorded(ctx, o.dir, self, 2*time.Minute); err != nil {
		return err
	}
	if err := cleanAlone(ctx, o); err != nil {
		return err
	}
	left, err := node.Left(o.dir, place)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("the cluster is down, and this is left of it:\n  %s", strings.Join(left, "\n  "))
	}
	fmt.Println("the cluster is down: no process, mount, network device or control group of it is left")
	return nil
}

// cleanAlone is clean while no other program may use the directory.
func cleanAlone(ctx context.Context, o options) error {
	if _, err := os.Stat(filepath.Dir(o.dir)); errors.Is(err, os.ErrNotExist) {
		return nil // there never was one
	}
	unlock, err := lock(o)
	if err != nil {
		return err
	}
	return errors.Join(clean(ctx, o), unlock())
}

// clean ends what a crash left and removes all data.
func clean(ctx context.Context, o options) error {
	if err := node.Clean(ctx, o.dir); err != nil {
		return err
	}
	// As root PostgreSQL's data may be outside the directory.
	for _, path := range []string{postgres.Dir(o.dir), o.dir, o.envFile()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove data: %w", err)
		}
	}
	return nil
}
