package apiserver

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type searchInput struct {
	Body struct {
		Query         string         `json:"query" minLength:"1" maxLength:"8192" doc:"A search query in natural language. At most 8,192 bytes."`
		Limit         *httpx.Integer `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"The number of passages; default 20."`
		Provider      *string        `json:"provider,omitempty" doc:"The platform, or all. Case does not matter; openai means chatgpt and anthropic means claude."`
		ContextChunks *httpx.Integer `json:"contextChunks,omitempty" minimum:"0" maximum:"20" doc:"The number of messages of context on either side; default 4. The farthest are omitted if their texts have more than 256 KiB together."`
		SkipRerank    *bool          `json:"skipRerank,omitempty" doc:"Do not sort the results again with the reranker, if one is configured."`
		MinScore      *float64       `json:"minScore,omitempty" minimum:"0" maximum:"1" doc:"The score below which results are omitted. By default, irrelevant results are omitted; 0 returns all. Applies to ranking fused. Not applied while the embedding model is unavailable: scores are not comparable then."`
		Ranking       *string        `json:"ranking,omitempty" enum:"fused,lexical,dense" doc:"How passages are ranked: by keywords and meaning (fused, the default), by keywords (lexical), or by meaning (dense)."`
		AsOf          *string        `json:"asOf,omitempty" doc:"Answer from what was known at this ISO 8601 time: only messages written until then; a date includes the whole day."`
		DateFrom      *string        `json:"dateFrom,omitempty" doc:"Only conversations created at or after this ISO 8601 date or time."`
		DateTo        *string        `json:"dateTo,omitempty" doc:"Only conversations created at or before this ISO 8601 time; a date includes the whole day."`
		TimeZone      *string        `json:"timeZone,omitempty" doc:"The user's IANA time zone, such as Europe/Berlin, of times mentioned in a query, such as today or last May, and of dates and times without a zone; default UTC."`
	} `nameHint:"SearchRequest"`
}

type searchOutput struct {
	Degraded string `header:"X-Degraded"`
	Body     searchResultsBody
}

type searchResultsBody struct {
	Results        []searchResultBody `json:"results"`
	TotalResults   int                `json:"totalResults"`
	Query          string             `json:"query"`
	Provider       string             `json:"provider"`
	ProcessingTime float64            `json:"processingTime" doc:"Milliseconds."`
}

type searchResultBody struct {
	ConversationID string               `json:"conversationId"`
	Title          string               `json:"title"`
	Text           string               `json:"text"`
	Score          float64              `json:"score" minimum:"0" maximum:"1" doc:"The probability that the passage is relevant. Comparable only within one response if ranking is not fused or X-Degraded is set."`
	Timestamp      string               `json:"timestamp" format:"date-time"`
	Sender         string               `json:"sender" enum:"human,assistant,system,tool"`
	MessageIndex   int                  `json:"messageIndex"`
	Context        []contextMessageBody `json:"context" doc:"The surrounding messages, in order."`
}

type contextMessageBody struct {
	Text      string `json:"text"`
	Sender    string `json:"sender" enum:"human,assistant,system,tool"`
	Timestamp string `json:"timestamp" format:"date-time"`
}

var docSearchConversations = doc{
	access: tenant.AccessRead,
	id:     "searchConversations", tag: tagChats, summary: "Search active conversations",
	description: "Returns relevant passages, best first, and none if nothing is relevant. See `minScore`. `X-Degraded: vector` means that the vector store was unavailable and the results are keyword matches; `rerank` that the configured reranker did not respond in time and the results are unreranked.",
	request:     example(`{"query":"where do I like to sit on trains?","limit":5,"provider":"all","contextChunks":1}`),
	response: example(`{"results":[{"conversationId":"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15","title":"Night train to Vienna",` +
		`"text":"A window seat, as you like it.","score":0.87,"timestamp":"2025-05-09T14:30:04.000Z","sender":"assistant","messageIndex":1,` +
		`"context":[{"text":"Which seat should I book?","sender":"human","timestamp":"2025-05-09T14:30:00.000Z"}]}],` +
		`"totalResults":1,"query":"where do I like to sit on trains?","provider":"all","processingTime":12.4}`),
}

func (s *Server) searchConversations(ctx context.Context, who tenant.Identity, in *searchInput) (*searchOutput, error) {
	begin := time.Now()
	var p params
	zone := p.timeZone(in.Body.TimeZone)
	name := value(in.Body.Provider, chat.AllPlatforms)
	input := chat.SearchInput{
		Query: in.Body.Query, Limit: int(value(in.Body.Limit, chat.DefaultResults)),
		Platform: name, Around: int(value(in.Body.ContextChunks, chat.DefaultAround)),
		SkipRerank: value(in.Body.SkipRerank, false), MinScore: in.Body.MinScore, Ranking: retrieve.Ranking(value(in.Body.Ranking, string(retrieve.Fused))),
		AsOf: p.to("asOf", value(in.Body.AsOf, "")), Zone: zone,
		From: p.from("dateFrom", value(in.Body.DateFrom, "")), To: p.to("dateTo", value(in.Body.DateTo, "")),
	}
	if err := p.ErrWith(input); err != nil {
		return nil, err
	}
	found, isDegraded, err := s.Chats.Search(ctx, who, input)
	if err != nil {
		return nil, err
	}
	out := searchResultsBody{Results: make([]searchResultBody, len(found)), TotalResults: len(found), Query: input.Query, Provider: name}
	for i, r := range found {
		out.Results[i] = resultOf(r)
	}
	out.ProcessingTime = float64(time.Since(begin).Microseconds()) / 1000
	return &searchOutput{Degraded: degraded(isDegraded), Body: out}, nil
}

func resultOf(r chat.SearchResult) searchResultBody {
	out := searchResultBody{
		ConversationID: r.Conversation.ID, Title: r.Conversation.Title, Text: r.Message.Text, Score: r.Score,
		Timestamp: chat.Stamp(r.Message.CreatedAt), Sender: string(r.Message.Sender), MessageIndex: r.Message.Index,
		Context: make([]contextMessageBody, len(r.Context)),
	}
	for i, m := range r.Context {
		out.Context[i] = contextMessageBody{Text: m.Text, Sender: string(m.Sender), Timestamp: chat.Stamp(m.CreatedAt)}
	}
	return out
}
