// Command up runs Mnemo and its dependencies on this machine:
//
//	go run ./hack/up up      runs it until Ctrl-C
//	go run ./hack/up down    stops another run, or the processes of a crashed one
//	go run ./hack/up reset   does the same and deletes the data
//
// It writes to .mnemo in the checkout and to the cache of hack/devenv. Scripts read
// .mnemo/up.env, which exists while the platform runs. down and reset also apply to hack/dev.
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
)

const usage = `usage: go run ./hack/up up [-port 8080] | down | reset   [-dir .mnemo]`

// options are the command-line options.
type options struct {
	root string // of the checkout
	dir  string // of everything this run writes
	port int    // of the API; 0 for the default or, if that is in use, a free one
}

// ofDev returns the options of hack/dev, whose data is separate.
func (o options) ofDev() options {
	o.dir = filepath.Join(o.dir, "dev")
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal kills this program.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
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
	flags.StringVar(&o.dir, "dir", filepath.Join(root, ".mnemo"), "directory for data and logs")
	flags.IntVar(&o.port, "port", 0, "port of the API")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("PORT must be 1 to 65535, not %d", o.port)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	switch args[0] {
	case "up":
		return up(ctx, o)
	case "down":
		return down(ctx, o)
	case "reset":
		return reset(ctx, o)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}
