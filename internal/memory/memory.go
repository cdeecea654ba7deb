package memory

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// MaxText is the longest text of a memory, bytes (shared/API.md, Memories).
const MaxText = 32768

// MaxCount is the most memories one listing gives; a higher count is clamped.
const MaxCount = 1000

// MaxBulk is the most ids one bulk delete takes.
const MaxBulk = 10000

// DefaultBucket is the name of the bucket every user has from the start; it
// can be neither renamed nor deleted.
const DefaultBucket = "General"

// Memory is a stored text.
type Memory struct {
	ID         string
	Seq        int64 // the user's order of writing
	BucketID   int64
	BucketName string
	Text       string
	Tokens     int
	Source     string
	Version    int
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Bucket groups memories.
type Bucket struct {
	ID          int64
	Name        string
	Description string
	Memories    int64 // how many it holds
	Default     bool
}

// CreateInput is a memory to store.
type CreateInput struct {
	Text   string
	Bucket int64 // 0 for the default bucket
	Source string
	// Request is the request that asks for it, if it may be sent again.
	Request tenant.Request
}

// NewMemory is what a Store writes: the input with what was computed of it.
type NewMemory struct {
	CreateInput
	Tokens int
	Units  []retrieve.Unit // Owner and Group are given by the store
}

// Filter selects what List gives.
type Filter struct {
	Bucket int64 // 0 for all
	Newest bool  // newest first, else oldest first
	Skip   int
	Limit  int // at least 1
}

// BucketInput is a bucket to make.
type BucketInput struct {
	Name        string
	Description string
	Request     tenant.Request // the one that asks for it, if it may be sent again
}

// Store keeps memories. internal/postgres implements it. Writes commit the
// row, the quota use and the index job together.
type Store interface {
	// Create stores a memory and returns its id. NotFound for an unknown
	// bucket, Forbidden when a quota is used up.
	Create(ctx context.Context, scope tenant.Scope, m NewMemory) (string, error)
	// List returns memories in order and whether more follow.
	List(ctx context.Context, scope tenant.Scope, f Filter) ([]Memory, bool, error)
	// ByID returns those of the ids that exist, in no order.
	ByID(ctx context.Context, scope tenant.Scope, ids []string) ([]Memory, error)
	// Delete removes memories and everything of them, and returns the ids of
	// the memories it removed with those of their units. Ids that do not
	// resolve are skipped.
	Delete(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error)
	Editor
}

// Deleted says what a deletion removed.
type Deleted struct {
	IDs   []string
	Units []retrieve.UnitID
}

// BucketUpdate changes a bucket; nil fields stay as they are.
type BucketUpdate struct {
	Name        *string
	Description *string
}

// BucketStore keeps buckets. internal/postgres implements it.
type BucketStore interface {
	// ListBuckets returns all buckets, the default one first, then by name.
	// It makes the default bucket of a user that has none.
	ListBuckets(ctx context.Context, scope tenant.Scope) ([]Bucket, error)
	// CreateBucket returns the new bucket's id; Conflict when the name is
	// taken without regard to case.
	CreateBucket(ctx context.Context, scope tenant.Scope, b BucketInput) (int64, error)
	// UpdateBucket changes a bucket. ErrNoBucket; Conflict when the name is
	// taken, or the bucket is the default one and would be renamed.
	UpdateBucket(ctx context.Context, scope tenant.Scope, id int64, u BucketUpdate) error
	// DeleteBucket moves a bucket's memories to the default one, in bounded
	// transactions of which the last removes the bucket, and returns how many
	// it moved. ErrNoBucket; Conflict for the default bucket.
	DeleteBucket(ctx context.Context, scope tenant.Scope, id int64) (int, error)
}
