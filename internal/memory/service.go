package memory

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	defaultEmbedTimeout = 2 * time.Second
	defaultIndexTimeout = time.Second
	// maxSource is the maximum length of the name of the writing client, in characters.
	maxSource = 200
)

// Searcher searches units by meaning and by words. retrieve.Engine implements it.
type Searcher interface {
	Search(ctx context.Context, scope tenant.Scope, p placement.Location, q retrieve.Query) (retrieve.Result, error)
	// Similar returns the live units of the query's kind that are most similar to a text, of which embed returns the
	// vector.
	Similar(ctx context.Context, scope tenant.Scope, p placement.Location, q retrieve.Query, embed func() []float32) ([]retrieve.Similar, error)
}

// Config holds the dependencies of a Service. All but the timeouts are required.
type Config struct {
	Store     Store
	Buckets   BucketStore
	Searcher  Searcher
	Index     indexing.Store
	Embedders retrieve.Embedders
	// CountTokens returns the number of tokens in a text.
	CountTokens func(text string) int
	// EmbedTimeout bounds the wait for an embedding when a memory is stored, after
	// which the index job embeds it. The default is 2 s.
	EmbedTimeout time.Duration
	// IndexTimeout bounds the synchronous removal from the index when a memory is
	// deleted, after which the index job does it. The default is 1 s.
	IndexTimeout time.Duration
}

// Service stores, lists and searches memories.
type Service struct {
	Config
}

// NewService returns a Service.
func NewService(c Config) *Service {
	c.EmbedTimeout = cmp.Or(c.EmbedTimeout, defaultEmbedTimeout)
	c.IndexTimeout = cmp.Or(c.IndexTimeout, defaultIndexTimeout)
	return &Service{Config: c}
}

// Validate returns one Invalid error for all invalid fields.
func (in CreateInput) Validate() error {
	_, err := in.checked()
	return err
}

// checked returns the input as it is stored, or one Invalid error for all invalid fields.
func (in CreateInput) checked() (CreateInput, error) {
	var f fault.Fields
	checkText(&f, in.Text)
	if utf8.RuneCountInString(in.Source) > maxSource {
		f.Add("source", "must be at most %d characters", maxSource)
	}
	checkString(&f, "source", in.Source)
	in.Attributes = in.Normalize(&f)
	return in, f.Err()
}

// Create stores a memory, unless the bucket contains one with exactly this text and
// these attributes, or the text is that of a memory with the decorations of a recall. It returns Invalid for an invalid input, NotFound for an unknown bucket and Forbidden
// when a quota is exceeded. If the embedder is slow or unavailable, only semantic
// search of it is delayed.
func (s *Service) Create(ctx context.Context, who tenant.Identity, in CreateInput) (Created, error) {
	in, err := in.checked()
	if err != nil {
		return Created{}, err
	}
	units := retrieve.MemoryUnits(in.Text)
	m := NewMemory{CreateInput: in, Tokens: s.CountTokens(in.Text), Units: units, Repeats: repeats(in.Text)}
	var prepared Prepared
	var wait sync.WaitGroup
	wait.Go(func() { prepared, _ = s.Store.Prepare(ctx, who.Scope, m) }) // on failure Create does it
	links, duplicates := compare(in.Text, s.similar(ctx, who, in.Text, "", in.Subject(), units))
	wait.Wait()
	m.Prepared, m.Links, m.Similar = prepared, links, duplicates
	created, err := s.Store.Create(ctx, who.Scope, m)
	if err != nil {
		return Created{}, fmt.Errorf("store memory: %w", err)
	}
	return created, nil
}

// embed sets the units' vectors if the embedder responds in time. Otherwise the
// index job embeds them.
func (s *Service) embed(ctx context.Context, g placement.GenerationID, units []retrieve.Unit) {
	ctx, cancel := context.WithTimeout(ctx, s.EmbedTimeout)
	defer cancel()
	texts := make([]string, len(units))
	for i, u := range units {
		texts[i] = u.Dense
	}
	vectors, err := s.Embedders.Embed(ctx, g, texts)
	if err != nil || len(vectors) != len(units) {
		return
	}
	for i := range units {
		units[i].Vector, units[i].Generation = vectors[i], g
	}
}

// Get returns a memory, or NotFound.
func (s *Service) Get(ctx context.Context, who tenant.Identity, id string) (Memory, error) {
	found, err := s.Store.ByID(ctx, who.Scope, resolvable([]string{id}), time.Time{})
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	if len(found) == 0 {
		return Memory{}, ErrMemoryNotFound
	}
	return found[0], nil
}

