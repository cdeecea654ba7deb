package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// dataSpace is the free space required for the data of a small platform.
const dataSpace = 1 << 30

// up runs the platform until ctx ends or one of its programs fails.
func up(ctx context.Context, o options) (err error) {
	begin := time.Now()
	release, err := occupy(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	p := newPlatform(o)
	defer func() { err = errors.Join(err, p.stop()) }()

	if err := p.start(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped before the platform was up")
		}
		return err
	}
	link, err := p.signInLink(ctx)
	if err != nil {
		return err
	}
	env := filepath.Join(o.dir, envFile)
	if err := p.writeEnv(env); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(env)) }()
	p.printSummary(os.Stdout, time.Since(begin), link)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var kubectl sync.WaitGroup
	kubectl.Go(func() { p.buildKubectl(ctx) })
	err = p.watch(ctx)
	cancel()
	kubectl.Wait()
	if err != nil {
		return err
	}
	p.progress.Printf("==> Mnemo: stopping")
	return nil
}

// occupy locks the directory against a second run and records this program for
// `down`.
func occupy(dir string) (release func() error, err error) {
	// For root PostgreSQL runs as another user, who must be able to traverse it.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := devenv.CheckSpace(dir, dataSpace); err != nil {
		return nil, fmt.Errorf("the platform's data %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("the platform is already running in %s: stop it with Ctrl-C in its terminal, or with `make down`", dir)
	}
	// An existing file is from a crashed run.
	if err := os.Remove(filepath.Join(dir, envFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old %s: %w", envFile, err)
	}
	forget, err := devenv.RecordSelf(dir, self)
	if err != nil {
		return nil, err
	}
	return func() error {
		// A child process that is being started may have the file open, so closing it is not enough.
		return errors.Join(forget(), syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
	}, nil
}
