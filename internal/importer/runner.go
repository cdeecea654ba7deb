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

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// defaultLease is after how long without a sign of life a worker counts as
	// dead. It gives one three times within it.
	defaultLease = 15 * time.Second
	// maxAttempts is how many workers may fail on an import without storing
	// anything before it is given up: it may be what kills them.
	maxAttempts = 10
	// soon is when an import that was interrupted goes on.
	soon = time.Second
	// releaseTimeout is how long giving an import back may take.
	releaseTimeout = 5 * time.Second
)

// Archive takes in a file that is none of another platform's exports but our
// own. It reports false, and has done nothing, when it is not. Its errors of
// kind Invalid are final, as those of the importer.
// Warnings are what there is to say about one that it took in.
type Archive func(ctx context.Context, run chat.ImportRun, file io.ReaderAt) (handled bool, warnings []string, err error)

// Config is what a Runner works with. All but Archive, Stop, Lease and Log are
// required.
type Config struct {
	Leases      chat.ImportLeases
	Files       chat.ImportFiles
	CountTokens func(text string) int
	// Archive is asked first; nil when there is none.
	Archive Archive
	// Stop says that the process is about to end: running imports are put off,
	// for another replica to go on with. Nil is never.
	Stop  <-chan struct{}
	Lease time.Duration // whole seconds; 15 s when 0
	Log   *slog.Logger
}

// Runner runs imports, one at a time each.
type Runner struct{ Config }

// New makes a Runner.
func New(c Config) *Runner {
	c.Lease = cmp.Or(c.Lease, defaultLease)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Runner{c}
}

// Run goes on with an import until it is done or has failed for good. When
// there is more to be done, by this worker or by another one, it returns after
// how long to look again. Errors are temporary.
func (r *Runner) Run(ctx context.Context, a chat.ImportArgs) (again time.Duration, err error) {
	run, got, err := r.Leases.Claim(ctx, a, uuid.NewString(), r.Lease)
	switch {
	case err != nil:
		return 0, err
	case got == chat.ClaimOver:
		return 0, nil
	case got == chat.ClaimBusy:
		return r.Lease, nil
	}
	log := r.Log.With("import", run.ID, "tenant", string(run.Tenant))
	log.InfoContext(ctx, "import goes on", "bytes", run.Size, "attempt", run.Attempts, "landed", run.Landed)
	err = r.hold(ctx, run)
	switch {
	case err == nil:
		log.InfoContext(ctx, "import has ended")
		return 0, nil
	case errors.Is(err, chat.ErrLost):
		log.WarnContext(ctx, "import was lost to another worker", "error", err)
		return r.Lease, nil
	}
	stopped := errors.Is(err, errStopped) || ctx.Err() != nil
	r.release(ctx, run, !stopped && !fault.Is(err, fault.Unavailable), log)
	if !stopped {
		return 0, err
	}
	return soon, nil
}

// errStopped is an import that was put off.
var errStopped = errors.New("the process is about to end")

// hold works on an import and keeps its lease meanwhile. What goes on is
// stopped when the lease is lost or the process ends.
func (r *Runner) hold(ctx context.Context, run chat.ImportRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { cancel(r.keep(ctx, run)) })
	err := r.work(ctx, run)
	cause := context.Cause(ctx)
	cancel(nil)
	wait.Wait()
	if err != nil && cause != nil {
		return cause // what failed did so because of it
	}
	return err
}

// keep renews the lease until it is lost or the work is over, and returns why
// the work must stop.
func (r *Runner) keep(ctx context.Context, run chat.ImportRun) error {
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
		// A store that is away is noticed by the work itself.
		if err := r.Leases.Keep(ctx, run, r.Lease); errors.Is(err, chat.ErrLost) {
			return err
		}
	}
}

// release gives the import back, so that nobody waits for the lease to end.
func (r *Runner) release(ctx context.Context, run chat.ImportRun, blamed bool, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := r.Leases.Release(ctx, run, blamed); err != nil {
		log.WarnContext(ctx, "import was not given back: its lease runs out", "error", err)
	}
}

// work does what is left of an import.
func (r *Runner) work(ctx context.Context, run chat.ImportRun) error {
	if run.Landed {
		return r.Files.Finish(ctx, run, run.Failure, run.Warnings)
	}
	if run.Attempts > maxAttempts {
		return r.Files.Finish(ctx, run, fmt.Sprintf("This file could not be imported in %d attempts; whoever runs this server finds the reason in its log.", maxAttempts), nil)
	}
	warnings, err := r.read(ctx, run)
	if err != nil && !fault.Is(err, fault.Invalid) {
		return err
	}
	return r.Files.Finish(ctx, run, sentence(err), warnings)
}

// read stores what the file holds and returns what there is to say about it.
// An Invalid error is what is wrong with the file.
func (r *Runner) read(ctx context.Context, run chat.ImportRun) ([]string, error) {
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

// sentence is what a user is told of a file that cannot be read.
func sentence(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}
	return ""
}
