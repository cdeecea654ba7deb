package chat

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Sender is the author of a message.
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
	ExternalID   string // the platform's id
	Platform     string
	PlatformName string
	Title        string
	Status       Status
	Pinned       bool
	MessageCount int
	TokenCount   int
	Bytes        int64 // size of all message texts; counts against the storage quota
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ExportedAt   time.Time // UpdatedAt in the newest imported export; zero if none
}

// Key returns the conversation's natural key.
func (c Conversation) Key() Key { return Key{c.Platform, c.ExternalID} }

// Key identifies a user's conversation by its platform and the platform's id.
type Key struct{ Platform, ExternalID string }

// Message is a stored message.
type Message struct {
	Index      int // position in the conversation, from 0
	ExternalID string
	Sender     Sender
	Text       string
	Tokens     int
	CreatedAt  time.Time
	Exported   bool // part of the newest imported export, not sent online
}

// Upsert is an incoming conversation. Messages with a known id and different
// content replace the stored ones, messages with a new id are appended, and
// stored messages that are not part of it remain.
type Upsert struct {
	ExternalID   string
	Platform     string
	PlatformName string
	Title        string
	CreatedAt    time.Time
	UpdatedAt    time.Time // zero for the time of the newest message
	Messages     []Message // Index is assigned by Plan
	// Vectors are embeddings of the conversation's units, by the text they
	// embed. A job embeds the units without one.
	Vectors map[string][]float32
	// Generation is that of Vectors.
	Generation placement.GenerationID
	// Request identifies the request for idempotency.
	Request tenant.Request
}

// Key returns the natural key of the conversation.
func (u Upsert) Key() Key { return Key{u.Platform, u.ExternalID} }

// Outcome is the result of an upsert.
type Outcome struct {
	ImportID     string
	Conversation Conversation
	Added        int  // messages
	Replaced     int  // messages
	Failed       bool // nothing was stored; the import has the reason
}

// ConversationFilter selects conversations to list.
type ConversationFilter struct {
	Platform   string // "" or AllPlatforms for all
	Title      string // substring, case-insensitive
	From, To   time.Time
	PinnedOnly bool
	ImportID   string
	Status     Status // "" for all
	Offset     int
	Limit      int // at least 1
}

// Store persists conversations. Writes commit rows, quota usage and index jobs
// together.
type Store interface {
	// Upsert applies Plan to the stored conversation, re-balances the quota, and
	// records an import of one conversation. Forbidden when the storage quota is
	// exceeded; ErrTooLarge if Change.TooLarge.
	Upsert(ctx context.Context, scope tenant.Scope, u Upsert) (Outcome, error)
	// RecordFailure records a failed import of one conversation. The outcome
	// is Failed and holds the conversation that Rejected returns.
	RecordFailure(ctx context.Context, scope tenant.Scope, u Upsert, reason string) (Outcome, error)
	// Get returns a conversation with all its messages; NotFound.
	Get(ctx context.Context, scope tenant.Scope, id string) (Conversation, []Message, error)
	// Find returns a conversation with all its messages, or one without ID if there is none.
	Find(ctx context.Context, scope tenant.Scope, key Key) (Conversation, []Message, error)
	// List returns conversations, newest created first, and the total number.
	List(ctx context.Context, scope tenant.Scope, f ConversationFilter) ([]Conversation, int, error)
	// Delete removes conversations with their messages and units and re-balances
	// the quota. Unknown ids are ignored.
	Delete(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error)
	// DeleteUndoable is Delete, but what it removes is kept for tenant.UndoWindow, and
	// the quota is re-balanced afterwards.
	DeleteUndoable(ctx context.Context, scope tenant.Scope, ids []string) (Deleted, error)
	// Undelete restores the conversations of a deletion, re-balances the quota and
	// returns their ids. It returns NotFound if the deletion is final, Conflict if one
	// of them was stored again, and Forbidden when the storage quota is exceeded.
	Undelete(ctx context.Context, scope tenant.Scope, deletion string) ([]string, error)
	// SetFlags sets flags on conversations, re-balances the quota, and returns
	// the ids that exist, changed or not. Unknown ids are ignored.
	SetFlags(ctx context.Context, scope tenant.Scope, ids []string, f Flags) ([]string, error)
}

// Deleted lists what a deletion removed.
type Deleted struct {
	IDs   []string
	Units []retrieve.UnitID
	Undo  string // id of the deletion if it can be undone
}

// PassageStore reads the data of search results.
type PassageStore interface {
	// Count returns the number of the user's active conversations.
	Count(ctx context.Context, scope tenant.Scope) (int64, error)
	// HasPlatform reports whether the user has an active conversation of one of
	// the platforms. Names are in lower case and compared without case.
	HasPlatform(ctx context.Context, scope tenant.Scope, names []string) (bool, error)
	// Passages returns, for each position, the piece of the message with up to around
	// messages on either side: the nearest ones, with MaxContext bytes of text together.
	// Positions that no longer exist are omitted.
	Passages(ctx context.Context, scope tenant.Scope, positions []Position, around int) ([]Passage, error)
	// Openings returns the beginning of the first message of each conversation that
	// exists, by id; of the user's first one if it is among the first messages.
	Openings(ctx context.Context, scope tenant.Scope, ids []string) (map[string]string, error)
}

const (
	// maxContext is the maximum length of the texts around a message in a passage, in bytes.
	maxContext = 256 << 10
	// maxContexts is that of all passages together.
	maxContexts = 4 << 20
)

// MaxContext returns the maximum length of the texts around each of n passages, in bytes.
func MaxContext(n int) int64 { return int64(min(maxContext, maxContexts/max(n, 1))) }

// Position is the position of a piece of a message.
type Position struct {
	Conversation string
	Index        int // of the message
	Start, End   int // byte range of the piece in its text
	// Unit is the unit of the piece, if known. It has the text of a piece of a long message.
	Unit retrieve.UnitID
}

// withoutUnit returns the position as a key: a quoted excerpt does not name its unit.
func (p Position) withoutUnit() Position {
	p.Unit = 0
	return p
}

// Passage is a piece of a message with its conversation and the surrounding messages.
type Passage struct {
	Position
	Conversation Conversation
	Message      Message   // its text is the piece
	Length       int       // of the whole text of the message, in bytes
	Context      []Message // in order, without Message
}
