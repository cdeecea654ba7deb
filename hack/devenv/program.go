package devenv

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Program is a program of our own to run beside the parts.
type Program struct {
	// Name is that of its log and process record.
	Name string
	// Dir is Options.Dir of the parts.
	Dir string
	// Path is the executable, Args its arguments; Env is added to ours.
	Path      string
	Args, Env []string
	// Ready returns nil when the program does its work; it is asked again and
	// again for as long as Limit. Nil: it is ready when it was started.
	Ready func(context.Context) error
	Limit time.Duration
}

// Process is a running Program.
type Process struct{ process *process }

// StartProgram runs a program and returns when it is ready.
func StartProgram(ctx context.Context, p Program) (*Process, error) {
	process, err := startProcess(ctx, processSpec{
		name: p.Name, dir: p.Dir, path: p.Path, args: p.Args, env: p.Env, stop: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	running := &Process{process: process}
	if p.Ready == nil {
		return running, nil
	}
	if err := process.await(ctx, p.Limit, p.Ready); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return running, nil
}

// Stop asks the program to end, and kills it after 30 s.
func (p *Process) Stop() error { return p.process.stopNow(30 * time.Second) }

// Done is closed when the program has ended; Err tells how.
func (p *Process) Done() <-chan struct{} { return p.process.done }

// Err says how a program that has ended did.
func (p *Process) Err() error { return p.process.report() }

// Done is closed when the server has ended; Err tells how.
func (p *Postgres) Done() <-chan struct{} { return p.process.done }

// Err says how a server that has ended did.
func (p *Postgres) Err() error { return p.process.report() }

// Done is closed when the server, as last started, has ended; Err tells how.
func (m *Milvus) Done() <-chan struct{} { return m.process.done }

// Err says how a server that has ended did.
func (m *Milvus) Err() error { return m.process.report() }

// Done is closed when the API server has ended; Err tells how.
func (k *Kube) Done() <-chan struct{} { return k.apiserver.done }

// Err says how an API server that has ended did.
func (k *Kube) Err() error { return k.apiserver.report() }
