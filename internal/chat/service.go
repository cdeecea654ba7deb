package chat

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// MaxTokens is the longest conversation that may be sent online.
	MaxTokens = 100000
	// MaxBulk is the most ids one deletion takes.
	MaxBulk = 10000
	// DefaultPageSize is how many conversations a page holds that names no size.
	DefaultPageSize = 25
	// MaxPageSize is the largest page.
	MaxPageSize = 100

	defaultIndexTimeout = time.Second
	defaultEmbedTimeout = 2 * time.Second
	// smallUnits is how many units a conversation may have for its sender to
	// wait until they are embedded: a few chunks of a chat that goes on.
	smallUnits = 64
)

// Searcher finds units by meaning and by words. retrieve.Engine is one.
type Searcher interface {
	Search(ctx context.Context, scope tenant.Scope, p tenant.Placement, q retrieve.Query) (retrieve.Result, error)
}

// Config is what a Service works with. All but the timeouts are required.
type Config struct {
	Store    Store
	Passages PassageStore
	States   StateStore
	Imports  ImportStore
	Uploads  UploadStore
	Searcher Searcher
	Index    retrieve.Index
	Embedder retrieve.Embedder
	// CountTokens returns how many tokens a text has, exactly up to the limit
	// and anything above it beyond.
	CountTokens func(text string, limit int) int
	// IndexTimeout is how long a deletion tries to reach the index at once
	// before the job is left to do it; 1 s when 0.
	IndexTimeout time.Duration
	// EmbedTimeout is how long storing a short conversation waits for its
	// embeddings before the job is left to make them; 2 s when 0.
	EmbedTimeout time.Duration
	// Synthesizer answers recalls from what was found; nil leaves it at the
	// excerpts themselves.
	Synthesizer Synthesizer
	Now         func() time.Time // time.Now when nil
	Log         *slog.Logger     // told why a recall was not synthesized; may be nil
}

// Service takes conversations in, lists them and finds passages of them.
type Service struct {
	Config
	resting atomic.Int64 // until when the synthesizer is let alone, in Unix nanoseconds
}

// NewService makes a Service.
func NewService(c Config) *Service {
	c.IndexTimeout = cmp.Or(c.IndexTimeout, defaultIndexTimeout)
	c.EmbedTimeout = cmp.Or(c.EmbedTimeout, defaultEmbedTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Config: c}
}

// Ingest stores a conversation sent online. Invalid for a bad input, Forbidden
// when storage is used up. One of more than MaxTokens is accepted, and its
// import recorded as failed with the reason.
func (s *Service) Ingest(ctx context.Context, who tenant.Identity, in IngestInput) (Outcome, error) {
	u, err := in.Upsert()
	if err != nil {
		return Outcome{}, err
	}
	if !s.countTokens(u.Messages) {
		out, err := s.Store.RecordFailure(ctx, who.Scope, u,
			fmt.Sprintf("The conversation has more than %d tokens.", MaxTokens))
		if err != nil {
			return Outcome{}, fmt.Errorf("record failed import: %w", err)
		}
		if out.Conversation.MessageCount == 0 { // nothing of it is stored
			out.Conversation.MessageCount = len(u.Messages)
			out.Conversation.UpdatedAt = u.updated()
		}
		return out, nil
	}
	// Before the transaction, which holds locks: what a unit embeds is known
	// from its own message.
	vectors := s.embed(ctx, u)
	build := func(c Conversation, messages []Message, indexes []int) []retrieve.Unit {
		units := Units(c, messages, indexes)
		for i := range units {
			units[i].Vector = vectors[units[i].Dense]
		}
		return units
	}
	out, err := s.Store.Upsert(ctx, who.Scope, u, build)
	if err != nil {
		return Outcome{}, fmt.Errorf("store conversation: %w", err)
	}
	return out, nil
}

// embed returns the vectors of a short conversation's units by what they
// embed, so that the next search finds it by meaning; none for a long one, or
// when the embedder is late: the index job makes those.
func (s *Service) embed(ctx context.Context, u Upsert) map[string][]float32 {
	indexes := make([]int, len(u.Messages))
	for i := range indexes {
		indexes[i] = i
	}
	if len(indexes) > smallUnits {
		return nil
	}
	units := Units(Conversation{Platform: u.Platform}, u.Messages, indexes)
	if len(units) > smallUnits {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.EmbedTimeout)
	defer cancel()
	texts := make([]string, len(units))
	for i, unit := range units {
		texts[i] = unit.Dense
	}
	made, err := s.Embedder.Embed(ctx, texts)
	if err != nil || len(made) != len(texts) {
		return nil
	}
	vectors := make(map[string][]float32, len(made))
	for i, text := range texts {
		vectors[text] = made[i]
	}
	return vectors
}

