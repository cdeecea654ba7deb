package devenv

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Program is one of Mnemo's programs.
type Program struct {
	// Name is the name of its log and process record.
	Name string
	// Dir is Options.Dir.
	Dir string
	// Path is the executable and Args its arguments. Env is added to the
	// environment of this program.
	Path      string
	Args, Env []string
	// Stdout receives standard output; nil for the log.
	Stdout *os.File
	// Ready returns nil when the program is ready. It is called repeatedly until
	// Limit has passed. If it is nil, the program is ready once it has started.
	Ready func(context.Context) error
	Limit time.Duration
}

// StartProgram starts a program and returns when it is ready.
func StartProgram(ctx context.Context, p Program) (*Process, error) {
	running, err := StartProcess(ctx, ProcessSpec{
		Name: p.Name, Dir: p.Dir, Path: p.Path, Args: p.Args, Env: p.Env, Stdout: p.Stdout, Stop: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	if p.Ready == nil {
		return running, nil
	}
	if err := running.Await(ctx, p.Limit, p.Ready); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return running, nil
}
