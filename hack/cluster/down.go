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

// down deletes a cluster, also after a crash, and returns an error if there are
// leftovers on this machine.
func down(ctx context.Context, o options) error {
	slot, err := node.ReadSlotRecord(o.dir)
	if err != nil {
		return err
	}
	if err := devenv.StopRecorded(ctx, o.dir, self, 2*time.Minute); err != nil {
		return err
	}
	if err := cleanLocked(ctx, o); err != nil {
		return err
	}
	leftovers, err := node.Leftovers(o.dir, slot)
	if err != nil {
		return err
	}
	if len(leftovers) > 0 {
		return fmt.Errorf("cluster deleted, with leftovers:\n  %s", strings.Join(leftovers, "\n  "))
	}
	fmt.Println("cluster deleted: no leftover processes, mounts, network devices or control groups")
	return nil
}

// cleanLocked runs clean with the lock of the directory.
func cleanLocked(ctx context.Context, o options) error {
	if _, err := os.Stat(filepath.Dir(o.dir)); errors.Is(err, os.ErrNotExist) {
		return nil // there is no cluster
	}
	unlock, err := lock(o)
	if err != nil {
		return err
	}
	return errors.Join(clean(ctx, o), unlock())
}

// clean removes what a crash left, and all data.
func clean(ctx context.Context, o options) error {
	if err := node.Clean(ctx, o.dir); err != nil {
		return err
	}
	// For root PostgreSQL's data may be outside the directory.
	for _, path := range []string{postgres.Dir(o.dir), o.dir, o.envFile()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove data: %w", err)
		}
	}
	return nil
}
