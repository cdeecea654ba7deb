package mem0

import (
	"encoding/json"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// entities name what a memory belongs to.
type entities struct {
	UserID  string `json:"user_id"`
	AgentID string `json:"agent_id"`
	AppID   string `json:"app_id"`
	RunID   string `json:"run_id"`
}

// conditions returns the entities that are set, as filters.
func (n entities) conditions() map[string]any {
	out := map[string]any{}
	for name, value := range map[string]string{"user_id": n.UserID, "agent_id": n.AgentID, "app_id": n.AppID, "run_id": n.RunID} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

// attributes returns the attributes of a memory. A user is the account itself with an
// application key, and otherwise an attribute.
func (n entities) attributes(who tenant.Identity, metadata json.RawMessage) (memory.Attributes, error) {
	keys := map[string]string{memory.KeyApp: n.AppID}
	if who.Application == nil && n.UserID != "" {
		if err := tenant.CheckApplicationUser("user_id", n.UserID); err != nil {
			return memory.Attributes{}, err
		}
		keys[memory.KeyUser] = n.UserID
	}
	metadata, err := withKeys(metadata, keys)
	return memory.Attributes{AgentID: n.AgentID, RunID: n.RunID, Metadata: metadata}, err
}

// withKeys adds those keys to metadata that are not empty.
func withKeys(metadata json.RawMessage, keys map[string]string) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(metadata) > 0 && json.Unmarshal(metadata, &members) != nil {
		return nil, fault.New(fault.Invalid, "metadata must be a JSON object")
	}
	for _, reserved := range []string{memory.KeyUser, memory.KeyApp} {
		if _, ok := members[reserved]; ok {
			return nil, fault.New(fault.Invalid, "metadata must not contain %s, which is a separate field", reserved)
		}
	}
	if members == nil { // null
		members = map[string]json.RawMessage{}
	}
	for key, value := range keys {
		if value == "" {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		members[key] = raw
	}
	return json.Marshal(members)
}

// splitKeys returns the metadata that the client stored, nil if there is none, and the
// user and the app.
func splitKeys(metadata json.RawMessage) (own map[string]json.RawMessage, user, app string) {
	if len(metadata) == 0 || json.Unmarshal(metadata, &own) != nil {
		return nil, "", ""
	}
	for key, to := range map[string]*string{memory.KeyUser: &user, memory.KeyApp: &app} {
		if json.Unmarshal(own[key], to) == nil {
			delete(own, key)
		}
	}
	if len(own) == 0 {
		own = nil
	}
	return own, user, app
}

type memoryOut struct {
	ID         string                     `json:"id"`
	Memory     string                     `json:"memory"`
	UserID     *string                    `json:"user_id"`
	AgentID    *string                    `json:"agent_id"`
	AppID      *string                    `json:"app_id"`
	RunID      *string                    `json:"run_id"`
	Metadata   map[string]json.RawMessage `json:"metadata"`
	Categories []string                   `json:"categories"` // always null: there are none
	CreatedAt  string                     `json:"created_at"`
	UpdatedAt  string                     `json:"updated_at"`
	Score      *float64                   `json:"score,omitempty"`
}

// toOut returns the response for a memory.
func toOut(who tenant.Identity, m memory.Memory) memoryOut {
	metadata, user, app := splitKeys(m.Metadata)
	if who.Application != nil {
		user = who.UserName
	}
	return memoryOut{
		ID: m.ID, Memory: m.Text, UserID: optional(user), AgentID: optional(m.AgentID), AppID: optional(app), RunID: optional(m.RunID),
		Metadata: metadata, CreatedAt: chat.Stamp(m.CreatedAt), UpdatedAt: chat.Stamp(m.UpdatedAt),
	}
}

// optional returns null for an empty string.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
