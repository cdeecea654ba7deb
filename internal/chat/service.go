package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/breaker"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// MaxTokens is the maximum length of a conversation that is sent online.
	MaxTokens = 100000
	// MaxBulk is the maximum number of ids of one request.
	MaxBulk = 10000
	// DefaultPageSize is the number of conversations per page.
	DefaultPageSize = 25
	// MaxPageSize is the maximum number of conversations per page.
	MaxPageSize = 100

	defaultIndexTimeout = time.Second
	defaultEmbedTimeout = 2 * time.Second
	// maxRequestUnits is the maximum number of units that are embedded within the request: a few turns of an ongoing
	// chat. Embedding that does not end in time is wasted.
	maxRequestUnits = 16
)

// Searcher searches units; implemented by retrieve.Engine.
type Searcher interface {
	Search(ctx context.Context, scope tenant.Scope, p placement.Location, q retrieve.Query) (retrieve.Result, error)
}

// Config configures a Service. Store, Passages, Searcher, Index, Embedders and
// CountTokens are required.
type Config struct {
	Store     Store
	Passages  PassageStore
	Searcher  Searcher
	Index     indexing.Store
	Embedders retrieve.Embedders
	// CountTokens returns the number of tokens of a text. It is exact up to the
	// limit and any number above the limit otherwise.
	CountTokens func(text string, limit int) int
	// IndexTimeout limits the attempt of a deletion to update the index before it
	// leaves that to the job; default 1 s.
	IndexTimeout time.Duration
	// EmbedTimeout limits the embedding of a few messages within the
	// request before that is left to the job; default 2 s.
	EmbedTimeout time.Duration
	// Synthesizer writes the content of recalls; with nil the content consists of
	// excerpts.
	Synthesizer Synthesizer
	Now         func() time.Time // time.Now when nil
	Log         *slog.Logger     // optional
}

// Service stores, lists and searches conversations.
type Service struct {
	Config
	synthesizer breaker.Breaker // of Config.Synthesizer
}

// NewService returns a Service.
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

// Ingest stores a conversation that was sent online. Invalid for invalid input,
// Forbidden when the storage quota is exceeded. A conversation of more than
// MaxTokens, or that would grow beyond MaxConversation or MaxMessages, is accepted,
// and its import is recorded as failed.
func (s *Service) Ingest(ctx context.Context, who tenant.Identity, in IngestInput) (Outcome, error) {
	u, err := in.Upsert()
	if err != nil {
		return Outcome{}, err
	}
	if !s.countTokens(u.Messages) {
		return s.recordFailure(ctx, who, u, tooLong)
	}
	// Embed before the transaction, which holds locks. The conversation can change in between, but the text that a unit
	// embeds depends on its own message only.
	if u.Vectors, err = s.embed(ctx, who, u); err != nil {
		return Outcome{}, err
	}
	u.Generation = who.Generation
	out, err := s.Store.Upsert(ctx, who.Scope, u)
	if errors.Is(err, ErrTooLarge) {
		return s.recordFailure(ctx, who, u, ErrTooLarge.Error())
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("store conversation: %w", err)
	}
	return out, nil
}

func (s *Service) recordFailure(ctx context.Context, who tenant.Identity, u Upsert, reason string) (Outcome, error) {
	out, err := s.Store.RecordFailure(ctx, who.Scope, u, reason)
	if err != nil {
		return Outcome{}, fmt.Errorf("record failed import: %w", err)
	}
	return out, nil
}

// ErrTooLarge rejects a change for which Change.TooLarge is true.
var ErrTooLarge error = fault.New(fault.Invalid, "The conversation would have more than %d MiB or %d messages. Continue it as a new conversation.",
	MaxConversation>>20, MaxMessages)

// tooLong is the reason of the failed import of a conversation that has more
// than MaxTokens.
var tooLong = fmt.Sprintf("The conversation has more than %d tokens.", MaxTokens)

// embed returns the vectors of the new and changed messages' units, by the text they embed, so that semantic search
// finds them immediately. It returns nil if there are more than maxRequestUnits, or if the embedder does not answer
// in time: the index job then embeds them. Its plan only tells which messages are new, because clients send the whole
// conversation after each turn. The store makes the plan that is written, under its lock.
func (s *Service) embed(ctx context.Context, who tenant.Identity, u Upsert) (map[string][]float32, error) {
	before, stored, err := s.Store.Find(ctx, who.Scope, u.Key())
	if err != nil {
		return nil, fmt.Errorf("find conversation: %w", err)
	}
	change := Plan(before, stored, u, "")
	written := change.Written()
	if len(written) > maxRequestUnits {
		return nil, nil
	}
	units := change.Units()(written) // includes those of quotations, which are not known yet and will have none
	if len(units) == 0 || len(units) > maxRequestUnits {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.EmbedTimeout)
	defer cancel()
	texts := make([]string, len(units))
	for i, unit := range units {
		texts[i] = unit.Dense
	}
	list, err := s.Embedders.Embed(ctx, who.Generation, texts)
	if err != nil || len(list) != len(texts) {
		return nil, nil
	}
	vectors := make(map[string][]float32, len(list))
	for i, text := range texts {
		vectors[text] = list[i]
	}
	return vectors, nil
}

