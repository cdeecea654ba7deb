package account

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Platform is the platform recorded for an import of an account export.
const Platform = "mnemo"

// ErrNotEmpty rejects a restore into an account that already holds data.
var ErrNotEmpty error = fault.New(fault.Invalid, "a Mnemo export can only be restored into an empty account; "+
	"delete everything in this account first, or import the file as another user; nothing was imported")

// Restorer restores an account on behalf of an import run. Every method returns
// chat.ErrLost, and changes nothing, when the run no longer holds the import's
// lease. Conversations are stored like those of other imports, through
// chat.ImportFiles. internal/postgres implements it.
type Restorer interface {
	// Begin creates the buckets, or returns ErrNotEmpty. For an import that was
	// begun before, it returns the progress made so far.
	Begin(ctx context.Context, run chat.ImportRun, buckets []Bucket, conversations int) (Progress, error)
	// Memories stores a batch with its index jobs and returns the new progress.
	// Memories over the quota are skipped.
	Memories(ctx context.Context, run chat.ImportRun, done Progress, batch []RestoredMemory) (Progress, error)
	// Activate activates the import's blocked conversations in the given order
	// while the quota allows, and reports whether any quota is left.
	Activate(ctx context.Context, run chat.ImportRun, ids []string) (bool, error)
}

// Progress is the progress of a restore.
type Progress struct {
	Memories int    `json:"memories"` // processed so far, in order
	LeftOut  int    `json:"leftOut"`  // skipped, of these
	Reason   string `json:"reason"`   // why the first one was skipped
}

// RestoredMemory is a memory to restore.
type RestoredMemory struct {
	Memory
	Earlier []Version // oldest first
	Tokens  int
	Units   []retrieve.Unit // the store sets Owner and Group
}
