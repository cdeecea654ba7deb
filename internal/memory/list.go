package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

// DefaultCount is the page size if the request sets no count.
const DefaultCount = 10

// Pages of memories that are read at a time.
const (
	// MaxPage is the number of memories read at a time, or LongTextPage if the first of these have LongTextTokens or
	// more on average: each memory has up to 32 KiB.
	MaxPage        = 1000
	LongTextPage   = 200
	LongTextTokens = 256
)

// ListInput selects memories.
type ListInput struct {
	Bucket int64 // 0 for all
	Where  filter.Filter
	Count  int    // maximum number of memories; clamped to MaxCount
	All    bool   // no maximum: Count is ignored
	Newest bool   // newest first, else oldest first; ignored with Query
	Query  string // when not blank: best match first
	Skip   int
	// AsOf restricts the result to what was known before it; zero for now.
	AsOf time.Time
	// MinScore omits matches of Query with a lower score; nil for relevant ones only.
	MinScore *float64
	// Size returns the tokens of a memory in the response; nil for those of its text.
	Size func(Memory) int
}

// Validate returns one Invalid error for all invalid fields.
func (in ListInput) Validate() error {
	var f fault.Fields
	if in.Count < 1 && !in.All {
		f.Add("count", "must be at least 1, not %d", in.Count)
	}
	if in.Skip < 0 {
		f.Add("skip", "must be at least 0, not %d", in.Skip)
	}
	retrieve.CheckQuery(&f, "query", in.Query)
	retrieve.CheckMinScore(&f, in.MinScore)
	checkString(&f, "query", in.Query)
	return f.Err()
}

// Listing is one page of a user's memories, with all buckets.
type Listing struct {
	Memories []Memory
	Buckets  []Bucket
	NextSkip int  // the skip of the next page; 0 on the last one
	Degraded bool // the vector index was not fully searched
	// Relevant is the number of Memories that are relevant to the query; they come first.
	Relevant int
}

// List returns one page of memories in the requested order, within the tenant's
// token limit but with at least one memory. It returns Invalid for an invalid
// input and NotFound for an unknown bucket.
func (s *Service) List(ctx context.Context, who tenant.Identity, in ListInput) (Listing, error) {
	if err := in.Validate(); err != nil {
		return Listing{}, err
	}
	var out Listing
	var bucketsErr error
	var wait sync.WaitGroup
	wait.Go(func() { out.Buckets, bucketsErr = s.Buckets.ListBuckets(ctx, who.Scope) })
	pack := &packer{limit: who.Quota.PageTokens, count: min(in.Count, MaxCount), size: in.Size}
	if in.All {
		pack.count = -1
	}
	var hasMore bool
	var err error
	if !textrule.IsBlank(in.Query) {
		hasMore, err = s.ranked(ctx, who, in, pack, &out)
	} else {
		hasMore, err = s.walk(ctx, who, in, pack)
	}
	wait.Wait()
	known := func(b Bucket) bool { return b.ID == in.Bucket }
	switch {
	case bucketsErr != nil:
		return Listing{}, fmt.Errorf("list buckets: %w", bucketsErr)
	case in.Bucket != 0 && !slices.ContainsFunc(out.Buckets, known):
		return Listing{}, ErrBucketNotFound
	case err != nil:
		return Listing{}, err
	}
	out.Memories = pack.out
	out.Relevant = min(max(out.Relevant-in.Skip, 0), len(out.Memories))
	if hasMore {
		out.NextSkip = in.Skip + pack.seen
	}
	return out, nil
}

// walk packs memories in the order of writing and reports whether more follow.
func (s *Service) walk(ctx context.Context, who tenant.Identity, in ListInput, pack *packer) (bool, error) {
	f := Filter{Bucket: in.Bucket, Where: in.Where, Newest: in.Newest, AsOf: in.AsOf, Skip: in.Skip}
	for {
		f.Limit = pack.remaining(MaxPage)
		batch, hasMore, err := s.Store.List(ctx, who.Scope, f)
		if err != nil {
			return false, fmt.Errorf("list memories: %w", err)
		}
		if pack.addAll(batch) < len(batch) {
			return true, nil
		}
		if !hasMore || len(batch) == 0 || pack.remaining(MaxPage) == 0 {
			return hasMore && len(batch) > 0, nil
		}
		// Skipping the memories that were read would cost as much as reading them.
		f.After, f.Skip = batch[len(batch)-1].Seq, 0
	}
}

// Labels returns the most frequent sources and tags of the user's memories.
func (s *Service) Labels(ctx context.Context, who tenant.Identity) (Labels, error) {
	l, err := s.Store.Labels(ctx, who.Scope)
	if err != nil {
		return Labels{}, fmt.Errorf("list labels: %w", err)
	}
	return l, nil
}

func (s *Service) byID(ctx context.Context, who tenant.Identity, ids []string, asOf time.Time) (map[string]Memory, error) {
	ctx, end := trace.Begin(ctx, trace.Hydrate)
	defer end()
	list, err := s.Store.ByID(ctx, who.Scope, ids, asOf)
	if err != nil {
		return nil, fmt.Errorf("read memories: %w", err)
	}
	found := make(map[string]Memory, len(list))
	for _, m := range list {
		found[m.ID] = m
	}
	return found, nil
}

// packer collects memories until the count or the token limit is reached.
type packer struct {
	limit  int64 // tokens
	count  int   // maximum number of memories; negative for no maximum
	size   func(Memory) int
	tokens int64
	seen   int // number of ranks consumed
	out    []Memory
}

// page returns the number of memories to read next by id.
func (p *packer) page() int {
	if p.tokens < LongTextTokens*int64(len(p.out)) {
		return MaxPage
	}
	return LongTextPage
}

// remaining returns the number of memories that are missing, at most those of a page.
func (p *packer) remaining(page int) int {
	if p.count < 0 {
		return page
	}
	return min(page, p.count-len(p.out))
}

// addAll adds memories while add does, and returns their number. It keeps the first list that is added.
func (p *packer) addAll(list []Memory) int {
	if len(p.out) == 0 {
		p.out = list[:0:len(list)]
	}
	for i, m := range list {
		if !p.add(m) {
			return i
		}
	}
	return len(list)
}

// add adds the memory unless it would exceed the token limit. The first memory is
// always added.
func (p *packer) add(m Memory) bool {
	n := m.Tokens
	if p.size != nil {
		n = p.size(m)
	}
	if len(p.out) > 0 && p.tokens+int64(n) > p.limit {
		return false
	}
	p.tokens += int64(n)
	p.seen++
	p.out = append(p.out, m)
	return true
}
