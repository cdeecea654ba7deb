package chat

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Status says whether a conversation is searched and counted.
type Status string

// The states of a conversation (shared/API.md, Chat history).
const (
	Active   Status = "active"
	Excluded Status = "excluded" // its user left it out
	Blocked  Status = "blocked"  // over the tenant's quota
)

// Sender says who wrote a message.
type Sender string

// The senders of messages.
const (
	Human     Sender = "human"
	Assistant Sender = "assistant"
	System    Sender = "system"
	Tool      Sender = "tool"
)

// Conversation is a stored conversation without its messages.
type Conversation struct {
	ID           string
	ExternalID   string // its id on the platform
	Platform     string
	PlatformName string
	Title        string
	Status       Status
	Pinned       bool
	MessageCount int
	TokenCount   int
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Message is a stored message.
type Message struct {
	Index      int // from 0, in order
	ExternalID string
	Sender     Sender
	Text       string
	Tokens     int
	CreatedAt  time.Time
}

// Upsert is a conversation as it comes in: messages with a known id and new
// content replace, new ones are added, missing ones stay.
type Upsert struct {
	ExternalID   string
	Platform     string
	PlatformName string
	Title        string
	CreatedAt    time.Time
	UpdatedAt    time.Time // zero for the newest message's time
	Messages     []Message // Index is given by the store
	// Request is the request that sent it, if it may be sent again.
	Request tenant.Request
}

// Outcome says what an upsert did.
type Outcome struct {
	ImportID     string
	Conversation Conversation
	Added        int
	Replaced     int
}

// ConversationFilter selects what List gives.
type ConversationFilter struct {
	Platform   string // "" for all
	Title      string // part of it, without regard to case
	From, To   time.Time
	PinnedOnly bool
	ImportID   string
	Status     Status // "" for all
	Offset     int
	Limit      int // at least 1
}

// Store keeps conversations. internal/postgres implements it. Writes commit
// rows, quota use and index jobs together.
type Store interface {
	// Upsert stores the conversation blocked, grants room by the quota, and
	// records an import of one. Forbidden when storage is used up. The units
	// of messages it added or replaced, and of their neighbours, come from
	// build, which is given the whole conversation as stored and the indexes
	// of the messages whose units must be made.
	Upsert(ctx context.Context, scope tenant.Scope, u Upsert, build UnitBuilder) (Outcome, error)
	// RecordFailure records an import of one that failed for the reason.
	RecordFailure(ctx context.Context, scope tenant.Scope, u Upsert, reason string) (Outcome, error)
	// Get returns a conversation with all its messages; NotFound.
	Get(ctx context.Context, scope tenant.Scope, id string) (Conversation, []Message, error)
	// List returns conversations, newest created first, and how many there are in all.
	List(ctx context.Context, scope tenant.Scope, f ConversationFilter) ([]Conversation, int, error)
	// Delete removes conversations with everything of them; ids that do not
	// resolve are skipped. Freed room goes to blocked ones at once.
	Delete(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error)
}

// UnitBuilder makes the units of the messages at the indexes, in a
// conversation whose messages are all given.
type UnitBuilder func(c Conversation, messages []Message, indexes []int) []retrieve.Unit

// Deleted says what a deletion removed.
type Deleted struct {
	IDs   []string
	Units []retrieve.UnitID
}

// PassageStore reads what search answers are made of. internal/postgres implements it.
type PassageStore interface {
	// Count returns how many active conversations the user has.
	Count(ctx context.Context, scope tenant.Scope) (int64, error)
	// Passages returns for each place its conversation and the message there
	// with up to around messages on either side; places that are gone are left out.
	Passages(ctx context.Context, scope tenant.Scope, places []Place, around int) ([]Passage, error)
}

// Place is a message's place.
type Place struct {
	Conversation string
	Index        int
}

// Passage is a message with its conversation and neighbours.
type Passage struct {
	Conversation Conversation
	Message      Message
	Context      []Message // in order, the message itself left out
}
