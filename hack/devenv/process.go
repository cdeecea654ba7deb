package devenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// processSpec says how to run one process of a part.
type processSpec struct {
	name string // of the log and of the process record
	dir  string // Options.Dir: holds logs/ and pids/
	path string
	args []string
	env  []string // added to ours
	cwd  string
	user *syscall.Credential
	// stop is the signal that ends the process in order; it is also sent when
	// our program dies.
	stop syscall.Signal
	// on is the thread to start from, for its network namespace; nil for ours.
	on *thread
}

// process is a running child.
type process struct {
	spec processSpec
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; read after done
}

// startProcess runs a process in its own process group, so that Ctrl-C in a
// terminal reaches our program alone, which then stops its parts in order. A
// process of the same name that a crashed run left behind is stopped first.
func startProcess(ctx context.Context, spec processSpec) (*process, error) {
	if err := stopRecorded(ctx, recordPath(spec.dir, spec.name), orphanGrace); err != nil {
		return nil, err
	}
	log, err := openLog(spec.dir, spec.name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(spec.path, spec.args...) //nolint:noctx // it outlives ctx, which is for starting
	cmd.Dir = spec.cwd
	cmd.Env = append(os.Environ(), spec.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: spec.stop, Credential: spec.user}
	on := spec.on
	if on == nil {
		on = starter()
	}
	on.do(func() { err = cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.name, err)
	}
	p := &process{spec: spec, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	// One that ended at once needs no record; await tells why it did.
	if err := writeRecord(spec, cmd.Process.Pid); err != nil && !errors.Is(err, errEnded) {
		_ = p.kill()
		return nil, err
	}
	return p, nil
}

// stopNow asks the process to end, kills it when it has not after grace, and
// returns when it is gone.
func (p *process) stopNow(grace time.Duration) error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(p.spec.stop)
	select {
	case <-p.done:
	case <-time.After(grace):
		return p.kill()
	}
	return p.forget()
}

// kill ends the process at once and returns when it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.spec.name, err)
	}
	<-p.done
	return p.forget()
}

func (p *process) forget() error {
	err := os.Remove(recordPath(p.spec.dir, p.spec.name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove process record: %w", err)
	}
	return nil
}

// await calls ready about every 50 ms until it returns nil. It gives up when
// the process ends, when limit has passed, or with ctx, and then says where the
// log is.
func (p *process) await(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.report()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s, see its log %s: %w", p.spec.name, limit, p.logPath(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// report is the error for a process that ended without being asked to.
func (p *process) report() error {
	how := p.err
	if how == nil {
		how = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended by itself (%w); the end of its log %s:\n%s",
		p.spec.name, how, p.logPath(), lastLines(p.logPath(), 8))
}

func (p *process) logPath() string { return logPath(p.spec.dir, p.spec.name) }

func logPath(dir, name string) string { return filepath.Join(dir, "logs", name+".log") }

// openLog opens a part's log for appending; a log that has grown large is set
// aside once.
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
