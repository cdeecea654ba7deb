package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// defaultLease is how long an import stays claimed after its worker's last
	// heartbeat. A worker renews it three times within that time.
	defaultLease = 15 * time.Second
	// maxAttempts is the number of workers that may fail on an import without
	// progress before it fails: its file may be what crashes them.
	maxAttempts = 10
	// maxKilled is the number of workers that may be killed by an import before it
	// fails, so that a file that needs too much memory does not end every replica.
	maxKilled = 2
	// resumeDelay is when an interrupted import is resumed.
	resumeDelay = time.Second
	// releaseTimeout limits the release of an import.
	releaseTimeout = 5 * time.Second
)

// Archive imports a file that is a Mnemo export. handled is false, and nothing
// has changed, if the file is anything else. Invalid errors are final and are
// shown to the user, as are the warnings.
type Archive func(ctx context.Context, run Run, file io.ReaderAt) (handled bool, warnings []string, err error)

// Config configures a Runner. Leases, Files and CountTokens are required.
type Config struct {
	Leases      Leases
	Files       Files
	CountTokens func(text string) int
	// Archive is tried before the formats of other platforms; may be nil.
	Archive Archive
	// Stop is closed when the process shuts down. Running imports are then
	// released for another replica. May be nil.
	Stop  <-chan struct{}
	Lease time.Duration // whole seconds; default 15 s
	// Turn is how long an import runs before it yields to those of other users; default
	// 10 s.
	Turn time.Duration
	Log  *slog.Logger
}

// Runner runs imports.
type Runner struct{ Config }

// New returns a Runner.
func New(c Config) *Runner {
	c.Lease, c.Turn = cmp.Or(c.Lease, defaultLease), cmp.Or(c.Turn, defaultTurn)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{c}
}

// Run runs an import until it is done or failed, or yields to imports of other users. If
// work remains, for this worker or another one, it returns the time after which to call it again. Errors are
// temporary.
func (r *Runner) Run(ctx context.Context, a Args) (again time.Duration, err error) {
	run, claim, err := r.Leases.Claim(ctx, a, uuid.NewString(), r.Lease)
	switch {
	case err != nil:
		return 0, err
	case claim == ClaimComplete:
		return 0, nil
	case claim == ClaimBusy:
		return r.Lease, nil
	}
	log := r.Log.With("import", run.ID, "tenant", string(run.Tenant))
	log.InfoContext(ctx, "resuming import", "bytes", run.Size, "attempt", run.Attempts, "stored", run.Stored)
	run.turn = newTurn(r.Leases, run, r.Turn)
	err = r.runLeased(ctx, run)
	switch {
	case err == nil:
		log.InfoContext(ctx, "import finished")
		return 0, nil
	case errors.Is(err, ErrLeaseLost):
		log.WarnContext(ctx, "import lease lost", "error", err)
		r.release(ctx, run, false, log)
		return r.Lease, nil
	}
	if errors.Is(err, errTurnOver) {
		log.InfoContext(ctx, "import yields to others")
		r.release(ctx, run, false, log)
		return turnPause, nil
	}
	stopped := errors.Is(err, errStopped) || ctx.Err() != nil
	r.release(ctx, run, !stopped && !fault.Is(err, fault.Unavailable), log)
	if !stopped {
		return 0, err
	}
	return resumeDelay, nil
}

// errStopped interrupts an import when the process shuts down.
var errStopped = errors.New("shutting down")

// runLeased runs an import while renewing its lease. It stops when the lease is
// lost or the process shuts down.
func (r *Runner) runLeased(ctx context.Context, run Run) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { cancel(r.renew(ctx, run)) })
	err := r.work(ctx, run)
	cause := context.Cause(ctx)
	cancel(nil)
	wait.Wait()
	if err != nil && cause != nil {
		return cause // err is a consequence of the cancellation
	}
	return err
}

// renew renews the lease until the context ends, and returns the reason to stop
// the import.
func (r *Runner) renew(ctx context.Context, run Run) error {
	tick := time.NewTicker(r.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.Stop:
			return errStopped
		case <-tick.C:
		}
		// The import itself detects an unavailable store.
		if err := r.Leases.Renew(ctx, run, r.Lease); errors.Is(err, ErrLeaseLost) {
			return err
		}
	}
}

// release releases the import, so that no worker waits for the lease to expire, and the worker does not count as killed. It
// waits for an unavailable store unless the process shuts down.
func (r *Runner) release(ctx context.Context, run Run, failed bool, log *slog.Logger) {
	for {
		err := r.releaseOnce(ctx, run, failed)
		if err == nil {
			return
		}
		log.WarnContext(ctx, "import not released", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-r.Stop:
			return
		case <-time.After(resumeDelay):
		}
	}
}

func (r *Runner) releaseOnce(ctx context.Context, run Run, failed bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return r.Leases.Release(ctx, run, failed)
}

// work does the remaining work of an import.
func (r *Runner) work(ctx context.Context, run Run) error {
	if run.Stored {
		return r.Files.Finish(ctx, run, run.Failure, run.Warnings)
	}
	switch {
	case run.Killed >= maxKilled:
		return r.Files.Finish(ctx, run, workersKilled, nil)
	case run.Attempts > maxAttempts:
		return r.Files.Finish(ctx, run, tooManyAttempts, nil)
	}
	warnings, err := r.read(ctx, run)
	if err != nil && !fault.Is(err, fault.Invalid) {
		return err
	}
	return r.Files.Finish(ctx, run, message(err), warnings)
}

// tooManyAttempts is the failure of an import that every worker failed on.
var tooManyAttempts = fmt.Sprintf("The file could not be imported after %d attempts. Ask your administrator to check the server's log.", maxAttempts)

// workersKilled is the failure of an import whose workers were killed.
var workersKilled = fmt.Sprintf("The server stopped %d times while it imported the file, which may need too much memory. "+
	"Import the file again, in smaller parts if possible, or ask your administrator to check the server's log.", maxKilled)

// read stores the content of the file and returns the warnings for the user. An
// Invalid error describes what is wrong with the file.
func (r *Runner) read(ctx context.Context, run Run) ([]string, error) {
	f := openFile(ctx, r.Files, run)
	defer f.close()
	if r.Archive != nil {
		handled, warnings, err := r.Archive(ctx, run, f)
		if handled || err != nil {
			return warnings, f.cause(err)
		}
	}
	warnings, err := r.readExport(ctx, run, f)
	return warnings, f.cause(err)
}
