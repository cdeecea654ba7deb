package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/hack/sample"
)

// platform holds everything that runs.
type platform struct {
	options
	progress *devenv.Progress
	devenv   devenv.Options

	postgres *postgres.Server
	milvus   *milvus.Server
	kube     *kube.ControlPlane
	model    string // directory
	// onnxruntime is the path of the library.
	onnxruntime string
	binary      string
	product     product
	client      client.Client // of Kubernetes
	sample      sample.Tenant

	mu    sync.Mutex
	stops [2][]func() error
}

// The order of stopping: Mnemo first, then its dependencies.
const (
	stopFirst = iota
	stopLast
)

func newPlatform(o options) *platform {
	return &platform{options: o, progress: devenv.NewProgress(os.Stdout), binary: filepath.Join(o.root, "bin", "mnemo")}
}

// start starts the dependencies and builds Mnemo concurrently, then starts Mnemo
// and applies the sample Tenant.
func (p *platform) start(ctx context.Context) error {
	cache, err := devenv.OpenCache(p.progress)
	if err != nil {
		return err
	}
	p.devenv = devenv.Options{Dir: p.dir, Cache: cache, Durable: true}
	if err := p.chooseAddresses(); err != nil {
		return err
	}
	if err := runAll(ctx, p.startPostgres, p.startMilvus, p.startKube, p.fetchModel, p.build); err != nil {
		return err
	}
	if err := p.migrate(ctx); err != nil {
		return err
	}
	if err := runAll(ctx, p.startServe, p.startOperator); err != nil {
		return err
	}
	return p.applySample(ctx)
}

// runAll runs steps concurrently and cancels them at the first error.
func runAll(ctx context.Context, steps ...func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, step := range steps {
		g.Go(func() error { return step(ctx) })
	}
	return g.Wait()
}

func (p *platform) startPostgres(ctx context.Context) (err error) {
	if p.postgres, err = postgres.Start(ctx, p.devenv); err != nil {
		return err
	}
	p.onStop(stopLast, p.postgres.Stop)
	return p.product.prepareDatabase(ctx, p.postgres)
}

func (p *platform) startMilvus(ctx context.Context) (err error) {
	if p.milvus, err = milvus.Start(ctx, p.devenv); err != nil {
		return err
	}
	p.onStop(stopLast, p.milvus.Stop)
	return nil
}

func (p *platform) startKube(ctx context.Context) (err error) {
	if p.kube, err = kube.Start(ctx, p.devenv); err != nil {
		return err
	}
	p.onStop(stopLast, p.kube.Stop)
	return p.prepareCluster(ctx)
}

func (p *platform) fetchModel(ctx context.Context) (err error) {
	if p.model, err = devenv.Model(ctx, p.devenv.Cache, devenv.DefaultModel); err != nil {
		return err
	}
	library, err := devenv.ONNXRuntime(ctx, p.devenv.Cache, runtime.GOARCH)
	p.onnxruntime = filepath.Join(library, devenv.ONNXRuntimeLibrary)
	return err
}

func (p *platform) onStop(when int, stop func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops[when] = append(p.stops[when], stop)
}

// stop stops everything that was started.
func (p *platform) stop() error {
	var all []error
	for _, stops := range p.stops {
		errs := make([]error, len(stops))
		var wg sync.WaitGroup
		for i, stop := range stops {
			wg.Go(func() { errs[i] = stop() })
		}
		wg.Wait()
		all = append(all, errs...)
	}
	return errors.Join(all...)
}

// watch returns nil when ctx ends, and an error when a program ends unexpectedly.
// Milvus is restarted: Mnemo tolerates that.
func (p *platform) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.postgres.Done():
			return p.postgres.Err()
		case <-p.kube.Done():
			return p.kube.Err()
		case <-p.product.serve.Done():
			return p.product.serve.Err()
		case <-p.product.operator.Done():
			return p.product.operator.Err()
		case <-p.milvus.Done():
			p.progress.Printf("==> Milvus: ended unexpectedly, restarting")
			// An error during shutdown is not a failure.
			if err := p.restartMilvus(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

func (p *platform) restartMilvus(ctx context.Context) error {
	if err := p.milvus.Kill(); err != nil {
		return fmt.Errorf("clean up after Milvus: %w", err)
	}
	if err := p.milvus.Start(ctx); err != nil {
		return fmt.Errorf("restart Milvus: %w", err)
	}
	p.progress.Printf("    Milvus: ready")
	return nil
}
