package account

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Bucket is a bucket as exported and restored.
type Bucket struct {
	ID          int64
	Name        string
	Description string
	Default     bool
	CreatedAt   time.Time
}

// Memory is a memory with its current text.
type Memory struct {
	ID        string
	Bucket    int64
	Text      string
	Source    string
	Version   int // 1 for a text that was never edited
	CreatedAt time.Time
	UpdatedAt time.Time
	EditedAt  time.Time // when the current text was written
	// SupersededBy is the newer memory that replaces this one, "" if none does, and
	// SupersededAt when that was recorded.
	SupersededBy string
	SupersededAt time.Time
	// MergedInto is the memory that was kept when this one was merged, "" if it was not, and
	// MergedAt when that was.
	MergedInto string
	MergedAt   time.Time
	// The attributes of memory.Attributes.
	AgentID  string
	RunID    string
	Tags     []string
	Metadata json.RawMessage
}

// Version is an earlier text of a memory.
type Version struct {
	Memory    string
	Version   int // 1 is the first
	Text      string
	CreatedAt time.Time
}

// Message is a message of a conversation. Tokens is 0.
type Message struct {
	Conversation string
	chat.Message
}

// Counts holds the number of objects of each kind in an account.
type Counts struct {
	Buckets       int64
	Memories      int64
	Versions      int64 // earlier versions only
	Conversations int64
	Messages      int64
}

// Content iterates over the objects in an account, one kind at a time. Each
// sequence can be read more than once and ends after its first error.
type Content interface {
	// Buckets yields the default bucket first.
	Buckets() iter.Seq2[Bucket, error]
	// Memories yields memories in the order they were written, and then merged ones, each after
	// the memory that was kept.
	Memories() iter.Seq2[Memory, error]
	// Versions yields versions in the order of their memories, oldest first.
	Versions() iter.Seq2[Version, error]
	// Conversations yields conversations in the order of their ids. TokenCount is
	// not set: it is the sum over the messages.
	Conversations() iter.Seq2[chat.Conversation, error]
	// Messages yields messages in the order of their conversations, by index.
	Messages() iter.Seq2[Message, error]
}

// Snapshot is the content of an account at one point in time. It holds a
// transaction until it is closed and is not safe for concurrent use.
type Snapshot struct {
	Content
	At     time.Time
	Counts Counts
	Close  func()
}

// Store reads and purges accounts. internal/postgres implements it.
type Store interface {
	// Snapshot opens a snapshot, which also ends when ctx is done.
	Snapshot(ctx context.Context, scope tenant.Scope) (*Snapshot, error)
	// BeginPurge cancels the account's unfinished imports, revokes its connected apps,
	// and returns a cutoff after everything the account holds. It commits the
	// job that completes the purge if the request does not.
	BeginPurge(ctx context.Context, scope tenant.Scope) (PurgeCutoff, error)
	// Purge removes one batch of the objects before the cutoff, releases their
	// quota, and commits the jobs that remove them from the index. Released
	// quota goes to blocked conversations. Once nothing is left, it cancels the
	// cutoff's job.
	Purge(ctx context.Context, scope tenant.Scope, upTo PurgeCutoff) (Purged, error)
}

// PurgeCutoff limits a purge to the objects that existed when it began.
type PurgeCutoff struct {
	Memory int64     `json:"memory"` // sequence number of the newest memory
	At     time.Time `json:"at"`     // database time
	Job    int64     `json:"-"`      // the job that completes the purge; 0 inside that job
}

// Purged counts the objects that a purge removed.
type Purged struct {
	Memories      int
	Conversations int
	Done          bool // nothing is left before the cutoff
}

// Add returns the sum of p and o.
func (p Purged) Add(o Purged) Purged {
	return Purged{Memories: p.Memories + o.Memories, Conversations: p.Conversations + o.Conversations, Done: p.Done || o.Done}
}

// PurgeArgs are the arguments of the job that completes a purge if the request
// that began it did not.
type PurgeArgs struct {
	Tenant tenant.ID     `json:"tenant"`
	User   tenant.UserID `json:"user"`
	Cutoff PurgeCutoff   `json:"cutoff"`
}

// Kind returns the job kind.
func (PurgeArgs) Kind() string { return "account.purge" }

// Purge removes the objects before the cutoff in batches. It returns the counts
// of the completed batches even when it fails.
func Purge(ctx context.Context, store Store, scope tenant.Scope, upTo PurgeCutoff) (Purged, error) {
	var total Purged
	for !total.Done {
		batch, err := store.Purge(ctx, scope, upTo)
		if err != nil {
			return total, fmt.Errorf("purge account: %w", err)
		}
		total = total.Add(batch)
	}
	return total, nil
}
