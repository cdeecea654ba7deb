// Command cluster installs Mnemo with its chart on a real Kubernetes of one
// node on this machine, which needs root:
//
//	go run ./hack/cluster up      returns when all is ready and leaves it running
//	go run ./hack/cluster load    imports an image of the checkout as it is now
//	go run ./hack/cluster demo    imports what the chart's demo runs, and says its values
//	go run ./hack/cluster down    takes all of it down, and says what is left
//
// Everything it writes is in .mnemo/cluster of the checkout, except what
// hack/devenv caches; scripts read .mnemo/cluster.env, which is there while the
// cluster runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/node"
)

const usage = `usage: go run ./hack/cluster up [-attached] | load -tag TAG [-overlay FILE] | demo | down   [-dir .mnemo/cluster]`

// options are what the command line says.
type options struct {
	root string // of the checkout
	dir  string // of everything a cluster writes
	// tag is that of the image to load, and the version its binary tells.
	tag     string
	overlay string // as `go build -overlay` takes it
	// attached: the cluster ends with standard input, that is with the program
	// that holds its other end, however that ends.
	attached bool
}

// envFile is what scripts read: beside dir, and named after it.
func (o options) envFile() string { return o.dir + ".env" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the next one ends us at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given\n%s", usage)
	}
	root, err := devenv.RepoRoot()
	if err != nil {
		return err
	}
	o := options{root: root}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage) }
	flags.StringVar(&o.dir, "dir", filepath.Join(root, ".mnemo", "cluster"), "where data and logs are kept")
	flags.StringVar(&o.tag, "tag", localTag, "tag of the image, and version of the binary")
	flags.StringVar(&o.overlay, "overlay", "", "what differs from the checkout, as go build -overlay takes it")
	flags.BoolVar(&o.attached, "attached", false, "take the cluster down when standard input ends")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := node.NeedRoot(os.Geteuid()); err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return up(ctx, o)
	case keepCommand:
		return keep(ctx, o)
	case "load":
		return load(ctx, o)
	case "demo":
		return loadDemo(ctx, o)
	case "down":
		return down(ctx, o)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}
