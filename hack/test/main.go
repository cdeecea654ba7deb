// Command test starts the dependencies of tests, runs a command with their
// addresses in its environment, and stops them:
//
//	go run ./hack/test -- go test ./internal/postgres/...
//
// It exits with the command's exit code. The last line of output is that of the
// command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func main() {
	only := flag.String("only", strings.Join(dependencies, ","), "dependencies to start, separated by commas")
	node := flag.Bool("node", false, "build the programs of a Kubernetes node first, so that no test competes with their compilation")
	durable := flag.Bool("durable", false, "write data to the disk as in production, for measurements of writes")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/test [-only postgres,milvus,kube,model,chromium,oidc,mnemo] [-node] [-durable] -- command [argument...]")
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, config{strings.Split(*only, ","), *node, *durable}, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hack/test:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// config says what to start.
type config struct {
	names         []string // of dependencies
	node, durable bool
}

// run starts the dependencies, runs the command and returns its exit code.
func run(ctx context.Context, c config, command []string) (code int, err error) {
	dir, err := os.MkdirTemp("", "mnemo-test-")
	if err != nil {
		return 1, fmt.Errorf("create run directory: %w", err)
	}
	// For root PostgreSQL runs as another user, who must be able to traverse it.
	if err := os.Chmod(dir, 0o711); err != nil {
		return 1, fmt.Errorf("change mode of run directory: %w", err)
	}
	progress := devenv.NewProgress(os.Stderr)
	progress.Printf("==> Logs: %s/logs (kept if the run fails)", dir)
	s := &started{}
	defer func() { err = errors.Join(err, s.stop(), clean(dir, code == 0 && err == nil)) }()
	if err := s.start(ctx, dir, progress, c); err != nil {
		return 1, err
	}
	if c.node {
		if err := prepareNode(ctx, progress); err != nil {
			return 1, err
		}
	}
	progress.Printf("==> %d dependencies are ready: %s", len(c.names), strings.Join(c.names, ", "))
	return execute(ctx, command, s.env)
}

// execute runs the command with env added to the environment. When ctx ends, it
// sends the command SIGTERM and waits for it.
func execute(ctx context.Context, command, env []string) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	return 0, nil
}
