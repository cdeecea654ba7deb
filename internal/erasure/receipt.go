package erasure

import (
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Receipt proves that nothing remains of an erased user or tenant, or states what remains of an erasure that failed.
type Receipt struct {
	Tenant     tenant.ID     `json:"tenant"`
	User       tenant.UserID `json:"user,omitempty"` // 0 for a whole tenant
	BeganAt    time.Time     `json:"beganAt"`
	FinishedAt time.Time     `json:"finishedAt,omitzero"` // zero if the erasure is incomplete
	Stores     []Count       `json:"stores"`
	Kept       []Kept        `json:"kept"`
}

// Count is the number of objects in a table or in the vector store.
type Count struct {
	Store  string `json:"store"`
	Query  string `json:"query"`  // proves it; to be repeated by anyone
	Before int64  `json:"before"` // the erasure
	After  int64  `json:"after"`  // Before until it is counted again
}

// Kept is data that is retained on purpose.
type Kept struct {
	Store  string `json:"store"`
	Reason string `json:"reason"`
}

// The reasons for which data is retained.
const (
	KeptForLedger    = "ids of erased data, until they are in the erasure ledger, which repeats the erasure in a restored backup"
	KeptForAudit     = "audit records: pseudonyms that can no longer be linked to a person, kept for 365 days"
	KeptForChain     = "hash of the last audit record"
	KeptForBilling   = "numbers for billing per tenant and day, without users, kept for 400 days"
	KeptForSignIns   = "hashes of failed sign-ins per account and address, for 10 minutes"
	KeptForRejection = "the address of a removed user of an identity provider, to reject sign-ins, until the user is restored"
)

// Remaining returns the number of objects that were not erased.
func (r Receipt) Remaining() (n int64) {
	for _, c := range r.Stores {
		n += c.After
	}
	return n
}
