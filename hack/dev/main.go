// Command dev runs `mnemo dev` on PostgreSQL until Ctrl-C: the API, the dashboard and MCP for one user, with the local
// embedding model, without Kubernetes and Milvus:
//
//	go run ./hack/dev [-port 8080] [-dir .mnemo/dev]
//
// It imports no Kubernetes packages and builds the product without them: they need more than half of the compile time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// options are the command-line options.
type options struct {
	dir    string // of everything this run writes
	port   int    // of the API; 0 for the default or, if that is in use, a free one
	stdout *os.File
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal kills this program.
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := devenv.RepoRoot()
	if err != nil {
		return err
	}
	o := options{stdout: os.Stdout}
	flag.StringVar(&o.dir, "dir", filepath.Join(root, ".mnemo", "dev"), "directory for data and logs")
	flag.IntVar(&o.port, "port", 0, "port of the API")
	flag.Parse()
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("PORT must be 1 to 65535, not %d", o.port)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return dev(ctx, o)
}

// dev runs PostgreSQL and Mnemo until ctx ends or one of them fails.
func dev(ctx context.Context, o options) (err error) {
	release, err := devenv.Occupy(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	p := &platform{options: o, progress: devenv.NewProgress(o.stdout)}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.start(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped before Mnemo was up")
		}
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(filepath.Join(o.dir, devenv.EnvFile))) }()
	select {
	case <-ctx.Done():
		p.progress.Printf("==> Mnemo: stopping")
		return nil
	case <-p.postgres.Done():
		return p.postgres.Err()
	case <-p.mnemo.Done():
		return p.mnemo.Err()
	}
}
