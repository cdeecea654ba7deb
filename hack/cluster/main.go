// Command cluster runs a real one-node Kubernetes cluster on this machine and
// installs Mnemo's chart. It needs root:
//
//	go run ./hack/cluster up      starts the cluster and returns when it is ready
//	go run ./hack/cluster load    imports an image of the current checkout
//	go run ./hack/cluster demo    imports the images of the chart's demo and prints its values
//	go run ./hack/cluster down    deletes the cluster and reports leftovers
//
// It writes to .mnemo/cluster in the checkout and to the cache of hack/devenv.
// Scripts read .mnemo/cluster.env, which exists while the cluster runs.
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

// options are the command-line options.
type options struct {
	root string // of the checkout
	dir  string // of everything a cluster writes
	// tag is the tag of the image and the version of its binary.
	tag     string
	overlay string // file for `go build -overlay`
	// attached stops the cluster at the end of standard input, so that it also
	// ends when the program at the other end crashes.
	attached bool
}

// envFile returns the path of the file for scripts. It is next to dir and named
// after it.
func (o options) envFile() string { return o.dir + ".env" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal kills this program.
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
	flags.StringVar(&o.dir, "dir", filepath.Join(root, ".mnemo", "cluster"), "directory for data and logs")
	flags.StringVar(&o.tag, "tag", localTag, "tag of the image, and version of the binary")
	flags.StringVar(&o.overlay, "overlay", "", "changes to the checkout, a file for go build -overlay")
	flags.BoolVar(&o.attached, "attached", false, "delete the cluster when standard input ends")
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
