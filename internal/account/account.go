package account

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Bucket is a bucket as it leaves or enters an account.
type Bucket struct {
	ID          int64
	Name        string
	Description string
	Default     bool
	CreatedAt   time.Time
}

// Memory is a memory with the text it has now.
type Memory struct {
	ID        string
	Bucket    int64
	Text      string
	Source    string
	Version   int // 1 for a text that was never edited
	CreatedAt time.Time
	UpdatedAt time.Time
	EditedAt  time.Time // when it got this text
}

// Version is a text a memory had before.
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

// Counts says how many of each an account holds.
type Counts struct {
	Buckets       int64
	Memories      int64
	Versions      int64 // those before the ones the memories have now
	Conversations int64
	Messages      int64
}

// Content gives all that an account holds, one kind at a time, and can give it
// again. An error is the last thing a sequence gives.
type Content interface {
	// Buckets come with the default one first.
	Buckets() iter.Seq2[Bucket, error]
	// Memories come in the order they were written in.
	Memories() iter.Seq2[Memory, error]
	// Versions come in the order of their memories, oldest first.
	Versions() iter.Seq2[Version, error]
	// Conversations come in the order of their ids, without TokenCount, which
	// follows from their messages.
	Conversations() iter.Seq2[chat.Conversation, error]
	// Messages come in the order of their conversations and from 0 on.
	Messages() iter.Seq2[Message, error]
}

// Snapshot is the content of an account as it was at one moment. It holds a
// transaction until it is closed, and is for one reader.
type Snapshot struct {
	Content
	At     time.Time
	Counts Counts
	Close  func()
}

// Store is the database, as this domain uses it. internal/postgres implements it.
type Store interface {
	// Snapshot opens a snapshot; it ends with the context too.
	Snapshot(ctx context.Context, scope tenant.Scope) (*Snapshot, error)
	// Mark ends the account's imports and the access of its programs, returns a
	// mark behind all that it holds now, and commits the job that purges up to
	// it, should nobody else.
	Mark(ctx context.Context, scope tenant.Scope) (Mark, error)
	// Purge removes a batch of what the account held at the mark, with its
	// quota use, and commits the jobs that take it out of the index. Room that
	// is freed goes to blocked conversations. Where nothing is left it takes
	// the mark's job back.
	Purge(ctx context.Context, scope tenant.Scope, upTo Mark) (Purged, error)
}

// Mark is a moment in an account: what came after it is not purged by it.
type Mark struct {
	Memory int64     `json:"memory"` // the newest memory's place in the order of writing
	At     time.Time `json:"at"`     // by the database's clock
	Job    int64     `json:"-"`      // the job that purges up to it; 0 in that job
}

// Purged says how much was removed.
type Purged struct {
	Memories      int
	Conversations int
	Done          bool // nothing is left
}

// Add returns the sum of both.
func (p Purged) Add(o Purged) Purged {
	return Purged{Memories: p.Memories + o.Memories, Conversations: p.Conversations + o.Conversations, Done: p.Done || o.Done}
}

// PurgeArgs are the arguments of the job that purges an account up to a mark,
// should the request that asked for it not come to its end.
type PurgeArgs struct {
	Tenant tenant.ID     `json:"tenant"`
	User   tenant.UserID `json:"user"`
	Mark   Mark          `json:"mark"`
}

// Kind names the job.
func (PurgeArgs) Kind() string { return "account.purge" }

// Purge purges an account up to a mark, batch after batch, and returns what it
// removed, when it failed too.
func Purge(ctx context.Context, store Store, scope tenant.Scope, upTo Mark) (Purged, error) {
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
