package tenant

import "time"

// Member is a user of a tenant, as its administrators see it: usage, but no data.
type Member struct {
	Name          string
	Email         string
	External      bool // of the identity provider; otherwise listed in the Tenant resource
	Administrator bool
	Memories      int64
	Conversations int64 // active ones
	CreatedAt     time.Time
}

// Key is the key of an application.
type Key struct {
	Application ApplicationSpec
	Token       *TokenInfo // the newest; nil before the first is issued
}
