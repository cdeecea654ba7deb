package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// up runs the platform until ctx ends or one of its programs fails.
func up(ctx context.Context, o options) (err error) {
	begin := time.Now()
	release, err := devenv.Occupy(o.dir)
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
	env := filepath.Join(o.dir, devenv.EnvFile)
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
