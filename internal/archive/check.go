package archive

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	memories "github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// Limits of fields that are not defined by the memory and chat packages.
const (
	maxBucket     = 1 << 52 // numbers above twice this are not exact in JSON
	maxVersion    = 1 << 30
	maxMessages   = 1 << 30
	maxSource     = 200
	maxExternalID = 500
	maxTitle      = 2000
	maxPlatform   = 200
)

var platformForm = regexp.MustCompile(`^[a-zA-Z0-9\-_.]{1,100}$`)

func checkBucket(b *bucket, f *fault.Fields) {
	if b.ID < 1 || b.ID > maxBucket {
		f.Add("id", "must be 1 to %d", int64(maxBucket))
	}
	text(f, "name", b.Name, memories.MaxBucketName, true)
	if problem := textrule.NameProblem(b.Name); problem != "" {
		f.Add("name", "%s", problem)
	}
	text(f, "description", b.Description, memories.MaxBucketDescription, false)
	when(f, "createdAt", &b.CreatedAt)
}

func checkMemory(m *memory, f *fault.Fields) {
	id(f, "id", m.ID)
	memoryText(f, m.Text)
	text(f, "source", m.Source, maxSource, false)
	if m.Version < 1 || m.Version > maxVersion {
		f.Add("version", "must be 1 to %d", maxVersion)
	}
	when(f, "createdAt", &m.CreatedAt)
	when(f, "updatedAt", &m.UpdatedAt)
	when(f, "editedAt", &m.EditedAt)
	if m.SupersededBy != "" {
		id(f, "supersededBy", m.SupersededBy)
		when(f, "supersededAt", &m.SupersededAt)
	}
	if m.MergedInto != "" {
		id(f, "mergedInto", m.MergedInto)
		when(f, "mergedAt", &m.MergedAt)
	}
	a := memories.Attributes{AgentID: m.AgentID, RunID: m.RunID, Tags: m.Tags, Metadata: m.Metadata}.Normalize(f)
	m.AgentID, m.RunID, m.Tags, m.Metadata = a.AgentID, a.RunID, a.Tags, a.Metadata
}

func checkVersion(v *memoryVersion, f *fault.Fields) {
	id(f, "memoryId", v.Memory)
	memoryText(f, v.Text)
	when(f, "createdAt", &v.CreatedAt)
}

func memoryText(f *fault.Fields, s string) {
	if len(s) > memories.MaxText {
		f.Add("text", "must be at most %d bytes", memories.MaxText)
	}
	text(f, "text", s, 0, true)
}

func checkConversation(c *conversation, f *fault.Fields) {
	id(f, "id", c.ID)
	if !platformForm.MatchString(c.Platform) {
		f.Add("platform", "must be 1 to 100 of a-z, A-Z, 0-9, '-', '_' and '.'")
	}
	text(f, "platformDisplayName", c.PlatformName, maxPlatform, false)
	text(f, "platformConversationId", c.ExternalID, maxExternalID, true)
	text(f, "title", c.Title, maxTitle, false)
	switch chat.Status(c.Status) {
	case chat.Active, chat.Excluded, chat.Blocked:
	default:
		f.Add("status", "must be %q, %q or %q", chat.Active, chat.Excluded, chat.Blocked)
	}
	if c.MessageCount < 0 || c.MessageCount > maxMessages {
		f.Add("messageCount", "must be 0 to %d", maxMessages)
	}
	optionalTime(f, "createdAt", &c.CreatedAt)
	optionalTime(f, "updatedAt", &c.UpdatedAt)
}

func checkMessage(m *message, f *fault.Fields) {
	id(f, "conversationId", m.Conversation)
	text(f, "id", m.ExternalID, maxExternalID, true)
	text(f, "text", m.Text, 0, false)
	switch chat.Sender(m.Sender) {
	case chat.Human, chat.Assistant, chat.System, chat.Tool:
	default:
		f.Add("sender", "must be %q, %q, %q or %q", chat.Human, chat.Assistant, chat.System, chat.Tool)
	}
	optionalTime(f, "timestamp", &m.CreatedAt)
}

// id requires the canonical form, so that equal ids are equal strings.
func id(f *fault.Fields, field, s string) {
	if parsed, err := uuid.Parse(s); err != nil || parsed.String() != s {
		f.Add(field, "must be a UUID in lower case")
	}
}

// text requires at most limit characters; 0 means no limit.
func text(f *fault.Fields, field, s string, limit int, required bool) {
	switch {
	case required && textrule.IsBlank(s):
		f.Add(field, "is required and must not be blank")
	case limit > 0 && utf8.RuneCountInString(s) > limit:
		f.Add(field, "must be at most %d characters", limit)
	case strings.ContainsRune(s, 0):
		f.Add(field, "must not contain the character U+0000")
	}
}

// when requires a time, and sets it to the one that is stored.
func when(f *fault.Fields, field string, t *time.Time) {
	if t.IsZero() {
		f.Add(field, "is required and must be a time such as 2025-05-09T14:30:00Z")
	}
	optionalTime(f, field, t)
}

// optionalTime is when for a time that may be absent: older versions stored the zero time of conversations and messages.
func optionalTime(f *fault.Fields, field string, t *time.Time) {
	stored, err := chat.StoredTime(*t)
	if err != nil {
		f.Add(field, "must be in the years 1 to 9999")
	}
	*t = stored
}
