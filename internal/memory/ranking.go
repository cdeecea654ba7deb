package memory

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// MaxRanked is the maximum number of matches that a query ranks.
	MaxRanked = 1000
	// firstRanked is the number of matches ranked for the first pages. Most requests
	// need no more, and ranking fewer is cheaper.
	firstRanked = 50
)

// ranked packs the best matches and reports whether more of the ranking follow. It
// sets Degraded, and Relevant to the number of relevant matches in the ranking.
func (s *Service) ranked(ctx context.Context, who tenant.Identity, in ListInput, pack *packer, out *Listing) (bool, error) {
	res, err := s.ranking(ctx, who, in)
	if err != nil {
		return false, err
	}
	out.Degraded, out.Relevant = res.Degraded, res.Relevant()
	ranking := res.Found[min(in.Skip, len(res.Found)):]
	for len(ranking) > 0 && pack.remaining(MaxPage) > 0 {
		batch := ranking[:min(pack.remaining(pack.page()), len(ranking))]
		found, err := s.byID(ctx, who, owners(batch), in.AsOf)
		if err != nil {
			return false, err
		}
		for _, f := range batch {
			m, ok := found[f.Owner]
			if !ok { // deleted after ranking
				pack.seen++
				continue
			}
			m.Score = f.Score
			if !pack.add(m) {
				return true, nil
			}
		}
		ranking = ranking[len(batch):]
	}
	return len(ranking) > 0, nil
}

// ranking ranks the matches of a query, as many as the page needs. The order of a ranking depends on
// its depth, so a page beyond firstRanked has the first matches of the ranking that the pages
// before it come from. The others follow as a deeper one orders them. A ranking also depends on
// whether the units of the user are cached, so pages can differ from it if that changes.
func (s *Service) ranking(ctx context.Context, who tenant.Identity, in ListInput) (retrieve.Result, error) {
	first, err := s.rank(ctx, who, in, firstRanked)
	if err != nil || !in.All && in.Skip < firstRanked && in.Count < firstRanked-in.Skip {
		return first, err
	}
	deep, err := s.rank(ctx, who, in, MaxRanked)
	return followedBy(first, deep), err
}

func (s *Service) rank(ctx context.Context, who tenant.Identity, in ListInput, depth int) (retrieve.Result, error) {
	res, err := s.Searcher.Search(ctx, who.Scope, who.Placement,
		retrieve.Query{Kind: retrieve.Memory, Text: in.Query, Group: in.Bucket, Where: in.Where, To: in.AsOf,
			Generation: who.Generation, Limit: depth, MinScore: in.MinScore, SkipRerank: depth > firstRanked})
	if err != nil {
		return res, fmt.Errorf("search memories: %w", err)
	}
	err = s.newerFirst(ctx, who, in, &res)
	return res, err
}

// followedBy appends the matches of a deeper ranking that the first one does not have. Their
// scores are at most the last one of the first ranking.
func followedBy(first, deep retrieve.Result) retrieve.Result {
	have := make(map[string]bool, len(first.Found))
	last := 1.0
	for _, f := range first.Found {
		have[f.Owner] = true
		last = f.Score
	}
	for _, f := range deep.Found {
		if !have[f.Owner] {
			f.Score = min(f.Score, last)
			first.Found = append(first.Found, f)
		}
	}
	first.Degraded = first.Degraded || deep.Degraded
	return first
}

// owners returns the memory ids of a ranking, which contains each once.
func owners(found []retrieve.Found) []string {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.Owner
	}
	return ids
}
