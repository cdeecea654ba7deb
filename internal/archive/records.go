package archive

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/chat"
)

const (
	// format and version identify the file. A reader rejects higher versions; adding
	// fields does not change the version.
	format  = "mnemo-export"
	version = 1
)

// The files of the zip.
const (
	manifestFile      = "manifest.json"
	bucketsFile       = "buckets.jsonl"
	memoriesFile      = "memories.jsonl"
	versionsFile      = "memory-versions.jsonl"
	conversationsFile = "conversations.jsonl"
	messagesFile      = "messages.jsonl"
)

// manifest identifies the export and states the number of lines in each file.
type manifest struct {
	Format     string           `json:"format"`
	Version    int              `json:"version"`
	ExportedAt time.Time        `json:"exportedAt"`
	Lines      map[string]int64 `json:"lines"`
}

func linesOf(c account.Counts) map[string]int64 {
	return map[string]int64{
		bucketsFile: c.Buckets, memoriesFile: c.Memories, versionsFile: c.Versions,
		conversationsFile: c.Conversations, messagesFile: c.Messages,
	}
}

func (m manifest) counts() account.Counts {
	return account.Counts{
		Buckets: m.Lines[bucketsFile], Memories: m.Lines[memoriesFile], Versions: m.Lines[versionsFile],
		Conversations: m.Lines[conversationsFile], Messages: m.Lines[messagesFile],
	}
}

type bucket struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Default     bool      `json:"default"`
	CreatedAt   time.Time `json:"createdAt"`
}

func (b bucket) key() string { return strconv.FormatInt(b.ID, 10) }

func fromBucket(b account.Bucket) any { return bucket(b) }
func toBucket(b bucket) account.Bucket {
	return account.Bucket(b)
}

type memory struct {
	ID        string    `json:"id"`
	Bucket    int64     `json:"bucketId"`
	Text      string    `json:"text"`
	Source    string    `json:"source"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	EditedAt  time.Time `json:"editedAt"`

	SupersededBy string    `json:"supersededBy,omitempty"`
	SupersededAt time.Time `json:"supersededAt,omitzero"`

	MergedInto string    `json:"mergedInto,omitempty"`
	MergedAt   time.Time `json:"mergedAt,omitzero"`

	AgentID  string          `json:"agentId,omitempty"`
	RunID    string          `json:"runId,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Metadata json.RawMessage `json:"customMetadata,omitempty"`
}

func (m memory) key() string { return m.ID }

func fromMemory(m account.Memory) any  { return memory(m) }
func toMemory(m memory) account.Memory { return account.Memory(m) }

type memoryVersion struct {
	Memory    string    `json:"memoryId"`
	Version   int       `json:"version"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"createdAt"`
}

func fromVersion(v account.Version) any { return memoryVersion(v) }
func toVersion(v memoryVersion) account.Version {
	return account.Version(v)
}

type conversation struct {
	ID           string    `json:"id"`
	Platform     string    `json:"platform"`
	PlatformName string    `json:"platformDisplayName"`
	ExternalID   string    `json:"platformConversationId"`
	Title        string    `json:"title"`
	Status       string    `json:"status"`
	Pinned       bool      `json:"pinned"`
	MessageCount int       `json:"messageCount"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
}

func (c conversation) key() string { return c.ID }

func fromConversation(c chat.Conversation) any {
	return conversation{
		ID: c.ID, Platform: c.Platform, PlatformName: c.PlatformName, ExternalID: c.ExternalID, Title: c.Title,
		Status: string(c.Status), Pinned: c.Pinned, MessageCount: c.MessageCount, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

func toConversation(c conversation) chat.Conversation {
	return chat.Conversation{
		ID: c.ID, Platform: c.Platform, PlatformName: c.PlatformName, ExternalID: c.ExternalID, Title: c.Title,
		Status: chat.Status(c.Status), Pinned: c.Pinned, MessageCount: c.MessageCount, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

type message struct {
	Conversation string    `json:"conversationId"`
	Index        int       `json:"message_index"`
	ExternalID   string    `json:"id"`
	Sender       string    `json:"sender"`
	Text         string    `json:"text"`
	CreatedAt    time.Time `json:"timestamp"`
}

func fromMessage(m account.Message) any {
	return message{
		Conversation: m.Conversation, Index: m.Index, ExternalID: m.ExternalID, Sender: string(m.Sender), Text: m.Text, CreatedAt: m.CreatedAt,
	}
}

func toMessage(m message) account.Message {
	return account.Message{Conversation: m.Conversation, Message: chat.Message{
		Index: m.Index, ExternalID: m.ExternalID, Sender: chat.Sender(m.Sender), Text: m.Text, CreatedAt: m.CreatedAt,
	}}
}
