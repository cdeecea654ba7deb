package mem0

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strconv"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// defaultPage and maxPage are the numbers of items of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

type listIn struct {
	entities
	Filters   json.RawMessage `json:"filters"`
	StartDate string          `json:"start_date"`
	EndDate   string          `json:"end_date"`
}

// pageOut is a page of a list.
type pageOut[T any] struct {
	Count    int     `json:"count"` // of all pages
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []T     `json:"results"`
}

// paging is the page that a request asks for.
type paging struct {
	path  string
	page  int // the first is 1
	size  int
	sized bool // whether the request sets the size
}

func pagingOf(f *fault.Fields, path string, query url.Values) paging {
	size := number(f, query, "page_size", defaultPage, 1)
	return paging{path: path, page: number(f, query, "page", 1, 1), size: min(size, maxPage), sized: query.Get("page_size") != ""}
}

func (p paging) skip() int { return (p.page - 1) * p.size }

// link returns the path of another page.
func (p paging) link(page int) *string {
	to := p.path + "?page=" + strconv.Itoa(page) + "&page_size=" + strconv.Itoa(p.size)
	return &to
}

// pageOf returns a page of items, of which there are count.
func pageOf[T any](p paging, items []T, count int) pageOut[T] {
	out := pageOut[T]{Count: count, Results: items}
	if p.skip()+len(items) < count && len(items) > 0 {
		out.Next = p.link(p.page + 1)
	}
	if p.page > 1 {
		out.Previous = p.link(p.page - 1)
	}
	return out
}

func (e *Endpoint) list(ctx context.Context, r Request) (any, error) {
	return e.page(ctx, r, "/mem0/v3/memories/", true)
}

// listV2 returns a page if the request asks for one, and otherwise a list.
func (e *Endpoint) listV2(ctx context.Context, r Request) (any, error) {
	return unpaged(r, func(paged bool) (pageOut[memoryOut], error) { return e.page(ctx, r, "/mem0/v2/memories/", paged) })
}

// listV1 is listV2 with the entities in the query.
func (e *Endpoint) listV1(ctx context.Context, r Request) (any, error) {
	in := listIn{entities: entitiesOf(r.Query), StartDate: r.Query.Get("start_date"), EndDate: r.Query.Get("end_date")}
	return unpaged(r, func(paged bool) (pageOut[memoryOut], error) { return e.pageOf(ctx, r, in, "/mem0/v1/memories/", paged) })
}

func unpaged(r Request, page func(paged bool) (pageOut[memoryOut], error)) (any, error) {
	paged := r.Query.Has("page") || r.Query.Has("page_size")
	out, err := page(paged)
	if err != nil || paged {
		return out, err
	}
	return out.Results, nil
}

func (e *Endpoint) page(ctx context.Context, r Request, path string, paged bool) (pageOut[memoryOut], error) {
	var in listIn
	if err := errors.Join(e.Decode(r.Body, &in), rejectUnsupported(r.Body, notSearched)); err != nil {
		return pageOut[memoryOut]{}, firstOf(err)
	}
	return e.pageOf(ctx, r, in, path, paged)
}

// pageOf returns a page of the memories that match all filters, newest first. If the response is not paged, it has no link
// to the memories that the tenant's token limit would omit.
func (e *Endpoint) pageOf(ctx context.Context, r Request, in listIn, path string, paged bool) (pageOut[memoryOut], error) {
	var problems fault.Fields
	p := pagingOf(&problems, path, r.Query)
	if err := problems.Err(); err != nil {
		return pageOut[memoryOut]{}, err
	}
	selected, err := in.selection(r)
	if err != nil {
		return pageOut[memoryOut]{}, err
	}
	who, err := e.actor(ctx, r, selected.user, false)
	if err != nil {
		return pageOut[memoryOut]{}, err
	}
	count, err := e.Memories.Count(ctx, who, selected.where)
	if err != nil {
		return pageOut[memoryOut]{}, err
	}
	if !paged {
		who.Quota.PageTokens = math.MaxInt64
	}
	items, err := e.items(ctx, who, selected.where, &p)
	return pageOf(p, items, count), err
}

// items returns the memories of a page. The tenant's token limit makes the first page of a
// request without a size smaller, and with it the following ones; a page of a given size
// that exceeds it is an error, because the next page would begin after it.
func (e *Endpoint) items(ctx context.Context, who tenant.Identity, where filter.Filter, p *paging) ([]memoryOut, error) {
	listing, err := e.Memories.List(ctx, who, memory.ListInput{Where: where, Newest: true, Count: p.size, Skip: p.skip()})
	if err != nil {
		return nil, err
	}
	items := make([]memoryOut, len(listing.Memories))
	for i, m := range listing.Memories {
		items[i] = toOut(who, m)
	}
	switch cut := listing.NextSkip != 0 && len(items) < p.size; {
	case cut && (p.sized || p.page > 1):
		return nil, fault.New(fault.Invalid, "page_size must be smaller: the page exceeds the limit of %d tokens", who.Quota.PageTokens)
	case cut:
		p.size = len(items)
	}
	return items, nil
}

func (in listIn) selection(r Request) (selection, error) {
	filters, err := parseObject("filters", in.Filters)
	if err != nil {
		return selection{}, err
	}
	during, err := in.during()
	if err != nil {
		return selection{}, err
	}
	selected, err := selectBy(r, object{root, filters}, object{members: in.conditions()})
	selected.where = and(selected.where, during)
	return selected, err
}

// during returns the filter of the dates.
func (in listIn) during() (filter.Filter, error) {
	var problems fault.Fields
	var out filter.Filter
	if in.StartDate != "" {
		out = filter.ParseCondition(&problems, "start_date", filter.CreatedAt, filter.Gte, inUTC(in.StartDate, true))
	}
	if in.EndDate != "" {
		out = and(out, filter.ParseCondition(&problems, "end_date", filter.CreatedAt, filter.Lte, inUTC(in.EndDate, true)))
	}
	return out, problems.Err()
}

// entitiesOf returns the entities of a query.
func entitiesOf(query url.Values) entities {
	return entities{query.Get("user_id"), query.Get("agent_id"), query.Get("app_id"), query.Get("run_id")}
}
