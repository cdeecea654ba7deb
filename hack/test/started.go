package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/browser"
	"github.com/mnemo-dev/mnemo/hack/devenv/kube"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
)

var dependencies = []string{"postgres", "milvus", "kube", "model", "chromium", "oidc", "mnemo"}

// started collects the running dependencies and the environment of tests.
type started struct {
	mu    sync.Mutex
	env   []string
	stops []func() error
}

// start starts the dependencies concurrently.
func (s *started) start(ctx context.Context, dir string, progress *devenv.Progress, c config) error {
	cache, err := devenv.OpenCache(progress)
	if err != nil {
		return err
	}
	o := devenv.Options{Dir: dir, Cache: cache, Durable: c.durable}
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range c.names {
		if !slices.Contains(dependencies, name) {
			return fmt.Errorf("unknown dependency %q: choose from %s", name, strings.Join(dependencies, ","))
		}
		g.Go(func() error { return s.startOne(ctx, name, o) })
	}
	return g.Wait()
}

func (s *started) startOne(ctx context.Context, name string, o devenv.Options) error {
	switch name {
	case "postgres":
		return s.startPostgres(ctx, o)
	case "milvus":
		m, err := milvus.Start(ctx, o)
		if err != nil {
			return err
		}
		s.add(m.Stop, "MNEMO_TEST_MILVUS="+m.Addr, "MNEMO_TEST_MILVUS_USER="+m.User, "MNEMO_TEST_MILVUS_PASSWORD="+m.Password)
	case "kube":
		k, err := kube.Start(ctx, o)
		if err != nil {
			return err
		}
		if err := k.EnsureKubectl(ctx); err != nil {
			return errors.Join(err, k.Stop())
		}
		s.add(k.Stop, "MNEMO_TEST_KUBECONFIG="+k.Kubeconfig, "MNEMO_TEST_KUBECTL="+k.Kubectl)
	case "model":
		return s.fetchModels(ctx, o)
	case "oidc":
		provider, err := devenv.OIDCProvider(ctx, o.Cache)
		if err != nil {
			return err
		}
		s.add(nil, "MNEMO_TEST_OIDC_PROVIDER="+provider)
	case "chromium":
		return s.fetchBrowser(ctx, o)
	case "mnemo":
		return s.buildMnemo(ctx, o)
	}
	return nil
}

// startPostgres starts PostgreSQL, with its data in memory unless it must be durable.
func (s *started) startPostgres(ctx context.Context, o devenv.Options) error {
	clients, err := postgres.Clients(ctx, o.Cache)
	if err != nil {
		return err
	}
	if err := removeStale(shared); err != nil {
		return fmt.Errorf("remove data of former runs: %w", err)
	}
	var m memory
	if !o.Durable && enoughMemory(shared) {
		if m, err = createMemory(shared, filepath.Join(o.Dir, "logs")); err != nil {
			return err
		}
	}
	o.Dir = cmp.Or(m.dir, o.Dir)
	p, err := postgres.Start(ctx, o)
	if err != nil {
		return errors.Join(err, m.remove())
	}
	s.add(func() error { return errors.Join(p.Stop(), m.remove()) }, "MNEMO_TEST_POSTGRES="+p.URL, "MNEMO_TEST_POSTGRES_CLIENTS="+clients)
	return nil
}

// fetchModels provides the embedding models and the library that runs them.
func (s *started) fetchModels(ctx context.Context, o devenv.Options) error {
	library, err := devenv.ONNXRuntime(ctx, o.Cache, runtime.GOARCH)
	if err != nil {
		return err
	}
	models, err := devenv.Models(ctx, o.Cache)
	if err != nil {
		return err
	}
	var list []string
	for name, dir := range models {
		list = append(list, name+"="+dir)
	}
	s.add(nil, "MNEMO_TEST_ONNXRUNTIME="+filepath.Join(library, devenv.ONNXRuntimeLibrary), "MNEMO_TEST_MODEL="+models[devenv.DefaultModel],
		"MNEMO_TEST_MODELS="+strings.Join(list, ","))
	return nil
}

// fetchBrowser provides the browser, which tests start, and axe-core.
func (s *started) fetchBrowser(ctx context.Context, o devenv.Options) error {
	chromium, err := browser.Chromium(ctx, o.Cache)
	if err != nil {
		return err
	}
	axe, err := browser.Axe(ctx, o.Cache)
	if err != nil {
		return err
	}
	s.add(nil, "MNEMO_TEST_CHROMIUM="+chromium, "MNEMO_TEST_AXE="+axe)
	return nil
}

// buildMnemo builds the product once for all tests that run it.
func (s *started) buildMnemo(ctx context.Context, o devenv.Options) (err error) {
	done := o.Cache.Progress.Step("mnemo", "building")
	defer func() { done(err) }()
	program := filepath.Join(o.Dir, "mnemo")
	if err := devenv.BuildMnemo(ctx, program); err != nil {
		return err
	}
	s.add(nil, "MNEMO_TEST_PROGRAM="+program)
	return nil
}

func (s *started) add(stop func() error, env ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.env = append(s.env, env...)
	if stop != nil {
		s.stops = append(s.stops, stop)
	}
}

// stop stops all dependencies concurrently: none needs another to stop.
func (s *started) stop() error {
	errs := make([]error, len(s.stops))
	var wg sync.WaitGroup
	for i, stop := range s.stops {
		wg.Go(func() { errs[i] = stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// clean removes the run directory but keeps the logs of a failed run.
func clean(dir string, all bool) error {
	// For root PostgreSQL's data may be elsewhere.
	if err := os.RemoveAll(postgres.Dir(dir)); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	if all {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.Name() != "logs" {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
