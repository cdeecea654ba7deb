package memory

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	defaultEmbedTimeout = 2 * time.Second
	defaultIndexTimeout = time.Second
	// maxSource bounds the name of the client that wrote a memory, characters.
	maxSource = 200
)

// Searcher finds units by meaning and by words. retrieve.Engine is one.
type Searcher interface {
	Search(ctx context.Context, scope tenant.Scope, p tenant.Placement, q retrieve.Query) (retrieve.Result, error)
}

// Config is what a Service works with. All but the timeouts are required.
type Config struct {
	Store    Store
	Buckets  BucketStore
	Searcher Searcher
	Index    retrieve.Index
	Embedder retrieve.Embedder
	// CountTokens returns how many tokens a text has.
	CountTokens func(text string) int
	// EmbedTimeout is how long storing a memory waits for its embedding
	// before the job is left to do it; 2 s when 0.
	EmbedTimeout time.Duration
	// IndexTimeout is how long a deletion tries to reach the index at once
	// before the job is left to do it; 1 s when 0.
	IndexTimeout time.Duration
}

// Service stores memories, lists them and finds them again.
type Service struct {
	Config
}

// NewService makes a Service.
func NewService(c Config) *Service {
	c.EmbedTimeout = cmp.Or(c.EmbedTimeout, defaultEmbedTimeout)
	c.IndexTimeout = cmp.Or(c.IndexTimeout, defaultIndexTimeout)
	return &Service{Config: c}
}

// Validate reports what is wrong with the input, as one Invalid error.
func (in CreateInput) Validate() error {
	var f fault.Fields
	checkText(&f, in.Text)
	if utf8.RuneCountInString(in.Source) > maxSource {
		f.Add("source", "must be at most %d characters", maxSource)
	}
	checkString(&f, "source", in.Source)
	return f.Err()
}

// Create stores a memory and returns its id. Invalid for a bad input, NotFound
// for an unknown bucket, Forbidden when a quota is used up. An embedder that is
// late or away only delays its being found by meaning.
func (s *Service) Create(ctx context.Context, who tenant.Identity, in CreateInput) (string, error) {
	if err := in.Validate(); err != nil {
		return "", err
	}
	units := retrieve.MemoryUnits(in.Text)
	s.embed(ctx, units)
	id, err := s.Store.Create(ctx, who.Scope, NewMemory{CreateInput: in, Tokens: s.CountTokens(in.Text), Units: units})
	if fault.Is(err, fault.NotFound) {
		return "", ErrNoBucket
	}
	if err != nil {
		return "", fmt.Errorf("store memory: %w", err)
	}
	return id, nil
}

// embed fills in the units' vectors if the embedder answers in time; otherwise
// they stay without and the index job embeds them.
func (s *Service) embed(ctx context.Context, units []retrieve.Unit) {
	ctx, cancel := context.WithTimeout(ctx, s.EmbedTimeout)
	defer cancel()
	texts := make([]string, len(units))
	for i, u := range units {
		texts[i] = u.Dense
	}
	vectors, err := s.Embedder.Embed(ctx, texts)
	if err != nil || len(vectors) != len(units) {
		return
	}
	for i := range units {
		units[i].Vector = vectors[i]
	}
}

// Get returns a memory; NotFound.
func (s *Service) Get(ctx context.Context, who tenant.Identity, id string) (Memory, error) {
	found, err := s.Store.ByID(ctx, who.Scope, resolvable([]string{id}))
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	if len(found) == 0 {
		return Memory{}, ErrNoMemory
	}
	return found[0], nil
}

// Delete removes a memory from the database and, if it answers, from the
// index; NotFound.
func (s *Service) Delete(ctx context.Context, who tenant.Identity, id string) error {
	deleted, err := s.Store.Delete(ctx, who.Scope, resolvable([]string{id}))
	if err != nil {
		return fmt.Errorf("delete memory: %w", err)
	}
	if len(deleted.IDs) == 0 {
		return ErrNoMemory
	}
	// The committed job finishes what this cannot.
	_ = s.unindex(ctx, who, deleted.Units)
	return nil
}

// Bulk is what DeleteMany did.
type Bulk struct {
	Deleted int // rows removed from the database
	Errors  []BulkError
	Cause   error // what is behind Errors, for the log; nil when all went well
}

// BulkError says what could not be done to a memory, or to the whole batch.
type BulkError struct {
	MemoryID string
	Err      string // a sentence for the caller
}

// The memory ids of errors that stand for a whole batch.
const (
	BulkDatabase = "postgres_bulk" // nothing was deleted
	BulkIndex    = "milvus_bulk"   // rows are gone, vectors follow
)

// DeleteMany removes memories. Ids that do not resolve are skipped. Invalid
// when there are none or more than MaxBulk; failures of the stores are in the
// result, beside what was done.
func (s *Service) DeleteMany(ctx context.Context, who tenant.Identity, ids []string) (Bulk, error) {
	if len(ids) == 0 || len(ids) > MaxBulk {
		return Bulk{}, fault.New(fault.Invalid, "memoryIds must hold 1 to %d ids, not %d", MaxBulk, len(ids))
	}
	deleted, err := s.Store.Delete(ctx, who.Scope, resolvable(ids))
	if err != nil {
		return Bulk{Cause: fmt.Errorf("delete memories: %w", err),
			Errors: []BulkError{{BulkDatabase, "The database did not answer and nothing was deleted. Try again."}}}, nil
	}
	out := Bulk{Deleted: len(deleted.IDs)}
	if err := s.unindex(ctx, who, deleted.Units); err != nil {
		out.Cause = err
		out.Errors = []BulkError{{BulkIndex,
			"The memories are deleted; their vectors are queued and will be removed when the vector store is back."}}
	}
	return out, nil
}

// unindex tries to remove units from the index at once.
func (s *Service) unindex(ctx context.Context, who tenant.Identity, units []retrieve.UnitID) error {
	if len(units) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.IndexTimeout)
	defer cancel()
	if err := s.Index.Delete(ctx, who.Tenant, who.Placement, units); err != nil {
		return fmt.Errorf("remove vectors: %w", err)
	}
	return nil
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
