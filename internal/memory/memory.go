package memory

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// MaxText is the maximum length of a memory, in bytes.
const MaxText = 32768

// MaxCount is the maximum number of memories in one page; higher counts are clamped.
const MaxCount = 1000

// MaxBulk is the maximum number of ids in one bulk delete.
const MaxBulk = 10000

// DefaultBucket is the name of every user's initial bucket. It can be neither
// renamed nor deleted.
const DefaultBucket = "General"

// Memory is a stored text.
type Memory struct {
	ID         string
	Seq        int64 // sequence number in the order of writing, per user
	BucketID   int64
	BucketName string
	Text       string
	Tokens     int
	Source     string
	Attributes
	Version   int
	CreatedAt time.Time
	UpdatedAt time.Time
	// SupersededBy is the newer memory that replaces this one, "" if none does; Supersedes
	// are the memories that this one replaces.
	SupersededBy string
	Supersedes   []string
	// MergedInto is the memory that was kept when this one was merged, "" if it was not, and
	// Merged the number of memories that were merged into this one.
	MergedInto string
	Merged     int
	// Score is the probability, 0 to 1, that it is relevant to the query of a search.
	Score float64
}

// Bucket groups memories.
type Bucket struct {
	ID          int64
	Name        string
	Description string
	Memories    int64 // number of memories in it
	Default     bool
}

// CreateInput is a memory to store.
type CreateInput struct {
	Text   string
	Bucket int64 // 0 for the default bucket
	Source string
	Attributes
	Request tenant.Request // makes a retry idempotent; optional
	Result  Result         // optional
}

// Result is a result of an extraction of facts. It is stored once, and only while the
// extraction exists: otherwise Create returns ErrExtractionEnded.
type Result struct {
	Extraction string
	Index      int // results are stored in order, from 0
}

// ErrExtractionEnded rejects a Result.
var ErrExtractionEnded error = fault.New(fault.NotFound, "the extraction has ended")

// NewMemory is a CreateInput with its token count and units.
type NewMemory struct {
	CreateInput
	Tokens int
	Units  []retrieve.Unit // the store sets Owner and Group
	Links  Links
	// Repeats are further texts of which the memory is a duplicate, in any bucket and, if it has no
	// attributes, with any that have no Subject.
	Repeats []Repeat
	// Similar are reported in Created; to a retry, those that still exist.
	Similar  []SimilarMemory
	Prepared Prepared // optional
}

// SimilarMemory is a memory that says nearly the same as a new one.
type SimilarMemory struct {
	ID    string  `json:"id"`
	Text  string  `json:"-"`     // stored responses contain no texts, which would outlive the memory
	Score float64 `json:"score"` // 0 for unrelated and 1 for equal texts
}

// Links are the memories that a new text replaces, and the one that replaces it, "" if
// none does.
type Links struct {
	Supersedes   []string
	SupersededBy string
}

// Prepared is what Store.Prepare read, which may have changed when the memory is created.
type Prepared struct {
	Bucket    int64             // 0 if it does not exist
	Duplicate string            // the existing memory that Created.Duplicate describes; "" for none
	Units     []retrieve.UnitID // reserved ids, one for each unit
}

// Created is the result of Create.
type Created struct {
	ID string
	// Duplicate is set if ID is an existing memory with exactly this text and these
	// attributes in the same bucket, or one that the text repeats, and nothing was stored.
	Duplicate bool
	// Similar are existing memories that say nearly the same, most similar first.
	Similar []SimilarMemory
}

// Group is a user, app, agent or run that memories name: the member user_id or app_id of
// the metadata, the agent id or the run id.
type Group struct {
	Kind      string // "user", "app", "agent" or "run"
	Name      string
	Memories  int64     // number of memories that name it
	CreatedAt time.Time // of the oldest memory
	UpdatedAt time.Time // of the memory changed last
}

// Filter selects memories for List.
type Filter struct {
	Bucket int64 // 0 for all
	Where  filter.Filter
	Newest bool // newest first, else oldest first
	// AsOf restricts the result to what was known before it; zero for now.
	AsOf  time.Time
	After int64 // only those that follow the memory with this sequence number; 0 for all
	Skip  int
	// Limit is at least 1. It is at most LongTextPage if that many have LongTextTokens or more on average.
	Limit int
}

// BucketInput is a bucket to create.
type BucketInput struct {
	Name        string
	Description string
	Request     tenant.Request // makes a retry idempotent; optional
}

// Labels are names by which a user finds memories, in alphabetical order.
type Labels struct {
	Sources, Tags []string
}

