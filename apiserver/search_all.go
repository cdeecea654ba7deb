package apiserver

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/search"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// both returns the service that searches memories and conversations together.
func (s *Server) both() search.Service {
	return search.Service{Memories: s.Memories, Chats: s.Chats}
}

type searchAllInput struct {
	Body struct {
		Query         string         `json:"query" minLength:"1" maxLength:"8192" doc:"A search query in natural language. At most 8,192 bytes."`
		Include       []search.Kind  `json:"include,omitempty" enum:"memories,chats" doc:"What to search; default both, or only memories with a filter."`
		Filter        *httpx.Object  `json:"filter,omitempty" doc:"Only memories that match this filter. Conversations have none of its fields, so include must not contain chats."`
		Limit         *httpx.Integer `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"The number of results; default 20."`
		ContextChunks *httpx.Integer `json:"contextChunks,omitempty" minimum:"0" maximum:"20" doc:"The number of messages of context on either side of a passage; default 4. The farthest are omitted if their texts have more than 256 KiB together."`
		AsOf          *string        `json:"asOf,omitempty" doc:"Answer from what was known at this ISO 8601 time: only memories stored and messages written until then; a date includes the whole day."`
		MinScore      *float64       `json:"minScore,omitempty" minimum:"0" maximum:"1" doc:"The score below which results are omitted. By default, irrelevant results are omitted; 0 returns all. Not applied while the embedding model is unavailable: scores are not comparable then."`
		TimeZone      *string        `json:"timeZone,omitempty" doc:"The user's IANA time zone, such as Europe/Berlin, of times mentioned in a query, such as today or last May, and of dates and times without a zone; default UTC. Dates in filter are in UTC."`
	} `nameHint:"SearchAllRequest"`
}

type searchAllOutput struct {
	Degraded string `header:"X-Degraded"`
	Body     allResultsBody
}

type allResultsBody struct {
	Results        []anyResultBody `json:"results" doc:"Best match first."`
	TotalResults   int             `json:"totalResults"`
	Query          string          `json:"query"`
	ProcessingTime float64         `json:"processingTime" doc:"Milliseconds."`
}

type anyResultBody struct {
	Type    string            `json:"type" enum:"memory,chat"`
	Score   float64           `json:"score" minimum:"0" maximum:"1" doc:"The probability that the result is relevant. Comparable only within results of one type if X-Degraded is set."`
	Memory  *memoryBody       `json:"memory,omitempty" doc:"Present for type memory."`
	Passage *searchResultBody `json:"passage,omitempty" doc:"Present for type chat."`
}

var docSearchAll = doc{
	access: tenant.AccessRead,
	id:     "searchAll", tag: "Search", summary: "Search memories and conversations",
	description: "Ranks memories and passages of active conversations in one list, and returns none if nothing is relevant. " +
		"With `filter`, only memories are searched. " + filter.Grammar + " " +
		"`X-Degraded: vector` means that the vector store was unavailable and the results are keyword matches.",
	request: example(`{"query":"where do I like to sit on trains?","include":["memories","chats"],"limit":5,"contextChunks":1}`),
	response: example(`{"results":[{"type":"memory","score":0.93,"memory":` + exampleMemory + `},` +
		`{"type":"chat","score":0.87,"passage":{"conversationId":"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15","title":"Night train to Vienna",` +
		`"text":"A window seat, as you like it.","score":0.87,"timestamp":"2025-05-09T14:30:04.000Z","sender":"assistant","messageIndex":1,` +
		`"context":[{"text":"Which seat should I book?","sender":"human","timestamp":"2025-05-09T14:30:00.000Z"}]}}],` +
		`"totalResults":2,"query":"where do I like to sit on trains?","processingTime":12.4}`),
}

func (s *Server) searchAll(ctx context.Context, who tenant.Identity, in *searchAllInput) (*searchAllOutput, error) {
	begin := time.Now()
	var p params
	zone := p.timeZone(in.Body.TimeZone)
	input := search.Input{
		Query: in.Body.Query, Include: in.Body.Include, Limit: int(value(in.Body.Limit, chat.DefaultResults)),
		Around: int(value(in.Body.ContextChunks, chat.DefaultAround)), MinScore: in.Body.MinScore,
		AsOf: p.to("asOf", value(in.Body.AsOf, "")), Zone: zone, Where: filter.Parse(&p.Fields, "filter", in.Body.Filter.Raw()),
	}
	if err := p.ErrWith(input); err != nil {
		return nil, err
	}
	found, isDegraded, err := s.both().Search(ctx, who, input)
	if err != nil {
		return nil, err
	}
	out := allResultsBody{Results: make([]anyResultBody, len(found)), TotalResults: len(found), Query: in.Body.Query}
	for i, r := range found {
		if r.Memory != nil {
			m := bodyOf(*r.Memory)
			out.Results[i] = anyResultBody{Type: "memory", Score: r.Score, Memory: &m}
			continue
		}
		p := resultOf(*r.Passage)
		out.Results[i] = anyResultBody{Type: "chat", Score: r.Score, Passage: &p}
	}
	out.ProcessingTime = float64(time.Since(begin).Microseconds()) / 1000
	return &searchAllOutput{Degraded: degraded(isDegraded), Body: out}, nil
}
