package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

const (
	// keepCommand is up's other half: the program that stays and holds the
	// cluster, out of the terminal's reach.
	keepCommand = "keep"
	// self is the name under which it is recorded.
	self = "cluster"
)

// up starts a program that brings the cluster up and holds it, and returns when
// all is ready.
func up(ctx context.Context, o options) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	tell, told, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("listen to the cluster: %w", err)
	}
	defer tell.Close()
	cmd := exec.Command(exe, keepCommand, "-dir", o.dir, "-tag", o.tag) //nolint:noctx // it outlives us
	if o.attached {
		cmd.Args, cmd.Stdin = append(cmd.Args, "-attached"), os.Stdin
	}
	cmd.Dir = o.root
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{told}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the cluster's program: %w", err)
	}
	_ = told.Close()
	// Told to stop before it is ready, it takes down what it has.
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	if said, err := io.ReadAll(tell); err != nil || len(said) == 0 {
		_ = cmd.Wait()
		return errors.New("the cluster is not up: the reason is above")
	}
	return cmd.Process.Release()
}

// ready tells the program that waits in up, and leaves its terminal for the log.
func ready(o options, told *os.File) error {
	log, err := os.OpenFile(filepath.Join(o.dir, "logs", self+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("write to the log: %w", err)
		}
	}
	if _, err := told.WriteString("ready"); err != nil {
		return fmt.Errorf("tell that the cluster is ready: %w", err)
	}
	return told.Close()
}

// keep brings the cluster up and holds it until ctx ends or one of its programs does.
func keep(ctx context.Context, o options) (err error) {
	// What up gave us is not for the programs we start: it waits until it is closed.
	told := os.NewFile(3, "up")
	syscall.CloseOnExec(3)
	if o.attached {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, os.Stdin) // an error ends it as well
		}()
	}
	release, err := occupy(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	c := newCluster(o)
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped before the cluster was up")
		}
		return fmt.Errorf("%w\n(logs are in %s/logs)", err, o.dir)
	}
	defer func() { err = errors.Join(err, os.Remove(o.envFile())) }()
	if err := ready(o, told); err != nil {
		return err
	}
	return c.watch(ctx)
}

// occupy makes the directory ours and empty: a cluster starts anew each time.
func occupy(ctx context.Context, o options) (release func() error, err error) {
	// As root PostgreSQL runs as another user, who must pass through.
	for _, dir := range []string{filepath.Dir(o.dir), o.dir} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
	}
	unlock, err := lock(o)
	if err != nil {
		return nil, err
	}
	if err := clean(ctx, o); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.dir, "logs"), 0o711); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := devenv.CheckSpace(o.dir, space); err != nil {
		return nil, fmt.Errorf("the cluster %w", err)
	}
	forget, err := devenv.RecordSelf(o.dir, self)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(forget(), unlock()) }, nil
}

// lock locks the directory. The lock file is never removed: a process that waited for
// a removed file would lock nothing.
func lock(o options) (unlock func() error, err error) {
	file, err := os.OpenFile(o.dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("a cluster runs on %s already: . %s says where, `make cluster-down` takes it down", o.dir, o.envFile())
	}
	return file.Close, nil
}
