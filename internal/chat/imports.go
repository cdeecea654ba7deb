package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ImportStatus says how far an import is.
type ImportStatus string

// The states of an import. Done means that everything is stored and found by
// words; embeddings may still follow.
const (
	ImportQueued  ImportStatus = "queued"
	ImportRunning ImportStatus = "running"
	ImportDone    ImportStatus = "done"
	ImportFailed  ImportStatus = "failed"
)

// Import is what became of a file, or of one conversation sent online.
// Imported, Updated, Skipped and Failed are of its Total; they add up to it
// when it is done.
type Import struct {
	ID       string
	Platform string // "" until it is known
	Status   ImportStatus
	Total    int // conversations in the file; 0 until they were counted
	Imported int // new ones
	Updated  int // those that gained or changed messages
	Skipped  int // Unchanged ones, empty ones and second copies
	// Unchanged ones were stored already, as they are.
	Unchanged int
	Blocked   int // of Imported and Updated, those that wait for room now
	Failed    int
	// Indexed ones have nothing left to embed; those that failed, were skipped
	// or are not active never had. It gets to Total.
	Indexed    int
	Errors     []ImportError // the first hundred, and why the whole file failed
	Warnings   []string      // sentences on what was left out or made up
	StartedAt  time.Time
	FinishedAt time.Time // zero until it is done or failed
	// Version is raised whenever anything of it changes but Blocked.
	Version int64
}

// ImportError is why a conversation was not imported.
type ImportError struct {
	Conversation string `json:"conversation"` // its id on the platform, or where it is; "" for the file as a whole
	Error        string `json:"error"`
}

// Settled reports whether nothing of the import goes on any more, embedding
// included.
func (i Import) Settled() bool {
	return i.Status == ImportFailed || i.Status == ImportDone && i.Indexed >= i.Total
}

// ImportStore tells of imports. internal/postgres implements it.
type ImportStore interface {
	// GetImport returns an import as it is now; NotFound.
	GetImport(ctx context.Context, scope tenant.Scope, id string) (Import, error)
	// ListImports returns imports of files, newest first, and how many there are in all.
	ListImports(ctx context.Context, scope tenant.Scope, offset, limit int) ([]Import, int, error)
}

// GetImport returns an import as it is now; NotFound.
func (s *Service) GetImport(ctx context.Context, who tenant.Identity, id string) (Import, error) {
	unknown := fault.New(fault.NotFound, "no import has this importId")
	if len(resolvable([]string{id})) == 0 {
		return Import{}, unknown
	}
	i, err := s.Imports.GetImport(ctx, who.Scope, id)
	if fault.Is(err, fault.NotFound) {
		return Import{}, unknown
	}
	if err != nil {
		return Import{}, fmt.Errorf("read import: %w", err)
	}
	return i, nil
}

// ListImports returns a page of the imports of files, newest first, and how
// many there are in all. limit is 1 to MaxPageSize.
func (s *Service) ListImports(ctx context.Context, who tenant.Identity, offset, limit int) ([]Import, int, error) {
	if err := (ConversationFilter{Offset: offset, Limit: limit}).Validate(); err != nil {
		return nil, 0, err
	}
	list, total, err := s.Imports.ListImports(ctx, who.Scope, offset, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("list imports: %w", err)
	}
	return list, total, nil
}

// ImportArgs are the arguments of the job that imports a file.
type ImportArgs struct {
	Tenant tenant.ID     `json:"tenant"`
	User   tenant.UserID `json:"user"`
	Import string        `json:"import"`
}

// Kind names the job.
func (ImportArgs) Kind() string { return "chat.import" }
