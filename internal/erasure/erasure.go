package erasure

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Kind is what was erased or revoked.
type Kind string

// The kinds of erasures, with their objects.
const (
	Tenant       Kind = "tenant"       // all data of a tenant
	User         Kind = "user"         // all data of a user
	Access       Kind = "access"       // a user without access whose data is retained
	Account      Kind = "account"      // everything a user owned until Until: the number of the newest memory; the user stays
	Conversation Kind = "conversation" // ids
	Memory       Kind = "memory"       // ids
	Bucket       Kind = "bucket"       // ids
	Token        Kind = "token"        // hash of an API token that expires at Until
	Password     Kind = "password"     // hash of a password that was replaced
	Session      Kind = "session"      // hash of a session that was ended
	Grant        Kind = "grant"        // id of a connected app's grant
	Secret       Kind = "secret"       // hash of a refresh token or code that was used
)

// Loss is the kind of an entry that is no erasure: entries before it may be missing. Its position is greater
// than that of every lost entry, so that none of these positions is assigned again.
const Loss Kind = "loss"

// Entry is one erasure in the ledger. It contains ids and hashes, never text.
type Entry struct {
	Position int64         `json:"n"`  // in the ledger, from 1
	ID       string        `json:"id"` // of the record in the database
	At       time.Time     `json:"at"`
	Kind     Kind          `json:"kind"`
	Tenant   tenant.ID     `json:"tenant"`
	User     tenant.UserID `json:"user,omitempty"`
	Objects  []string      `json:"objects,omitempty"`
	Until    *time.Time    `json:"until,omitempty"`
}

// State is what a database knows of its ledger.
type State struct {
	Ledger   string // the ledger's id; "" if none was ever used, or, if Current, if the recording was stopped
	Position int64  // the last entry that the database reflects
	Current  bool   // false if the ledger was not applied since the database was created or restored
}

// Store is the database. internal/postgres implements it.
type Store interface {
	State(ctx context.Context) (State, error)
	// Pending returns recorded erasures that are not in the ledger, oldest first.
	Pending(ctx context.Context, limit int) ([]Entry, error)
	// Known returns those of the ids that are pending.
	Known(ctx context.Context, ids []string) ([]string, error)
	// Acknowledge removes pending erasures that were appended to the ledger
	// between two positions. It returns Unavailable if the database is not at the
	// first one, because it was restored in the meantime.
	Acknowledge(ctx context.Context, ledger string, from, to int64, ids []string) error
	// BeginReplay marks the database as restored, so that it is not served until
	// Attach, and prepares it for Replay.
	BeginReplay(ctx context.Context) error
	// Replay repeats an erasure. It does nothing if there is nothing to erase.
	Replay(ctx context.Context, e Entry) error
	// Attach records that the database reflects the ledger up to the position, and
	// removes pending erasures that are in it.
	Attach(ctx context.Context, ledger string, position int64, ids []string) error
}
