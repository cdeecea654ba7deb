package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/milvus"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/hack/sample"
)

// space is the required free space, for unpacked images and the stores' data.
const space = 3 << 30

// cluster holds everything that runs.
type cluster struct {
	options
	begin    time.Time
	progress *devenv.Progress
	devenv   devenv.Options
	stores   devenv.Options // of PostgreSQL and Milvus, which require TLS

	node     *node.Node
	postgres *postgres.Server
	milvus   *milvus.Server
	model    string // directory
	helm     string
	images   images
	release  release
	sample   sample.Tenant
}

func newCluster(o options) *cluster {
	return &cluster{options: o, begin: time.Now(), progress: devenv.NewProgress(os.Stdout)}
}

// start starts the node and the stores and builds the images concurrently, then
// installs the release and applies the sample Tenant.
func (c *cluster) start(ctx context.Context) error {
	cache, err := devenv.OpenCache(c.progress)
	if err != nil {
		return err
	}
	c.devenv = devenv.Options{Dir: c.dir, Cache: cache}
	c.stores = c.devenv
	if c.stores.TLS, err = devenv.NewAuthority(filepath.Join(c.dir, "authority")); err != nil {
		return err
	}
	if err := runAll(ctx, c.startNode, c.startPostgres, c.startMilvus, c.buildImages, c.buildHelm); err != nil {
		return err
	}
	if err := c.exposeStores(); err != nil {
		return err
	}
	if err := runAll(ctx, c.importImages, c.prepareNamespace); err != nil {
		return err
	}
	if err := c.install(ctx); err != nil {
		return err
	}
	if err := c.applySample(ctx); err != nil {
		return err
	}
	if err := c.writeEnv(); err != nil {
		return err
	}
	c.printSummary(os.Stdout, time.Since(c.begin))
	return nil
}

// runAll runs steps concurrently and cancels them at the first error.
func runAll(ctx context.Context, steps ...func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, step := range steps {
		g.Go(func() error { return step(ctx) })
	}
	return g.Wait()
}

func (c *cluster) startNode(ctx context.Context) (err error) {
	c.node, err = node.Start(ctx, c.devenv)
	return err
}

func (c *cluster) startPostgres(ctx context.Context) (err error) {
	if c.postgres, err = postgres.Start(ctx, c.stores); err != nil {
		return err
	}
	return c.release.prepareDatabase(ctx, c.postgres)
}

func (c *cluster) startMilvus(ctx context.Context) (err error) {
	c.milvus, err = milvus.Start(ctx, c.stores)
	return err
}

// applySample applies config/samples, a Tenant with two users.
func (c *cluster) applySample(ctx context.Context) (err error) {
	done := c.progress.Step("sample Tenant", "applying config/samples and waiting until it is Ready")
	defer func() { done(err) }()
	client, err := sample.Connect(c.node.Kube.Kubeconfig)
	if err != nil {
		return err
	}
	c.sample, err = sample.Apply(ctx, client, c.root)
	return err
}

func (c *cluster) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return c.node.Kubectl(ctx, nil, args...)
}

// stop stops everything: the node first, because its pods use the stores.
func (c *cluster) stop() error {
	var errs []error
	if c.node != nil {
		errs = append(errs, c.node.Stop())
	}
	if c.milvus != nil {
		errs = append(errs, c.milvus.Stop())
	}
	if c.postgres != nil {
		errs = append(errs, c.postgres.Stop())
	}
	return errors.Join(errs...)
}

// watch returns nil when ctx ends, and an error when a program ends unexpectedly.
func (c *cluster) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.node.Failed():
		return err
	case <-c.postgres.Done():
		return c.postgres.Err()
	case <-c.milvus.Done():
		return c.milvus.Err()
	}
}

// load imports an image of the current checkout into a running cluster.
func load(ctx context.Context, o options) error {
	if err := node.CheckRunning(o.dir); err != nil {
		return err
	}
	c := newCluster(o)
	cache, err := devenv.OpenCache(c.progress)
	if err != nil {
		return err
	}
	c.devenv = devenv.Options{Dir: o.dir, Cache: cache}
	if err := os.MkdirAll(filepath.Join(o.dir, "images"), 0o755); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	img, err := c.buildMnemo(ctx)
	if err != nil {
		return err
	}
	if err := node.ImportImage(ctx, c.devenv, c.mnemoImage(), img); err != nil {
		return err
	}
	fmt.Println(c.mnemoImage())
	return nil
}
