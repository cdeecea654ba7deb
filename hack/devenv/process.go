package devenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ProcessSpec describes a process.
type ProcessSpec struct {
	Name    string // of the log and the process record
	Dir     string // Options.Dir: holds logs/ and pids/
	Path    string
	Args    []string
	Env     []string // in addition to that of this program
	Stdout  *os.File // receives standard output; nil for the log
	WorkDir string
	User    *syscall.Credential
	// Stop is the signal for a graceful shutdown. The kernel also sends it when
	// this program dies.
	Stop syscall.Signal
	// Thread is the thread to start the process from, for its network namespace;
	// nil for that of this program.
	Thread *Thread
}

// Process is a running child.
type Process struct {
	spec ProcessSpec
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // result of Wait; read after done
}

// StartProcess starts a process in its own process group, so that Ctrl-C in a
// terminal reaches only this program, which then stops its processes in order.
// An orphaned process of the same name from a crashed run is stopped first.
func StartProcess(ctx context.Context, spec ProcessSpec) (*Process, error) {
	if err := stopRecorded(ctx, RecordPath(spec.Dir, spec.Name), OrphanGrace); err != nil {
		return nil, err
	}
	log, err := openLog(spec.Dir, spec.Name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:noctx // the process outlives ctx
	cmd.Dir = spec.WorkDir
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = cmp.Or(spec.Stdout, log), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: spec.Stop, Credential: spec.User}
	on := spec.Thread
	if on == nil {
		on = starter()
	}
	on.Do(func() { err = cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	// A process that has already ended needs no record; Await returns the reason.
	if err := writeRecord(spec, cmd.Process.Pid); err != nil && !errors.Is(err, ErrEnded) {
		_ = p.Kill()
		return nil, err
	}
	return p, nil
}

// StopWithin signals the process to stop, kills it after the grace period, and
// returns when it has ended.
func (p *Process) StopWithin(grace time.Duration) error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(p.spec.Stop)
	select {
	case <-p.done:
	case <-time.After(grace):
		return p.Kill()
	}
	return p.removeRecord()
}

// Kill kills the process and returns when it has ended.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.spec.Name, err)
	}
	<-p.done
	return p.removeRecord()
}

func (p *Process) removeRecord() error {
	err := os.Remove(RecordPath(p.spec.Dir, p.spec.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove process record: %w", err)
	}
	return nil
}

// Await calls ready about every 50 ms until it returns nil. It returns an error
// with the path of the log if the process ends, limit has passed or ctx ends.
func (p *Process) Await(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.Err()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s, see its log %s: %w", p.spec.Name, limit, p.logPath(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop signals the process to stop and kills it after 30 s.
func (p *Process) Stop() error { return p.StopWithin(30 * time.Second) }

// Done is closed when the process has ended; Err returns the reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the reason why the process ended unexpectedly, with the end of its
// log.
func (p *Process) Err() error {
	reason := p.err
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended unexpectedly (%w); the end of its log %s:\n%s",
		p.spec.Name, reason, p.logPath(), lastLines(p.logPath(), 8))
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Name returns the name of the process record.
func (p *Process) Name() string { return p.spec.Name }

func (p *Process) logPath() string { return logPath(p.spec.Dir, p.spec.Name) }

func logPath(dir, name string) string { return filepath.Join(dir, "logs", name+".log") }

// openLog opens a log for appending and rotates it first if it is large.
func openLog(dir, name string) (*os.File, error) {
	path := logPath(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 16<<20 {
		_ = os.Rename(path, path+".old")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}
