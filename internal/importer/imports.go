package importer

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Status is the state of an import.
type Status string

// The states of an import. When an import is done, keyword search finds all its
// conversations; semantic search may still be indexing.
const (
	Queued  Status = "queued"
	Running Status = "running"
	Done    Status = "done"
	Failed  Status = "failed"
)

// Import is the import of a file, or of one conversation that was sent online.
// Imported, Updated, Skipped and Failed add up to Total when it is done.
type Import struct {
	ID         string
	File       string // the name of the file; "" if unknown
	Platform   string // "" until detected
	Status     Status
	Total      int // conversations in the file; 0 until they are counted
	Imported   int // new conversations
	Updated    int // conversations with new or changed messages
	Skipped    int // unchanged and empty conversations, and duplicates
	Unchanged  int // of Skipped
	Blocked    int // of Imported and Updated: now over quota
	Failed     int
	Indexed    int          // conversations with nothing left to embed; reaches Total
	Errors     []EntryError // the first hundred, and the reason why the whole file failed
	Warnings   []string     // for end users
	StartedAt  time.Time
	FinishedAt time.Time // zero until it is done or failed
	// Version increases with every change except of Blocked.
	Version int64
}

// ErrInterrupted is the reason why an unfinished import failed after a restore from a backup.
var ErrInterrupted error = fault.New(fault.Unavailable, "the import was interrupted; import the file again")

// EntryError is the reason why a conversation was not imported.
type EntryError struct {
	Conversation string `json:"conversation"` // its id on the platform, or its position; "" for the whole file
	Error        string `json:"error"`
}

// Settled reports whether the import, including indexing, is complete.
func (i Import) Settled() bool {
	return i.Status == Failed || i.Status == Done && i.Indexed >= i.Total
}

// Store reads imports.
type Store interface {
	// GetImport returns an import; NotFound.
	GetImport(ctx context.Context, scope tenant.Scope, id string) (Import, error)
	// ListImports returns imports of files, newest first, and the total number.
	ListImports(ctx context.Context, scope tenant.Scope, offset, limit int) ([]Import, int, error)
}

// Service reads imports and accepts files to import.
type Service struct {
	Imports Store
	Uploads UploadStore
	Limits  UploadLimits
}

// Get returns an import; NotFound.
func (s *Service) Get(ctx context.Context, who tenant.Identity, id string) (Import, error) {
	i, err := s.Imports.GetImport(ctx, who.Scope, id)
	if fault.Is(err, fault.NotFound) {
		return Import{}, fault.New(fault.NotFound, "import not found")
	}
	if err != nil {
		return Import{}, fmt.Errorf("read import: %w", err)
	}
	return i, nil
}

// List returns a page of the imports of files, newest first, and the total
// number. limit is 1 to chat.MaxPageSize.
func (s *Service) List(ctx context.Context, who tenant.Identity, offset, limit int) ([]Import, int, error) {
	if err := (chat.ConversationFilter{Offset: offset, Limit: limit}).Validate(); err != nil {
		return nil, 0, err
	}
	list, total, err := s.Imports.ListImports(ctx, who.Scope, offset, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("list imports: %w", err)
	}
	return list, total, nil
}
