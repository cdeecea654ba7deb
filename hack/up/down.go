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
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

const (
	// envFile is the file for scripts; it exists while the platform runs.
	envFile = "up.env"
	// self is the name under which a running `up` is recorded.
	self = "up"
)

// down stops a platform that another process runs, or that crashed.
func down(ctx context.Context, o options) error {
	if err := stopAll(ctx, o); err != nil {
		return err
	}
	fmt.Println("platform stopped; its data is kept in", o.dir)
	return nil
}

func stopAll(ctx context.Context, o options) error {
	if err := devenv.StopRecorded(ctx, o.dir, self, 2*time.Minute); err != nil {
		return err
	}
	names, err := devenv.StopAll(ctx, o.dir)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(o.dir, envFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", envFile, err)
	}
	if len(names) > 0 {
		fmt.Println("cleaned up after a crash:", strings.Join(names, ", "))
	}
	return nil
}

// reset stops the platform and deletes its data but not the cache. In -dir it
// deletes only files that `up` creates.
func reset(ctx context.Context, o options) error {
	if err := stopAll(ctx, o); err != nil {
		return err
	}
	// For root PostgreSQL's data may be outside the directory.
	errs := []error{os.RemoveAll(postgres.Dir(o.dir))}
	for _, name := range []string{"postgres", "milvus", "kube", productDir, "logs", "pids", "lock"} {
		errs = append(errs, os.RemoveAll(filepath.Join(o.dir, name)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove data: %w", err)
	}
	_ = os.Remove(o.dir) // fails if it contains other files
	fmt.Println("platform stopped and its data deleted")
	return nil
}
