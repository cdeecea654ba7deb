package importer

import (
	"context"
	"errors"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Args are the arguments of the job that imports a file.
type Args struct {
	Tenant tenant.ID     `json:"tenant"`
	User   tenant.UserID `json:"user"`
	Import string        `json:"import"`
}

// Kind names the job.
func (Args) Kind() string { return "chat.import" }

// Run is the import of a file that a worker has claimed.
type Run struct {
	tenant.Scope
	ID     string
	Worker string
	// RequestedPlatform is the platform that the user selected; "" to detect it.
	RequestedPlatform string
	SkipInvalid       bool  // of a Mnemo export: omit invalid lines
	Size              int64 // of the file, in bytes
	// Stored reports that the whole file is stored and that only Finish remains.
	// Failure and Warnings are final then.
	Stored   bool
	Failure  string
	Warnings []string
	Notes    chatexport.Notes // of the batches that are stored
	// Attempts counts the workers, including this one, that claimed the import
	// since it last made progress.
	Attempts int
	// Killed counts the workers that ended without releasing the import since it last
	// made progress.
	Killed    int
	StartedAt time.Time

	turn *turn
}

// Claim is the result of claiming an import.
type Claim int

// The results of claiming an import.
const (
	ClaimGranted  Claim = iota
	ClaimBusy           // another worker has it, or another import of the user is running
	ClaimComplete       // nothing is left to do
)

// ErrLeaseLost is returned to a worker that lost its import to another worker.
var ErrLeaseLost = errors.New("another worker has claimed this import")

// Leases ensures that an import has one worker at a time, and a user one running
// import.
type Leases interface {
	// Claim claims an import for the duration of the lease and commits a job that
	// checks on it afterwards. It removes abandoned uploads.
	Claim(ctx context.Context, a Args, worker string, lease time.Duration) (Run, Claim, error)
	// Renew extends the lease; ErrLeaseLost.
	Renew(ctx context.Context, run Run, lease time.Duration) error
	// Waiting reports whether imports of other users can run and have no worker.
	Waiting(ctx context.Context, run Run) (bool, error)
	// Release ends the lease so that another worker can resume. failed counts
	// the attempt against the import.
	Release(ctx context.Context, run Run, failed bool) error
}

// Files reads uploaded files and stores their conversations. All methods except
// ReadChunk and Ledger return ErrLeaseLost, and change nothing, if another worker
// has the import.
type Files interface {
	// ReadChunk returns chunk n of the file, from 0; NotFound.
	ReadChunk(ctx context.Context, run Run, n int) ([]byte, error)
	// Ledger returns the ordinals of the entries that are complete.
	Ledger(ctx context.Context, run Run) ([]int, error)
	// SetContent records the content of the file.
	SetContent(ctx context.Context, run Run, c FileContent) error
	// StoreBatch stores entries with their ledger rows, all or nothing. It
	// returns the rest of the batch: entries that it did not store because they
	// have new or changed messages whose tokens are not counted. New conversations
	// are blocked until Finish. Forbidden when the storage quota is exceeded.
	StoreBatch(ctx context.Context, run Run, b Batch) (uncounted Batch, err error)
	// Finish re-balances the quota, deletes the file and ends the import, which
	// has failed unless failure is "". It is idempotent.
	Finish(ctx context.Context, run Run, failure string, warnings []string) error
}

// FileContent describes the content of a file.
type FileContent struct {
	Platform string
	Total    int // conversations
	Warnings []string
}