// countTokens sets the messages' token counts and reports whether their sum is
// at most MaxTokens. It stops at the first message that exceeds the limit.
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
	if len(validIDs([]string{id})) == 0 {
		return Conversation{}, nil, fault.New(fault.NotFound, "conversation not found")
	}
	c, messages, err := s.Store.Get(ctx, who.Scope, id)
	if fault.Is(err, fault.NotFound) {
		return Conversation{}, nil, fault.New(fault.NotFound, "conversation not found")
	}
	if err != nil {
		return Conversation{}, nil, fmt.Errorf("read conversation: %w", err)
	}
	return c, messages, nil
}

// Count returns the number of the user's active conversations.
func (s *Service) Count(ctx context.Context, who tenant.Identity) (int64, error) {
	n, err := s.Passages.Count(ctx, who.Scope)
	if err != nil {
		return 0, fmt.Errorf("count conversations: %w", err)
	}
	return n, nil
}

// Validate returns one Invalid error that lists every invalid field.
func (f ConversationFilter) Validate() error {
	var p fault.Fields
	checkString(&p, "title", f.Title)
	checkString(&p, "platform filter", f.Platform)
	checkString(&p, "import id", f.ImportID)
	switch f.Status {
	case "", Active, Excluded, Blocked:
	default:
		p.Add("status", "must be %q, %q, %q or %q", Active, Excluded, Blocked, "all")
	}
	if f.Limit < 1 || f.Limit > MaxPageSize {
		p.Add("page size", "must be 1 to %d, not %d", MaxPageSize, f.Limit)
	}
	if f.Offset < 0 {
		p.Add("page", "must be at least 1")
	}
	return p.Err()
}

// List returns conversations, newest created first, and the total number.
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

// Openings returns how conversations begin, by id: the beginning of the user's first
// message, or of the first message. Unknown and empty conversations are omitted.
func (s *Service) Openings(ctx context.Context, who tenant.Identity, ids []string) (map[string]string, error) {
	out, err := s.Passages.Openings(ctx, who.Scope, validIDs(ids))
	if err != nil {
		return nil, fmt.Errorf("read first messages: %w", err)
	}
	return out, nil
}

// Delete removes conversations with their messages and units and returns the ids
// it removed. Unknown ids are ignored. Invalid for no ids or more than MaxBulk.
func (s *Service) Delete(ctx context.Context, who tenant.Identity, ids []string) ([]string, error) {
	if len(ids) == 0 || len(ids) > MaxBulk {
		return nil, fault.New(fault.Invalid, "ids must contain 1 to %d ids, not %d", MaxBulk, len(ids))
	}
	deleted, err := s.Store.Delete(ctx, who.Scope, validIDs(ids))
	if err != nil {
		return nil, fmt.Errorf("delete conversations: %w", err)
	}
	s.unindex(ctx, who, deleted.Units)
	return deleted.IDs, nil
}

// DeleteUndoable deletes conversations, like Delete, and returns their number and the id
// of the deletion, which Undelete undoes for tenant.UndoWindow.
func (s *Service) DeleteUndoable(ctx context.Context, who tenant.Identity, ids []string) (n int, undo string, err error) {
	if len(ids) == 0 || len(ids) > MaxBulk {
		return 0, "", fault.New(fault.Invalid, "ids must contain 1 to %d ids, not %d", MaxBulk, len(ids))
	}
	deleted, err := s.Store.DeleteUndoable(ctx, who.Scope, validIDs(ids))
	if err != nil {
		return 0, "", fmt.Errorf("delete conversations: %w", err)
	}
	s.unindex(ctx, who, deleted.Units)
	return len(deleted.IDs), deleted.Undo, nil
}

// Undelete restores the conversations of a deletion and returns their number. It returns
// NotFound if the deletion is final, Conflict if a conversation was stored again, and
// Forbidden when the storage quota is exceeded.
func (s *Service) Undelete(ctx context.Context, who tenant.Identity, undo string) (int, error) {
	ids, err := s.Store.Undelete(ctx, who.Scope, undo)
	if err != nil {
		return 0, fmt.Errorf("undelete conversations: %w", err)
	}
	return len(ids), nil
}

// unindex tries to remove units from the index. The committed job retries on error.
func (s *Service) unindex(ctx context.Context, who tenant.Identity, units []retrieve.UnitID) {
	if len(units) == 0 || !who.Placement.Indexed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.IndexTimeout)
	defer cancel()
	_ = s.Index.Delete(ctx, who.Tenant, who.Placement, units)
}

// validIDs drops strings that cannot be ids and that the database would reject.
func validIDs(ids []string) []string {
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
