package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

var allParts = []string{"postgres", "milvus", "kube", "model", "chromium", "oidc"}

// started collects the parts that run and what a test must know of them.
type started struct {
	mu    sync.Mutex
	env   []string
	stops []func() error
}

// start starts the named parts at the same time.
func (s *started) start(ctx context.Context, dir string, progress *devenv.Progress, names []string) error {
	cache, err := devenv.OpenCache(progress)
	if err != nil {
		return err
	}
	o := devenv.Options{Dir: dir, Cache: cache}
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		if !slices.Contains(allParts, name) {
			return fmt.Errorf("there is no part %q: choose from %s", name, strings.Join(allParts, ","))
		}
		g.Go(func() error { return s.startOne(ctx, name, o) })
	}
	return g.Wait()
}

func (s *started) startOne(ctx context.Context, name string, o devenv.Options) error {
	switch name {
	case "postgres":
		p, err := postgres.Start(ctx, o)
		if err != nil {
			return err
		}
		s.add(p.Stop, "MNEMO_TEST_POSTGRES="+p.URL)
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
		s.add(k.Stop, "MNEMO_TEST_KUBECONFIG="+k.Kubeconfig, "MNEMO_TEST_KUBECTL="+k.Kubectl)
	case "model":
		model, err := devenv.Model(ctx, o.Cache)
		if err != nil {
			return err
		}
		s.add(nil, "MNEMO_TEST_MODEL="+model)
	case "oidc":
		provider, err := devenv.OIDCProvider(ctx, o.Cache)
		if err != nil {
			return err
		}
		s.add(nil, "MNEMO_TEST_OIDC_PROVIDER="+provider)
	case "chromium":
		return s.fetchBrowser(ctx, o)
	}
	return nil
}

// fetchBrowser brings the browser, which tests start themselves, and what they
// run in it.
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

func (s *started) add(stop func() error, env ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.env = append(s.env, env...)
	if stop != nil {
		s.stops = append(s.stops, stop)
	}
}

// stop ends all parts at the same time: none needs another to stop.
func (s *started) stop() error {
	errs := make([]error, len(s.stops))
	var wg sync.WaitGroup
	for i, stop := range s.stops {
		wg.Go(func() { errs[i] = stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// clean removes the run directory; the logs stay when something went wrong.
func clean(dir string, all bool) error {
	// As root PostgreSQL's data may be elsewhere.
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