var _ UnitBuilder = Units

// Units makes the units of the messages at the indexes, in a conversation
// whose messages are all given.
func Units(c Conversation, messages []Message, indexes []int) []retrieve.Unit {
	list := make([]retrieve.ChatMessage, len(messages))
	for i, m := range messages {
		list[i] = retrieve.ChatMessage{Sender: string(m.Sender), Text: m.Text, At: m.CreatedAt}
	}
	return retrieve.ChatUnits(retrieve.GroupOf(c.Platform), list, indexes)
}

// countTokens fills in the messages' tokens and reports whether they are
// within MaxTokens together. It stops when they are not.
func (s *Service) countTokens(messages []Message) bool {
	left := MaxTokens
	for i := range messages {
		n := s.CountTokens(messages[i].Text, left)
		if n > left {
			return false
		}
		messages[i].Tokens = n
		left -= n
	}
	return true
}

// Get returns a conversation with all its messages; NotFound.
func (s *Service) Get(ctx context.Context, who tenant.Identity, id string) (Conversation, []Message, error) {
	if len(resolvable([]string{id})) == 0 {
		return Conversation{}, nil, fault.New(fault.NotFound, "no conversation has this conversationId")
	}
	c, messages, err := s.Store.Get(ctx, who.Scope, id)
	if fault.Is(err, fault.NotFound) {
		// One wording for whatever does not resolve.
		return Conversation{}, nil, fault.New(fault.NotFound, "no conversation has this conversationId")
	}
	if err != nil {
		return Conversation{}, nil, fmt.Errorf("read conversation: %w", err)
	}
	return c, messages, nil
}

// Count returns how many active conversations the user has.
func (s *Service) Count(ctx context.Context, who tenant.Identity) (int64, error) {
	n, err := s.Passages.Count(ctx, who.Scope)
	if err != nil {
		return 0, fmt.Errorf("count conversations: %w", err)
	}
	return n, nil
}

// Validate reports what is wrong with the filter, as one Invalid error.
func (f ConversationFilter) Validate() error {
	var p fault.Fields
	checkString(&p, "title", f.Title)
	checkString(&p, "provider", f.Platform)
	checkString(&p, "importId", f.ImportID)
	switch f.Status {
	case "", Active, Excluded, Blocked:
	default:
		p.Add("status", "must be %q, %q, %q or %q", Active, Excluded, Blocked, "all")
	}
	if f.Limit < 1 || f.Limit > MaxPageSize {
		p.Add("pageSize", "must be 1 to %d, not %d", MaxPageSize, f.Limit)
	}
	if f.Offset < 0 {
		p.Add("page", "must be at least 1")
	}
	return p.Err()
}

// List returns conversations, newest created first, and how many there are in all.
func (s *Service) List(ctx context.Context, who tenant.Identity, f ConversationFilter) ([]Conversation, int, error) {
	if err := f.Validate(); err != nil {
		return nil, 0, err
	}
	list, total, err := s.Store.List(ctx, who.Scope, f)
	if err != nil {
		return nil, 0, fmt.Errorf("list conversations: %w", err)
	}
	return list, total, nil
}

// Delete removes conversations with everything of them and returns the ids it
// removed; ids that do not resolve are skipped. Invalid when there are none or
// more than MaxBulk.
func (s *Service) Delete(ctx context.Context, who tenant.Identity, ids []string) ([]string, error) {
	if len(ids) == 0 || len(ids) > MaxBulk {
		return nil, fault.New(fault.Invalid, "ids must hold 1 to %d ids, not %d", MaxBulk, len(ids))
	}
	deleted, err := s.Store.Delete(ctx, who.Scope, resolvable(ids))
	if err != nil {
		return nil, fmt.Errorf("delete conversations: %w", err)
	}
	if len(deleted.Units) > 0 {
		ctx, cancel := context.WithTimeout(ctx, s.IndexTimeout)
		defer cancel()
		// The committed job finishes what this cannot.
		_ = s.Index.Delete(ctx, who.Tenant, who.Placement, deleted.Units)
	}
	return deleted.IDs, nil
}

// resolvable leaves out what cannot be an id and the database would refuse.
func resolvable(ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != "" && utf8.ValidString(id) && !strings.ContainsRune(id, 0) {
			out = append(out, id)
		}
	}
	return out
}

func checkString(f *fault.Fields, field, s string) {
	if strings.ContainsRune(s, 0) {
		f.Add(field, "must not contain the character U+0000")
	}
	if !utf8.ValidString(s) {
		f.Add(field, "must be valid UTF-8")
	}
}