// Store stores memories. internal/postgres implements it. Each write commits the
// rows, the quota usage and the index job in one transaction.
type Store interface {
	Creator
	// List returns memories in order and reports whether more follow. It returns
	// ErrBucketNotFound for an unknown bucket.
	List(ctx context.Context, scope tenant.Scope, f Filter) ([]Memory, bool, error)
	// ByID returns the memories that exist, in no particular order, as they were known
	// before asOf; zero for now.
	ByID(ctx context.Context, scope tenant.Scope, ids []string, asOf time.Time) ([]Memory, error)
	// Newer returns, for those of the memories that are superseded, the memory that
	// supersedes it, if it is in f.Bucket, matches f.Where and was known before f.AsOf.
	Newer(ctx context.Context, scope tenant.Scope, ids []string, f Filter) (map[string]string, error)
	// Update changes a memory and returns its version. Text that differs is
	// appended as a new version with new units; identical text changes nothing, and
	// attributes have no versions.
	// It returns ErrMemoryNotFound, ErrBucketNotFound, the error of CheckUpdate or ErrHistoryTooLarge
	// for text that differs, or Forbidden when the storage quota is exceeded.
	Update(ctx context.Context, scope tenant.Scope, e Edit) (int, error)
	// Move moves all of the memories into the bucket and returns their distinct
	// ids. If any id is unknown it moves none and returns MissingMemories; for an
	// unknown bucket it returns ErrBucketNotFound.
	Move(ctx context.Context, scope tenant.Scope, in MoveInput) ([]string, error)
	// Versions returns a memory's versions, newest first, and reports whether
	// more follow. It returns ErrMemoryNotFound for an unknown memory.
	Versions(ctx context.Context, scope tenant.Scope, id string, skip, limit int) ([]Version, bool, error)
	Counter
	Deleter
	Merger
}

// Creator is the part of a Store that stores new memories.
type Creator interface {
	// Prepare reads what Create needs of a memory whose vectors are not known yet. It is optional.
	Prepare(ctx context.Context, scope tenant.Scope, m NewMemory) (Prepared, error)
	// Create stores a memory, unless the bucket contains one with exactly this text and
	// these attributes, or the user has one that it Repeats. It
	// returns ErrBucketNotFound, or Forbidden when a quota is exceeded.
	Create(ctx context.Context, scope tenant.Scope, m NewMemory) (Created, error)
}

// Counter is the part of a Store that counts and finds memories without reading them.
type Counter interface {
	// Count returns the number of memories that match the filter.
	Count(ctx context.Context, scope tenant.Scope, where filter.Filter) (int, error)
	// Matching returns the ids of the oldest memories that match the filter, at most limit.
	Matching(ctx context.Context, scope tenant.Scope, where filter.Filter, limit int) ([]string, error)
	// Groups returns a page of the groups of the user's memories, in order of kind and
	// name, and the number of all groups.
	Groups(ctx context.Context, scope tenant.Scope, skip, limit int) ([]Group, int, error)
	// Labels returns the most frequent sources and tags of the user's memories.
	Labels(ctx context.Context, scope tenant.Scope) (Labels, error)
}

// Deleter is the part of a Store that deletes memories.
type Deleter interface {
	// Delete removes memories with their versions and units, and returns the ids
	// of both. Unknown ids are skipped. It removes what was merged into them, too, and merged
	// memories among the ids.
	Delete(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error)
	// DeleteUndoable is Delete, but what it removes is kept for tenant.UndoWindow, and
	// merged memories among the ids are skipped.
	DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error)
	// Undelete restores the memories of a deletion with their versions and units, and
	// returns their ids. It returns NotFound if the deletion is final, and Forbidden
	// when a quota is exceeded.
	Undelete(ctx context.Context, scope tenant.Scope, deletion string) ([]string, error)
}

// Deleted lists what a deletion removed.
type Deleted struct {
	IDs    []string
	Merged []string // what was merged into them
	Units  []retrieve.UnitID
	Undo   string // id of the deletion if it can be undone
}

// BucketUpdate changes a bucket; nil fields are unchanged.
type BucketUpdate struct {
	Name        *string
	Description *string
	// Replaces has the values that the changed fields are meant to replace. If the bucket has others, nothing changes and
	// the error is ErrBucketChanged. nil for any values.
	Replaces *BucketInput
}

// BucketStore stores buckets. internal/postgres implements it.
type BucketStore interface {
	// ListBuckets returns all buckets, the default one first, then by name. It
	// creates the default bucket if the user has none.
	ListBuckets(ctx context.Context, scope tenant.Scope) ([]Bucket, error)
	// CreateBucket creates a bucket and returns its id. It returns BucketExists if
	// a bucket with the same BucketNameKey exists, and ErrTooManyBuckets.
	CreateBucket(ctx context.Context, scope tenant.Scope, b BucketInput) (int64, error)
	// UpdateBucket changes a bucket. It returns ErrBucketNotFound, BucketExists, or
	// the error of CheckBucketUpdate.
	UpdateBucket(ctx context.Context, scope tenant.Scope, id int64, u BucketUpdate) error
	// DeleteBucket moves a bucket's memories to the default bucket in bounded
	// transactions, deletes the bucket in the last one, and returns the number of
	// memories moved. It returns ErrBucketNotFound, or the error of
	// CheckBucketDelete.
	DeleteBucket(ctx context.Context, scope tenant.Scope, id int64) (int, error)
}
