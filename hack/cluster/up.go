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
	// keepCommand is the command of the background process that up starts. It is
	// detached from the terminal.
	keepCommand = "keep"
	// self is the name of its process record.
	self = "cluster"
)

// up starts a background process that runs the cluster, and returns when the
// cluster is ready.
func up(ctx context.Context, o options) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	readyReader, readyWriter, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("create pipe: %w", err)
	}
	defer readyReader.Close()
	cmd := exec.Command(exe, keepCommand, "-dir", o.dir, "-tag", o.tag) //nolint:noctx // it outlives this process
	if o.attached {
		cmd.Args, cmd.Stdin = append(cmd.Args, "-attached"), os.Stdin
	}
	cmd.Dir = o.root
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{readyWriter}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start background process: %w", err)
	}
	_ = readyWriter.Close()
	// If it is stopped before it is ready, it removes everything it has created.
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	if message, err := io.ReadAll(readyReader); err != nil || len(message) == 0 {
		_ = cmd.Wait()
		return errors.New("the cluster did not start: see the error above")
	}
	return cmd.Process.Release()
}

// ready notifies the process that waits in up, and redirects output from its
// terminal to the log.
func ready(o options, readyWriter *os.File) error {
	log, err := os.OpenFile(filepath.Join(o.dir, "logs", self+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("redirect output to the log: %w", err)
		}
	}
	if _, err := readyWriter.WriteString("ready"); err != nil {
		return fmt.Errorf("report that the cluster is ready: %w", err)
	}
	return readyWriter.Close()
}

// keep runs the cluster until ctx ends or one of its programs fails.
func keep(ctx context.Context, o options) (err error) {
	// Child processes must not inherit the pipe: up waits until it is closed.
	readyWriter := os.NewFile(3, "up")
	syscall.CloseOnExec(3)
	if o.attached {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, os.Stdin) // returns at the end of input or on an error
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
	if err := ready(o, readyWriter); err != nil {
		return err
	}
	return c.watch(ctx)
}

// occupy locks and empties the directory, because a cluster never reuses data, and
// records this program for `down`.
func occupy(ctx context.Context, o options) (release func() error, err error) {
	// PostgreSQL runs as another user, who must be able to traverse them.
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
		return nil, fmt.Errorf("a cluster is already running in %s: see %s, or delete it with `make cluster-down`", o.dir, o.envFile())
	}
	return func() error {
		// A child process that is being started may have the file open, so closing it is not enough.
		return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
	}, nil
}
