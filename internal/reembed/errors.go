package reembed

import "github.com/mnemo-dev/mnemo/internal/fault"

var (
	// ErrInProgress refuses a migration while another one is unfinished.
	ErrInProgress error = fault.New(fault.Conflict, "a migration is in progress: see `mnemo embeddings status`")
	// ErrNone means that no migration was ever started.
	ErrNone error = fault.New(fault.NotFound, "there has been no embedding migration")
	// ErrRolledBack means that a rollback began after the migration was read.
	ErrRolledBack error = fault.New(fault.Conflict, "the embedding migration was rolled back")
	// ErrIncomplete means that a target was lost after it was complete.
	ErrIncomplete error = fault.New(fault.Conflict, "the placement in the next generation is not complete")
)

// NotReversible refuses the rollback of a migration in a phase.
func NotReversible(p Phase) error {
	return fault.New(fault.Conflict, "the migration is %s and can no longer be rolled back: migrate to the previous model instead", p)
}
