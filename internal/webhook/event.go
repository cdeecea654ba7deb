package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// event is the body of a request: ids only, no texts and no secrets.
type event struct {
	Type      audit.Verb `json:"type"`
	Timestamp time.Time  `json:"timestamp"` // of the change
	Data      eventData  `json:"data"`
}

type eventData struct {
	Tenant   tenant.ID `json:"tenant"`
	Sequence int64     `json:"sequence"`         // orders the events of a tenant
	UserID   string    `json:"userId,omitempty"` // pseudonym; stable until the user is erased
	User     string    `json:"user,omitempty"`   // name; absent after the user was erased
	Actor    string    `json:"actor"`
	Via      string    `json:"via,omitempty"`
	App      string    `json:"app,omitempty"`
	Objects  []string  `json:"objects,omitempty"`
}

// ID returns the webhook-id of a record: the same in each attempt and after a replay, and
// different after a restore of the database, which may give the number to another record.
func (r Record) ID() string { return "evt_" + r.Hash[:32] }

func (r Record) body() ([]byte, error) {
	body, err := json.Marshal(event{Type: r.Verb, Timestamp: r.At.UTC(), Data: eventData{
		Tenant: r.Tenant, Sequence: r.Sequence, UserID: r.Record.User, User: r.UserName,
		Actor: r.Actor, Via: r.Via, App: r.App, Objects: r.Objects,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return body, nil
}
