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

// down stops what other processes run with up and dev, or what they left when they crashed.
func down(ctx context.Context, o options) error {
	if err := errors.Join(stopAll(ctx, o.ofDev()), stopAll(ctx, o)); err != nil {
		return err
	}
	fmt.Println("platform stopped; its data is kept in", o.dir)
	return nil
}

// stopAll stops what runs in the directory.
func stopAll(ctx context.Context, o options) error {
	if err := devenv.StopRecorded(ctx, o.dir, devenv.Self, 2*time.Minute); err != nil {
		return err
	}
	names, err := devenv.StopAll(ctx, o.dir)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(o.dir, devenv.EnvFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", devenv.EnvFile, err)
	}
	if len(names) > 0 {
		fmt.Println("cleaned up after a crash:", strings.Join(names, ", "))
	}
	return nil
}

// reset does what down does and deletes the data but not the cache. In -dir it deletes only files that
// up and dev create.
func reset(ctx context.Context, o options) error {
	for _, o := range []options{o.ofDev(), o} {
		if err := stopAll(ctx, o); err != nil {
			return err
		}
		if err := removeData(o.dir); err != nil {
			return fmt.Errorf("remove data: %w", err)
		}
	}
	fmt.Println("platform stopped and its data deleted")
	return nil
}

func removeData(dir string) error {
	// For root PostgreSQL's data may be outside the directory.
	errs := []error{os.RemoveAll(postgres.Dir(dir))}
	for _, name := range []string{"postgres", "milvus", "kube", productDir, "logs", "pids", "lock", "settings.json"} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	_ = os.Remove(dir) // fails if it contains other files
	return errors.Join(errs...)
}
