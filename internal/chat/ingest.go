package chat

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	// DefaultPlatform is the platform of conversations without one.
	DefaultPlatform = "custom"
	// AllPlatforms selects all platforms in filters.
	AllPlatforms = "all"

	maxExternalID   = 500  // characters
	maxTitle        = 2000 // characters
	maxPlatformName = 200  // characters
	// maxProblems limits the number of reported errors per request.
	maxProblems = 10
)

var platformForm = regexp.MustCompile(`^[a-zA-Z0-9\-_.]{1,100}$`)

// IngestInput is a conversation as sent by a client. A nil pointer is a missing
// field; times are ISO 8601.
type IngestInput struct {
	Platform     string // "" for DefaultPlatform
	PlatformName string
	ID           *string
	Title        *string
	CreatedAt    *string
	UpdatedAt    *string
	Messages     []IngestMessage
	Request      tenant.Request // for idempotency
}

// IngestMessage is a message as sent by a client.
type IngestMessage struct {
	ID        *string
	Role      *string
	Content   *string
	CreatedAt *string
}

// Upsert validates the input and converts it. The Invalid error lists all invalid
// fields, up to maxProblems.
func (in IngestInput) Upsert() (Upsert, error) {
	c := checker{}
	u := Upsert{Platform: in.Platform, PlatformName: in.PlatformName, Request: in.Request}
	if u.Platform == "" {
		u.Platform = DefaultPlatform
	}
	if !platformForm.MatchString(u.Platform) {
		c.add("platform", "must be 1 to 100 of a-z, A-Z, 0-9, '-', '_' and '.'")
	}
	if u.Platform == AllPlatforms {
		c.add("platform", "must not be %s, which selects all platforms", AllPlatforms)
	}
	c.text("platform name", u.PlatformName, maxPlatformName)
	u.ExternalID = c.id("conversation id", in.ID)
	u.Title = c.required("conversation title", in.Title, maxTitle)
	u.CreatedAt = c.time("creation time", in.CreatedAt)
	if in.UpdatedAt != nil {
		u.UpdatedAt = c.optionalTime("update time", *in.UpdatedAt)
	}
	if len(in.Messages) == 0 {
		c.add("messages", "is required and must contain at least one message")
	}
	u.Messages = c.messages(in.Messages)
	return u, c.fields.Err()
}

// ParseSender returns the sender for a role.
func ParseSender(role string) (Sender, bool) {
	switch strings.ToLower(role) {
	case "human", "user":
		return Human, true
	case "assistant", "ai", "model", "bot":
		return Assistant, true
	case "system":
		return System, true
	case "tool":
		return Tool, true
	}
	return "", false
}

// checker converts fields and collects their errors.
type checker struct {
	fields fault.Fields
	count  int
}

func (c *checker) add(field, format string, args ...any) {
	if c.count++; c.count <= maxProblems {
		c.fields.Add(field, format, args...)
	}
}

// messages converts the messages. The last of several messages with the same id
// replaces the first.
func (c *checker) messages(in []IngestMessage) []Message {
	out := make([]Message, 0, len(in))
	index := make(map[string]int, len(in))
	for i, m := range in {
		if c.count >= maxProblems {
			break
		}
		at := fmt.Sprintf("messages[%d].", i)
		msg := Message{
			ExternalID: c.id(at+"id", m.ID),
			Sender:     c.sender(at+"sender", m.Role),
			Text:       c.required(at+"text", m.Content, 0),
			CreatedAt:  c.time(at+"time", m.CreatedAt),
		}
		if first, ok := index[msg.ExternalID]; ok {
			out[first] = msg
			continue
		}
		index[msg.ExternalID] = len(out)
		out = append(out, msg)
	}
	return out
}

func (c *checker) id(field string, s *string) string {
	id := c.required(field, s, maxExternalID)
	if s != nil && textrule.IsBlank(id) {
		c.add(field, "must not be blank")
	}
	return id
}

// required converts a text that is required but may be empty.
func (c *checker) required(field string, s *string, limit int) string {
	if s == nil {
		c.add(field, "is required and must be a string")
		return ""
	}
	c.text(field, *s, limit)
	return *s
}

// text validates a text of at most limit characters, or any length if 0.
func (c *checker) text(field, s string, limit int) {
	if limit > 0 && utf8.RuneCountInString(s) > limit {
		c.add(field, "must be at most %d characters", limit)
	}
	var f fault.Fields
	checkString(&f, field, s)
	if err := f.Err(); err != nil {
		c.add(field, "%s", strings.TrimPrefix(err.Error(), field+" "))
	}
}

func (c *checker) sender(field string, role *string) Sender {
	if role == nil {
		c.add(field, "is required and must be %s", roles)
		return ""
	}
	s, ok := ParseSender(*role)
	if !ok {
		c.add(field, "must be %s", roles)
	}
	return s
}

const roles = "human, user, assistant, ai, model, bot, system or tool"

func (c *checker) time(field string, s *string) time.Time {
	if s == nil {
		c.add(field, "is required and must be an ISO 8601 time")
		return time.Time{}
	}
	before := c.count
	t := c.optionalTime(field, *s)
	if t.IsZero() && c.count == before {
		c.add(field, "is required and must be later than 0001-01-01T00:00:00Z, which counts as absent")
	}
	return t
}

// optionalTime converts a time. It is zero if the time counts as absent.
func (c *checker) optionalTime(field, s string) time.Time {
	t, _, err := ParseTime(s, time.UTC)
	if err != nil {
		c.add(field, "must be an ISO 8601 time, such as 2025-05-09T14:30:00Z")
	}
	return t
}
