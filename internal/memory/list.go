package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/trace"
)

const (
	// DefaultCount is how many memories a listing gives that names no count.
	DefaultCount = 10
	// MaxRanked is how many of the best matches a query can be walked through.
	MaxRanked = 1000
	// fewRanked is how many are ranked for the first pages, which is nearly
	// always all that is asked for: ranking fewer is cheaper.
	fewRanked = 50
	// page is how many memories are read at a time; a memory has up to 32 KiB.
	page = 200
)

// ListInput selects memories.
type ListInput struct {
	Bucket int64  // 0 for all
	Count  int    // most memories wanted; clamped to MaxCount
	All    bool   // no matter how many: Count is ignored
	Newest bool   // newest first, else oldest first; ignored with Query
	Query  string // when not blank: best match first
	Skip   int
}

// Validate reports what is wrong with the input, as one Invalid error.
func (in ListInput) Validate() error {
	var f fault.Fields
	if in.Count < 1 && !in.All {
		f.Add("count", "must be at least 1, not %d", in.Count)
	}
	if in.Skip < 0 {
		f.Add("skip", "must be at least 0, not %d", in.Skip)
	}
	checkString(&f, "query", in.Query)
	return f.Err()
}

// depth returns how many matches to rank: one more than is shown, to know
// whether more follow, but in two steps, so that the pages of a walk are cut
// from one ranking.
func (in ListInput) depth() int {
	if !in.All && in.Skip < fewRanked && in.Count < fewRanked-in.Skip {
		return fewRanked
	}
	return MaxRanked
}

// Listing is a part of a user's memories, with all buckets.
type Listing struct {
	Memories []Memory
	Buckets  []Bucket
	NextSkip int  // where the rest begins; 0 when there is none
	Degraded bool // the query was answered without all of the vector store
}

// List returns memories in the order the input asks for, as many as the
// tenant's token limit lets through but at least one. Invalid for a bad input,
// NotFound for an unknown bucket.
func (s *Service) List(ctx context.Context, who tenant.Identity, in ListInput) (Listing, error) {
	if err := in.Validate(); err != nil {
		return Listing{}, err
	}
	buckets, err := s.Buckets.ListBuckets(ctx, who.Scope)
	if err != nil {
		return Listing{}, fmt.Errorf("list buckets: %w", err)
	}
	known := func(b Bucket) bool { return b.ID == in.Bucket }
	if in.Bucket != 0 && !slices.ContainsFunc(buckets, known) {
		return Listing{}, ErrNoBucket
	}
	out := Listing{Buckets: buckets}
	pack := &packer{limit: who.Quota.ListTokens, count: min(in.Count, MaxCount)}
	if in.All {
		pack.count = -1
	}
	var more bool
	if strings.TrimSpace(in.Query) != "" {
		more, out.Degraded, err = s.ranked(ctx, who, in, pack)
	} else {
		more, err = s.walk(ctx, who, in, pack)
	}
	if err != nil {
		return Listing{}, err
	}
	out.Memories = pack.out
	if more {
		out.NextSkip = in.Skip + pack.seen
	}
	return out, nil
}

// walk packs memories in the order of writing and reports whether more follow.
func (s *Service) walk(ctx context.Context, who tenant.Identity, in ListInput, pack *packer) (bool, error) {
	f := Filter{Bucket: in.Bucket, Newest: in.Newest, Skip: in.Skip}
	for {
		f.Limit = pack.room()
		batch, more, err := s.Store.List(ctx, who.Scope, f)
		if err != nil {
			return false, fmt.Errorf("list memories: %w", err)
		}
		for _, m := range batch {
			if !pack.add(m) {
				return true, nil
			}
		}
		if !more || len(batch) == 0 || pack.room() == 0 {
			return more && len(batch) > 0, nil
		}
		f.Skip += len(batch)
	}
}

// ranked packs the best matches and reports whether more of the ranking
// follow, and whether it was made without all of the vector store.
func (s *Service) ranked(ctx context.Context, who tenant.Identity, in ListInput, pack *packer) (more, degraded bool, err error) {
	res, err := s.Searcher.Search(ctx, who.Scope, who.Placement,
		retrieve.Query{Kind: retrieve.Memory, Text: in.Query, Group: in.Bucket, Limit: in.depth()})
	if err != nil {
		return false, false, fmt.Errorf("search memories: %w", err)
	}
	ids := owners(res.Found)
	ids = ids[min(in.Skip, len(ids)):]
	for len(ids) > 0 && pack.room() > 0 {
		batch := ids[:min(pack.room(), len(ids))]
		found, err := s.byID(ctx, who, batch)
		if err != nil {
			return false, false, err
		}
		for _, id := range batch {
			m, ok := found[id]
			if !ok { // deleted since it was ranked
				pack.seen++
				continue
			}
			if !pack.add(m) {
				return true, res.Degraded, nil
			}
		}
		ids = ids[len(batch):]
	}
	return len(ids) > 0, res.Degraded, nil
}

func (s *Service) byID(ctx context.Context, who tenant.Identity, ids []string) (map[string]Memory, error) {
	ctx, end := trace.Begin(ctx, trace.Hydrate)
	defer end()
	list, err := s.Store.ByID(ctx, who.Scope, ids)
	if err != nil {
		return nil, fmt.Errorf("read memories: %w", err)
	}
	found := make(map[string]Memory, len(list))
	for _, m := range list {
		found[m.ID] = m
	}
	return found, nil
}

// owners returns the memories of a ranking, which holds each of them once.
func owners(found []retrieve.Found) []string {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.Owner
	}
	return ids
}

// packer collects memories until the count or the token limit is reached.
type packer struct {
	limit  int64 // tokens
	count  int   // most memories; negative for no matter how many
	tokens int64
	seen   int // places of the order used up
	out    []Memory
}

// room returns how many memories to read next.
func (p *packer) room() int {
	if p.count < 0 {
		return page
	}
	return min(page, p.count-len(p.out))
}

// add takes the memory unless it would pass the token limit; the first is
// always taken.
func (p *packer) add(m Memory) bool {
	if len(p.out) > 0 && p.tokens+int64(m.Tokens) > p.limit {
		return false
	}
	p.tokens += int64(m.Tokens)
	p.seen++
	p.out = append(p.out, m)
	return true
}