// Find returns those of the memories that exist, in the order of the ids.
func (s *Service) Find(ctx context.Context, who tenant.Identity, ids []string) ([]Memory, error) {
	found, err := s.byID(ctx, who, resolvable(ids), time.Time{})
	if err != nil {
		return nil, err
	}
	var out []Memory
	for _, id := range ids {
		if m, ok := found[id]; ok {
			out = append(out, m)
		}
	}
	return out, nil
}

// Delete deletes a memory from the database and, if it is available, from the
// index. It returns NotFound for an unknown memory.
func (s *Service) Delete(ctx context.Context, who tenant.Identity, id string) error {
	deleted, err := s.Store.Delete(ctx, who.Scope, resolvable([]string{id}))
	if err != nil {
		return fmt.Errorf("delete memory: %w", err)
	}
	if len(deleted.IDs) == 0 {
		return ErrMemoryNotFound
	}
	// On failure the index job removes them.
	_ = s.unindex(ctx, who, deleted.Units)
	return nil
}

// Bulk is the result of DeleteMany.
type Bulk struct {
	Deleted int // memories deleted from the database, with those that were merged into them
	Errors  []BulkError
	Cause   error // the cause of Errors, for the log; nil on success
}

// BulkError reports a failure for one memory or for the whole batch.
type BulkError struct {
	MemoryID string
	Err      string // shown to the caller
}

// Values of BulkError.MemoryID for a failure of the whole batch.
const (
	BulkDatabase = "postgres_bulk" // nothing was deleted
	BulkIndex    = "milvus_bulk"   // the memories are deleted, the vectors not yet
)

// DeleteMany deletes memories. Unknown ids are skipped. It returns Invalid for an
// empty list or more than MaxBulk ids; failures of the stores are in the result.
func (s *Service) DeleteMany(ctx context.Context, who tenant.Identity, ids []string) (Bulk, error) {
	if n := len(ids); n == 0 || n > MaxBulk {
		var f fault.Fields
		f.Add("memory ids", "must contain 1 to %d ids, not %d", MaxBulk, n)
		return Bulk{}, f.Err()
	}
	deleted, err := s.Store.Delete(ctx, who.Scope, resolvable(ids))
	if err != nil {
		return Bulk{Cause: fmt.Errorf("delete memories: %w", err),
			Errors: []BulkError{{BulkDatabase, "The database is unavailable; nothing was deleted. Try again."}}}, nil
	}
	out := Bulk{Deleted: len(deleted.IDs) + len(deleted.Merged)}
	if err := s.unindex(ctx, who, deleted.Units); err != nil {
		out.Cause = err
		out.Errors = []BulkError{{BulkIndex,
			"The memories are deleted. Their vectors are queued for deletion until the vector store is available."}}
	}
	return out, nil
}

// DeleteUndoable deletes memories, like Delete, and returns their number and the id of
// the deletion, which Undelete undoes for tenant.UndoWindow. Unknown ids are skipped.
func (s *Service) DeleteUndoable(ctx context.Context, who tenant.Identity, ids []string) (n int, undo string, err error) {
	if n := len(ids); n == 0 || n > MaxBulk {
		var f fault.Fields
		f.Add("memory ids", "must contain 1 to %d ids, not %d", MaxBulk, n)
		return 0, "", f.Err()
	}
	deleted, err := s.Store.DeleteUndoable(ctx, who.Scope, resolvable(ids))
	if err != nil {
		return 0, "", fmt.Errorf("delete memories: %w", err)
	}
	// On failure the index job removes them.
	_ = s.unindex(ctx, who, deleted.Units)
	return len(deleted.IDs), deleted.Undo, nil
}

// Undelete restores the memories of a deletion and returns their number. It returns
// NotFound if the deletion is final, and Forbidden when a quota is exceeded.
func (s *Service) Undelete(ctx context.Context, who tenant.Identity, undo string) (int, error) {
	ids, err := s.Store.Undelete(ctx, who.Scope, undo)
	if err != nil {
		return 0, fmt.Errorf("undelete memories: %w", err)
	}
	return len(ids), nil
}

// unindex tries to remove units from the index synchronously.
func (s *Service) unindex(ctx context.Context, who tenant.Identity, units []retrieve.UnitID) error {
	if len(units) == 0 || !who.Placement.Indexed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.IndexTimeout)
	defer cancel()
	if err := s.Index.Delete(ctx, who.Tenant, who.Placement, units); err != nil {
		return fmt.Errorf("remove vectors: %w", err)
	}
	return nil
}

// resolvable drops strings that cannot be ids and that the database would reject.
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
