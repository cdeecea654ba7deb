package chat

import "github.com/mnemo-dev/mnemo/internal/fault"

// ErrStoredAgain refuses to undo a deletion.
var ErrStoredAgain error = fault.New(fault.Conflict, "the deletion cannot be undone: a deleted conversation has been stored again")
