package mem0

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

// defaultTop is the number of results if the request sets none.
const defaultTop = 10

type searchIn struct {
	Query string `json:"query"`
	entities
	Filters      json.RawMessage `json:"filters"`
	Metadata     json.RawMessage `json:"metadata"` // members that must be equal
	TopK         *int            `json:"top_k"`
	Limit        *int            `json:"limit"` // the former name of top_k
	Threshold    *float64        `json:"threshold"`
	OutputFormat string          `json:"output_format"`
}

type resultsOut struct {
	Results []memoryOut `json:"results"`
}

// notSearched are the options of search and list that are refused, because ignoring them
// would change what is found.
var notSearched = map[string]string{
	"categories":     "is not supported: there are no categories",
	"latest_only":    "is not supported: a memory that replaces another one is sorted before it",
	"reference_date": "is not supported",
}

func (e *Endpoint) search(ctx context.Context, r Request) (any, error) {
	_, out, err := e.matches(ctx, r)
	return out, err
}

// searchV1 returns a list unless the request asks for the later form.
func (e *Endpoint) searchV1(ctx context.Context, r Request) (any, error) {
	in, out, err := e.matches(ctx, r)
	if err != nil || in.OutputFormat == outputV11 {
		return out, err
	}
	return out.Results, nil
}

// matches searches the memories that match all filters.
func (e *Endpoint) matches(ctx context.Context, r Request) (searchIn, resultsOut, error) {
	var in searchIn
	if err := errors.Join(e.Decode(r.Body, &in), rejectUnsupported(r.Body, notSearched)); err != nil {
		return in, resultsOut{}, firstOf(err)
	}
	if textrule.IsBlank(in.Query) {
		return in, resultsOut{}, fault.New(fault.Invalid, "query is required and must not be blank")
	}
	count, err := in.count()
	if err != nil {
		return in, resultsOut{}, err
	}
	selected, err := in.selection(r)
	if err != nil {
		return in, resultsOut{}, err
	}
	who, err := e.actor(ctx, r, selected.user, false)
	if err != nil {
		return in, resultsOut{}, err
	}
	// A search has no next page with the memories that the token limit of listings would omit.
	who.Quota.PageTokens = math.MaxInt64
	listing, err := e.Memories.List(ctx, who, memory.ListInput{
		Query: in.Query, Where: selected.where, Count: count, MinScore: in.Threshold,
	})
	if err != nil {
		return in, resultsOut{}, err
	}
	if listing.Degraded {
		r.Degraded()
	}
	out := resultsOut{Results: make([]memoryOut, len(listing.Memories))}
	for i, m := range listing.Memories {
		out.Results[i] = toOut(who, m)
		out.Results[i].Score = &listing.Memories[i].Score
	}
	return in, out, nil
}

// count returns the maximum number of results.
func (in searchIn) count() (int, error) {
	var problems fault.Fields
	count := defaultTop
	for _, given := range []struct {
		name  string
		value *int
	}{{"limit", in.Limit}, {"top_k", in.TopK}} {
		if given.value == nil {
			continue
		}
		if count = *given.value; count < 1 {
			problems.Add(given.name, "must be at least 1, not %d", count)
		}
	}
	return count, problems.Err()
}

func (in searchIn) selection(r Request) (selection, error) {
	filters, err := parseObject("filters", in.Filters)
	if err != nil {
		return selection{}, err
	}
	metadata, err := parseObject("metadata", in.Metadata)
	if err != nil {
		return selection{}, err
	}
	equal := map[string]any{}
	if len(metadata) > 0 {
		equal["metadata"] = any(metadata)
	}
	return selectBy(r, object{root, filters}, object{members: in.conditions()}, object{members: equal})
}
