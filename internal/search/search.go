package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Kind is a kind of data to search.
type Kind string

// The kinds of data.
const (
	Memories Kind = "memories"
	Chats    Kind = "chats"
)

// Kinds are all kinds of data.
var Kinds = []Kind{Memories, Chats}

// MemoryService searches memories; memory.Service implements it.
type MemoryService interface {
	List(ctx context.Context, who tenant.Identity, in memory.ListInput) (memory.Listing, error)
}

// ChatService searches conversations; chat.Service implements it.
type ChatService interface {
	Search(ctx context.Context, who tenant.Identity, in chat.SearchInput) ([]chat.SearchResult, bool, error)
	Recall(ctx context.Context, who tenant.Identity, in chat.RecallInput) ([]chat.Recollection, bool, error)
}

// Service searches both.
type Service struct {
	Memories MemoryService
	Chats    ChatService
}

// Input is a search in the user's memories and active conversations.
type Input struct {
	Query    string
	Include  []Kind // empty for all
	Limit    int    // 1 to chat.MaxResults
	Around   int    // messages of context around a passage, 0 to chat.MaxAround
	MinScore *float64
	AsOf     time.Time // only what was known before it; zero for now
	// Zone is the user's time zone, for times that Query mentions; nil for UTC.
	Zone *time.Location
	// Where selects memories. Conversations have none of its fields.
	Where filter.Filter
}

// Validate returns one Invalid error that lists every invalid field.
func (in Input) Validate() error {
	var f fault.Fields
	CheckKinds(&f, in.Include)
	if !in.Where.IsZero() && slices.Contains(in.Include, Chats) {
		f.Add("include", "must not contain chats with a filter, which selects memories only")
	}
	return fault.Join(f.Err(), in.chats().Validate())
}

// CheckKinds adds an error for the first unknown kind.
func CheckKinds(f *fault.Fields, kinds []Kind) {
	for i, k := range kinds {
		if !slices.Contains(Kinds, k) {
			f.Add(fmt.Sprintf("include[%d]", i), "must be memories or chats, not %q", k)
			return
		}
	}
}

func (in Input) includes(k Kind) bool {
	if k == Chats && !in.Where.IsZero() {
		return false
	}
	return len(in.Include) == 0 || slices.Contains(in.Include, k)
}

func (in Input) chats() chat.SearchInput {
	return chat.SearchInput{Query: in.Query, Limit: in.Limit, Around: in.Around, MinScore: in.MinScore, AsOf: in.AsOf, Zone: in.Zone}
}

// Result is a memory or a passage; the other one is nil.
type Result struct {
	Memory  *memory.Memory
	Passage *chat.SearchResult
	Score   float64 // 0 to 1: the probability that it is relevant
	// Irrelevant results are found only with a MinScore. They come last.
	Irrelevant bool
}

// At returns the time of the message, or when the memory was stored.
func (r Result) At() time.Time {
	if r.Memory != nil {
		return r.Memory.CreatedAt
	}
	return r.Passage.Message.CreatedAt
}

// Search returns the best results of both kinds, best first, and reports whether the
// result is degraded because the vector store was not fully available.
func (s Service) Search(ctx context.Context, who tenant.Identity, in Input) ([]Result, bool, error) {
	if err := in.Validate(); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var memories, passages found
	var wait sync.WaitGroup
	wait.Go(func() {
		if memories = s.memories(ctx, who, in); memories.err != nil {
			cancel()
		}
	})
	if passages = s.passages(ctx, who, in); passages.err != nil {
		cancel()
	}
	wait.Wait()
	if err := firstCause(memories.err, passages.err); err != nil {
		return nil, false, err
	}
	out := slices.Concat(memories.results, passages.results)
	slices.SortStableFunc(out, func(a, b Result) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(in.Limit, len(out))], memories.degraded || passages.degraded, nil
}

// found is the result for one kind.
type found struct {
	results  []Result
	degraded bool
	err      error
}

func (s Service) memories(ctx context.Context, who tenant.Identity, in Input) (out found) {
	if !in.includes(Memories) {
		return out
	}
	listing, err := s.Memories.List(ctx, unlimited(who), memory.ListInput{Query: strings.TrimSpace(in.Query), Count: in.Limit, MinScore: in.MinScore,
		AsOf: in.AsOf, Where: in.Where})
	if err != nil {
		return found{err: fmt.Errorf("search memories: %w", err)}
	}
	out.degraded = listing.Degraded
	for i, m := range listing.Memories {
		out.results = append(out.results, Result{Memory: &listing.Memories[i], Score: m.Score, Irrelevant: i >= listing.Relevant})
	}
	return out
}

// unlimited removes the token limit of listings. A search returns at most chat.MaxResults memories, and
// has no next page with those that the limit would omit.
func unlimited(who tenant.Identity) tenant.Identity {
	who.Quota.PageTokens = math.MaxInt64
	return who
}

func (s Service) passages(ctx context.Context, who tenant.Identity, in Input) (out found) {
	if !in.includes(Chats) {
		return out
	}
	list, degraded, err := s.Chats.Search(ctx, who, in.chats())
	if err != nil {
		return found{err: fmt.Errorf("search conversations: %w", err)}
	}
	out.degraded = degraded
	for i, p := range list {
		out.results = append(out.results, Result{Passage: &list[i], Score: p.Score, Irrelevant: p.Irrelevant})
	}
	return out
}

// firstCause returns the error that canceled the other search, if any.
func firstCause(a, b error) error {
	if a == nil || b != nil && errors.Is(a, context.Canceled) {
		return b
	}
	return a
}
