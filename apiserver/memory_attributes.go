package apiserver

import (
	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

// MemoryAttributes are the attributes of a memory in a response. They are absent if they
// are empty.
type MemoryAttributes struct {
	AgentID        string       `json:"agentId,omitempty" doc:"The assistant that stored it."`
	RunID          string       `json:"runId,omitempty" doc:"The session or run in which it was stored."`
	Tags           []string     `json:"tags,omitempty" doc:"In alphabetical order."`
	CustomMetadata httpx.Object `json:"customMetadata,omitempty" doc:"The metadata that the client stored with the memory."`
}

func attributesOf(a memory.Attributes) MemoryAttributes {
	return MemoryAttributes{AgentID: a.AgentID, RunID: a.RunID, Tags: a.Tags, CustomMetadata: httpx.Object(a.Metadata)}
}
