package chat

import (
	"context"
	"errors"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ImportRun is an import of a file that one worker has in hand.
type ImportRun struct {
	tenant.Scope
	ID     string
	Worker string // who has it
	Asked  string // the platform the user named; "" to find out
	Size   int64  // of the file, bytes
	// Landed says that all of the file is stored and only the rest is to be
	// done: room, chunks, status. Failure and Warnings are known then.
	Landed   bool
	Failure  string
	Warnings []string
	Notes    []byte // JSON that Batch.AddNotes made; "{}" at first
	// Attempts is how many workers have had it, this one included, since
	// something of it was stored.
	Attempts  int
	StartedAt time.Time
}

// Claim says whether a worker got an import.
type Claim int

// What comes of claiming an import.
const (
	ClaimGot  Claim = iota // it is the caller's
	ClaimBusy              // another worker has it, or another import of the user
	ClaimOver              // there is nothing to do any more
)

// ErrLost is what a worker hears that lost its import to another one.
var ErrLost = errors.New("another worker has taken this import over")

// ImportLeases sees to it that each import has one worker at a time, and each
// user one import. internal/postgres implements it.
type ImportLeases interface {
	// Claim takes an import for the lease, and commits a job that looks after it
	// when the lease is over. It clears away uploads that were abandoned.
	Claim(ctx context.Context, a ImportArgs, worker string, lease time.Duration) (ImportRun, Claim, error)
	// Keep renews the lease; ErrLost.
	Keep(ctx context.Context, run ImportRun, lease time.Duration) error
	// Release gives the import back for the next worker to go on with. blamed
	// says that it may be the import itself that cannot be worked on.
	Release(ctx context.Context, run ImportRun, blamed bool) error
}

// ImportFiles is where an import's file is read and its conversations go.
// internal/postgres implements it. All but Chunk and Ledger give ErrLost when
// the import is another worker's, and then change nothing.
type ImportFiles interface {
	// Chunk returns chunk n of the file, from 0; NotFound.
	Chunk(ctx context.Context, run ImportRun, n int) ([]byte, error)
	// Ledger returns the ordinals that are done.
	Ledger(ctx context.Context, run ImportRun) ([]int, error)
	// Describe notes what the file is.
	Describe(ctx context.Context, run ImportRun, f FileContent) error
	// Land stores a batch with its rows of the ledger, all or nothing. What is
	// new lands blocked. One that there is no storage for fails.
	Land(ctx context.Context, run ImportRun, b Batch, t Tools) error
	// Finish grants the conversations room, drops the chunks and ends the
	// import: failed for the reason if there is one. It may be repeated.
	Finish(ctx context.Context, run ImportRun, failure string, warnings []string) error
}

// FileContent is what a file was found to be.
type FileContent struct {
	Platform string
	Total    int // conversations
	Warnings []string
}

// EntryOutcome is what became of a conversation of a file.
type EntryOutcome string

// The outcomes, as the ledger has them.
const (
	EntryImported  EntryOutcome = "imported"
	EntryUpdated   EntryOutcome = "updated"
	EntryUnchanged EntryOutcome = "unchanged"
	EntrySkipped   EntryOutcome = "skipped"
	EntryFailed    EntryOutcome = "failed"
)

// Entry is what a file holds at an ordinal.
type Entry struct {
	Ordinal int
	// Name is what the conversation is called in errors.
	Name string
	// Outcome is EntrySkipped or EntryFailed with its Reason, or "" for the
	// Upsert to be stored. Zero times of it are those of the import.
	Outcome EntryOutcome
	Reason  string
	Upsert  Upsert
	// Restored is what a conversation was that is put back; nil for others.
	Restored *Restored
}

// Restored is what a conversation was before it was put back.
type Restored struct {
	ID       string // unique within its user
	Excluded bool
	Pinned   bool
}

// Batch is what is stored at once.
type Batch struct {
	Entries []Entry
	// AddNotes adds what was counted on the way to what the import has counted.
	AddNotes func(before []byte) ([]byte, error)
}

// Tools are what storing a conversation takes.
type Tools struct {
	CountTokens func(text string) int
	Build       UnitBuilder
}
