package account

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// Platform is what an import of an account is said to come from.
const Platform = "mnemo"

// ErrNotEmpty is what an account that holds something answers a restore.
var ErrNotEmpty error = fault.New(fault.Invalid, "this is an export of Mnemo, which goes into an empty account only, and this one is not: "+
	"delete everything in it first (DELETE /api/account), or import the file as another user; nothing was imported")

// Restorer puts an account back, for an import that is the caller's: all of it
// gives chat.ErrLost when it is another worker's, and then changes nothing.
// Conversations go in as those of other imports, by chat.ImportFiles.
// internal/postgres implements it.
type Restorer interface {
	// Begin checks that the account is empty and makes its buckets; ErrNotEmpty.
	// It returns how far an import is that was begun before.
	Begin(ctx context.Context, run chat.ImportRun, buckets []Bucket, conversations int) (Progress, error)
	// Memories stores a batch with its index jobs and returns how far it is
	// then. Those that a quota has no room for are left out.
	Memories(ctx context.Context, run chat.ImportRun, done Progress, batch []RestoredMemory) (Progress, error)
	// Activate gives room to those of the import's conversations that wait for
	// it, in the order given, and reports whether there is room left.
	Activate(ctx context.Context, run chat.ImportRun, ids []string) (bool, error)
}

// Progress is how far a restore is.
type Progress struct {
	Memories int    `json:"memories"` // that are done, in their order
	LeftOut  int    `json:"leftOut"`  // of these
	Reason   string `json:"reason"`   // why the first was left out
}

// RestoredMemory is a memory as it is put back.
type RestoredMemory struct {
	Memory
	Earlier []Version // oldest first
	Tokens  int
	Units   []retrieve.Unit // Owner and Group are given by the store
}
