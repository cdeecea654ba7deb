package chat

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// DefaultPlatform is the platform of a conversation that names none.
	DefaultPlatform = "custom"
	// AllPlatforms stands for every platform where one may be chosen.
	AllPlatforms = "all"

	maxExternalID   = 500  // characters
	maxTitle        = 2000 // characters
	maxPlatformName = 200  // characters
	// maxProblems bounds the answer to a body in which everything is wrong.
	maxProblems = 10
)

var platformForm = regexp.MustCompile(`^[a-zA-Z0-9\-_.]{1,100}$`)

// IngestInput is a conversation as a client sends it. A nil pointer is a field
// that is missing; times are ISO 8601.
type IngestInput struct {
	Platform     string // "" for DefaultPlatform
	PlatformName string
	ID           *string
	Title        *string
	CreatedAt    *string
	UpdatedAt    *string
	Messages     []IngestMessage
	Request      tenant.Request // the one that sends it, if it may be sent again
}

// IngestMessage is a message as a client sends it.
type IngestMessage struct {
	ID        *string
	Role      *string
	Content   *string
	CreatedAt *string
}

// Upsert checks the input and returns it as what is stored; Invalid names
// every field that is wrong, up to a bound.
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
		c.add("platform", "must not be %s, which stands for every platform", AllPlatforms)
	}
	c.text("platformDisplayName", u.PlatformName, maxPlatformName)
	u.ExternalID = c.id("conversation.id", in.ID)
	u.Title = c.required("conversation.title", in.Title, maxTitle)
	u.CreatedAt = c.time("conversation.createdAt", in.CreatedAt)
	if in.UpdatedAt != nil {
		u.UpdatedAt = c.time("conversation.updatedAt", in.UpdatedAt)
	}
	if len(in.Messages) == 0 {
		c.add("conversation.messages", "is required and must hold at least one message")
	}
	u.Messages = c.messages(in.Messages)
	return u, c.fields.Err()
}

// ParseSender returns the sender a role names.
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

// checker reads fields and notes what is wrong with them.
type checker struct {
	fields fault.Fields
	count  int
}

func (c *checker) add(field, format string, args ...any) {
	if c.count++; c.count <= maxProblems {
		c.fields.Add(field, format, args...)
	}
}

// messages reads the messages. Of several with one id the last one counts, in
// the first one's place.
func (c *checker) messages(in []IngestMessage) []Message {
	out := make([]Message, 0, len(in))
	place := make(map[string]int, len(in))
	for i, m := range in {
		if c.count >= maxProblems {
			break
		}
		at := fmt.Sprintf("conversation.messages[%d].", i)
		msg := Message{
			ExternalID: c.id(at+"id", m.ID),
			Sender:     c.sender(at+"role", m.Role),
			Text:       c.required(at+"content", m.Content, 0),
			CreatedAt:  c.time(at+"createdAt", m.CreatedAt),
		}
		if p, ok := place[msg.ExternalID]; ok {
			out[p] = msg
			continue
		}
		place[msg.ExternalID] = len(out)
		out = append(out, msg)
	}
	return out
}

func (c *checker) id(field string, s *string) string {
	id := c.required(field, s, maxExternalID)
	if s != nil && strings.TrimSpace(id) == "" {
		c.add(field, "must not be blank")
	}
	return id
}

// required reads a text that must be there but may be empty.
func (c *checker) required(field string, s *string, limit int) string {
	if s == nil {
		c.add(field, "is required and takes a string")
		return ""
	}
	c.text(field, *s, limit)
	return *s
}

// text checks a text of at most limit characters; any length when 0.
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
		c.add(field, "is required and takes %s", roles)
		return ""
	}
	s, ok := ParseSender(*role)
	if !ok {
		c.add(field, "takes %s", roles)
	}
	return s
}

const roles = "human, user, assistant, ai, model, bot, system or tool"

func (c *checker) time(field string, s *string) time.Time {
	if s == nil {
		c.add(field, "is required and takes an ISO 8601 time")
		return time.Time{}
	}
	t, _, err := ParseTime(*s)
	if err != nil {
		c.add(field, "takes an ISO 8601 time, such as 2025-05-09T14:30:00Z")
	}
	return t
}
