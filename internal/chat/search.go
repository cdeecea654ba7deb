package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

const (
	// DefaultResults is the default number of passages per search.
	DefaultResults = 20
	// MaxResults is the maximum number of passages per search.
	MaxResults = 100
	// DefaultAround is the default number of messages on either side of a passage.
	DefaultAround = 4
	// MaxAround is the maximum number of messages on either side of a passage.
	MaxAround = 20
)

// SearchInput is a search in the user's active conversations.
type SearchInput struct {
	Query    string
	Limit    int       // 1 to MaxResults
	Skip     int       // results to omit
	Depth    int       // results to rank if more than Limit. The order of a ranking depends on it, so all pages need the same
	Platform string    // "" for all
	Around   int       // messages on either side, 0 to MaxAround
	From, To time.Time // creation of conversations, To is exclusive; zero for no limit
	AsOf     time.Time // only messages written before it; zero for now
	// Zone is the user's time zone, for times that Query mentions; nil for UTC.
	Zone *time.Location
	// MinScore omits results with a lower score; nil for relevant results only.
	MinScore   *float64
	SkipRerank bool // do not ask the reranker
	// Ranking is "" for the fused ranking, or a part of it to measure.
	Ranking retrieve.Ranking
}

// Validate returns one Invalid error that lists every invalid field.
func (in SearchInput) Validate() error {
	var f fault.Fields
	if textrule.IsBlank(in.Query) {
		f.Add("query", "is required and must not be blank")
	}
	retrieve.CheckQuery(&f, "query", in.Query)
	checkString(&f, "query", in.Query)
	checkString(&f, "platform filter", in.Platform)
	if in.Limit < 1 || in.Limit > MaxResults {
		f.Add("limit", "must be 1 to %d, not %d", MaxResults, in.Limit)
	}
	if in.Skip < 0 || in.Depth < 0 || in.Depth > MaxResults {
		f.Add("skip", "must be at least 0, and depth 0 to %d", MaxResults)
	}
	if in.Around < 0 || in.Around > MaxAround {
		f.Add("context size", "must be 0 to %d, not %d", MaxAround, in.Around)
	}
	retrieve.CheckMinScore(&f, in.MinScore)
	if !slices.Contains([]retrieve.Ranking{"", retrieve.Fused, retrieve.Lexical, retrieve.Dense}, in.Ranking) {
		f.Add("ranking", "must be fused, lexical or dense")
	}
	return f.Err()
}

// SearchResult is a passage that matches a search.
type SearchResult struct {
	Passage
	// Irrelevant passages are found only with a MinScore. They come last.
	Irrelevant bool
	Rank       int     // in the ranking, from 0
	Score      float64 // 0 to 1: the probability that it is relevant
}

// Search returns the best passages, best first, and reports whether the result is
// degraded because the vector store was not fully available.
func (s *Service) Search(ctx context.Context, who tenant.Identity, in SearchInput) ([]SearchResult, bool, error) {
	if err := in.Validate(); err != nil {
		return nil, false, err
	}
	return s.find(ctx, who, in, retrieve.Query{Text: in.Query, From: in.From, To: in.To, Before: in.AsOf, Ranking: in.Ranking})
}

// find runs the query and reads the passages. Messages from a time that the
// question mentions rank first.
func (s *Service) find(ctx context.Context, who tenant.Identity, in SearchInput, q retrieve.Query) ([]SearchResult, bool, error) {
	q.Kind, q.Limit, q.Generation, q.MinScore, q.SkipRerank = retrieve.Chat, max(in.Limit, in.Depth), who.Generation, in.MinScore, in.SkipRerank
	if NormalizePlatform(in.Platform) != "" {
		q.Group = groupOf(in.Platform)
	}
	now := s.Now()
	if !in.AsOf.IsZero() && in.AsOf.Before(now) {
		now = in.AsOf.Add(-time.Nanosecond) // the last moment of the day if it was a date
	}
	q.Zone = in.Zone
	q.Window, _ = retrieve.ParseWindow(in.Query, retrieve.InZone(now, in.Zone))
	ranking, err := s.Searcher.Search(ctx, who.Scope, who.Placement, q)
	if err != nil {
		return nil, false, fmt.Errorf("search conversations: %w", err)
	}
	out, err := s.results(ctx, who.Scope, in, ranking)
	return out, ranking.Degraded, err
}

// results reads the selected passages of a ranking, in its order. It omits messages that
// no longer exist.
func (s *Service) results(ctx context.Context, scope tenant.Scope, in SearchInput, ranking retrieve.Result) ([]SearchResult, error) {
	found := ranking.Found[min(in.Skip, len(ranking.Found)):]
	found = found[:min(in.Limit, len(found))]
	if len(found) == 0 {
		return nil, nil
	}
	positions := make([]Position, len(found))
	for i, f := range found {
		positions[i] = Position{f.Owner, f.Seq, f.Start, f.End, f.ID}
	}
	list, err := s.Passages.Passages(ctx, scope, positions, in.Around)
	if err != nil {
		return nil, fmt.Errorf("read passages: %w", err)
	}
	platform := NormalizePlatform(in.Platform)
	at := make(map[Position]Passage, len(list))
	for _, p := range list {
		if !in.AsOf.IsZero() {
			p.Context = slices.DeleteFunc(p.Context, func(m Message) bool { return !m.CreatedAt.Before(in.AsOf) })
		}
		at[p.Position] = p
	}
	out := make([]SearchResult, 0, len(found))
	for i, f := range found {
		p, ok := at[positions[i]]
		// Groups are hashes of platform names and may collide.
		if !ok || platform != "" && NormalizePlatform(p.Conversation.Platform) != platform {
			continue
		}
		rank := in.Skip + i
		out = append(out, SearchResult{Passage: p, Irrelevant: rank >= ranking.Relevant(), Rank: rank, Score: f.Score})
	}
	return out, nil
}
