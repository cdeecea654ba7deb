package apiserver

import (
	"context"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const tagChats = "Chat history"

type getConversationInput struct {
	ConversationID string `query:"conversationId"`
}

type getConversationOutput struct {
	Body conversationBody
}

type conversationBody struct {
	ID                     string            `json:"id"`
	Title                  string            `json:"title"`
	Messages               []chatMessageBody `json:"messages"`
	Total                  int               `json:"total" doc:"The number of messages."`
	PlatformConversationID string            `json:"platformConversationId"`
	SourceID               string            `json:"sourceId" doc:"The platform."`
	TokenCount             int               `json:"tokenCount"`
	Status                 string            `json:"status" enum:"active,excluded,blocked"`
	CreatedAt              string            `json:"createdAt" format:"date-time"`
	UpdatedAt              string            `json:"updatedAt" format:"date-time"`
}

type chatMessageBody struct {
	Index     int    `json:"message_index" minimum:"0"`
	Sender    string `json:"sender" enum:"human,assistant,system,tool"`
	Text      string `json:"text"`
	Timestamp string `json:"timestamp" format:"date-time"`
}

var docGetConversation = doc{
	id: "getConversation", tag: tagChats, summary: "Get a conversation with all its messages",
	description: "Contains every message, in order. Blocked and excluded conversations are included.",
	params:      []*huma.Param{required(ignoredParam("conversationId", "The conversation's id.", "0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"))},
	response: example(`{"id":"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15","title":"Night train to Vienna","messages":[` +
		`{"message_index":0,"sender":"human","text":"Which seat should I book?","timestamp":"2025-05-09T14:30:00.000Z"},` +
		`{"message_index":1,"sender":"assistant","text":"A window seat, as you like it.","timestamp":"2025-05-09T14:30:04.000Z"}],` +
		`"total":2,"platformConversationId":"c-1","sourceId":"custom","tokenCount":14,"status":"active",` +
		`"createdAt":"2025-05-09T14:30:00.000Z","updatedAt":"2025-05-09T14:30:04.000Z"}`),
	errors: []int{http.StatusBadRequest, http.StatusNotFound},
}

func (s *Server) getConversation(ctx context.Context, who tenant.Identity, in *getConversationInput) (*getConversationOutput, error) {
	if in.ConversationID == "" {
		return nil, fault.New(fault.Invalid, "conversationId is required")
	}
	c, messages, err := s.Chats.Get(ctx, who, in.ConversationID)
	if err != nil {
		return nil, err
	}
	out := conversationBody{
		ID: c.ID, Title: c.Title, Messages: make([]chatMessageBody, len(messages)), Total: len(messages),
		PlatformConversationID: c.ExternalID, SourceID: c.Platform, TokenCount: c.TokenCount,
		Status: string(c.Status), CreatedAt: chat.Stamp(c.CreatedAt), UpdatedAt: chat.Stamp(c.UpdatedAt),
	}
	for i, m := range messages {
		out.Messages[i] = chatMessageBody{Index: m.Index, Sender: string(m.Sender), Text: m.Text, Timestamp: chat.Stamp(m.CreatedAt)}
	}
	return &getConversationOutput{Body: out}, nil
}

type countOutput struct {
	Body struct {
		Count int64 `json:"count"`
	} `nameHint:"ConversationCount"`
}

var docCountConversations = doc{
	id: "countConversations", tag: tagChats, summary: "Count the user's active conversations",
	description: "Excluded and blocked conversations are not counted.",
	response:    example(`{"count":42}`),
}

func (s *Server) countConversations(ctx context.Context, who tenant.Identity, _ *struct{}) (*countOutput, error) {
	n, err := s.Chats.Count(ctx, who)
	if err != nil {
		return nil, err
	}
	out := &countOutput{}
	out.Body.Count = n
	return out, nil
}

type listConversationsInput struct {
	Page       string `query:"page"`
	PageSize   string `query:"pageSize"`
	Provider   string `query:"provider"`
	Title      string `query:"title"`
	DateFrom   string `query:"dateFrom"`
	DateTo     string `query:"dateTo"`
	PinnedOnly string `query:"pinnedOnly"`
	ImportID   string `query:"importId"`
	Status     string `query:"status"`
}

type listConversationsOutput struct {
	Body conversationPageBody
}

type conversationPageBody struct {
	Items      []conversationSummaryBody `json:"items"`
	Page       int                       `json:"page"`
	PageSize   int                       `json:"pageSize"`
	Total      int                       `json:"total"`
	TotalPages int                       `json:"totalPages"`
}

type conversationSummaryBody struct {
	ID           string `json:"id"`
	Title        string `json:"title"`
	Platform     string `json:"platform"`
	MessageCount int    `json:"messageCount"`
	TokenCount   int    `json:"tokenCount"`
	CreatedAt    string `json:"createdAt" format:"date-time"`
	UpdatedAt    string `json:"updatedAt" format:"date-time"`
	Pinned       bool   `json:"pinned"`
	Status       string `json:"status" enum:"active,excluded,blocked"`
}

const allStatuses = "all"

var docListConversations = doc{
	id: "listConversations", tag: tagChats, summary: "List conversations, newest first",
	description: "Pages of conversations that match all given filters, newest first by creation.",
	params: []*huma.Param{
		intParam("page", "The page number, starting at 1.", 1, 1, 1),
		upTo(intParam("pageSize", "The page size, at most 100.", chat.DefaultPageSize, 1, 25), chat.MaxPageSize),
		textParam("provider", "The platform, or `all`.", chat.AllPlatforms),
		textParam("title", "A case-insensitive substring of the title.", "train"),
		textParam("dateFrom", "Created at or after: an ISO 8601 date or time.", "2025-05-01"),
		textParam("dateTo", "Created at or before: an ISO 8601 time, or a date for the whole day.", "2025-05-31"),
		boolParam("pinnedOnly", "Only pinned conversations."),
		textParam("importId", "Only conversations of this import.", "0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60"),
		param("status", "Only conversations with this status.", &huma.Schema{Type: huma.TypeString,
			Enum: []any{"active", "excluded", "blocked", allStatuses}, Default: "active"}, "active"),
	},
	response: example(`{"items":[{"id":"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15","title":"Night train to Vienna","platform":"custom",` +
		`"messageCount":2,"tokenCount":14,"createdAt":"2025-05-09T14:30:00.000Z","updatedAt":"2025-05-09T14:30:04.000Z","pinned":false,"status":"active"}],` +
		`"page":1,"pageSize":25,"total":1,"totalPages":1}`),
	errors: []int{http.StatusBadRequest},
}

func (s *Server) listConversations(ctx context.Context, who tenant.Identity, in *listConversationsInput) (*listConversationsOutput, error) {
	var p params
	page := p.Integer("page", in.Page, 1, 1)
	size := p.Integer("pageSize", in.PageSize, chat.DefaultPageSize, 1)
	filter := chat.ConversationFilter{
		Platform: in.Provider, Title: in.Title, ImportID: in.ImportID,
		From: p.from("dateFrom", in.DateFrom), To: p.to("dateTo", in.DateTo),
		PinnedOnly: p.Boolean("pinnedOnly", in.PinnedOnly), Status: statusOf(in.Status),
		Offset: min((page-1)*size, math.MaxInt32), Limit: size,
	}
	if err := p.ErrWith(filter); err != nil {
		return nil, err
	}
	list, total, err := s.Chats.List(ctx, who, filter)
	if err != nil {
		return nil, err
	}
	out := conversationPageBody{Items: make([]conversationSummaryBody, len(list)), Page: page, PageSize: size,
		Total: total, TotalPages: (total + size - 1) / size}
	for i, c := range list {
		out.Items[i] = conversationSummaryBody{ID: c.ID, Title: c.Title, Platform: c.Platform, MessageCount: c.MessageCount,
			TokenCount: c.TokenCount, CreatedAt: chat.Stamp(c.CreatedAt), UpdatedAt: chat.Stamp(c.UpdatedAt), Pinned: c.Pinned, Status: string(c.Status)}
	}
	return &listConversationsOutput{Body: out}, nil
}

func statusOf(text string) chat.Status {
	switch text {
	case "":
		return chat.Active
	case allStatuses:
		return ""
	}
	return chat.Status(text)
}

type deleteConversationsInput struct {
	Body struct {
		IDs []string `json:"ids" minItems:"1" maxItems:"10000" doc:"The conversations to delete; ids that do not exist are skipped."`
	} `nameHint:"DeleteConversationsRequest"`
}

type deleteConversationsOutput struct {
	Body deletedConversationsBody
}

type deletedConversationsBody struct {
	Deleted []string `json:"deleted" doc:"The ids of the deleted conversations."`
	Count   int      `json:"count"`
}

var docDeleteConversations = doc{
	id: "deleteConversations", tag: tagChats, summary: "Delete conversations",
	description: "Permanently deletes the conversations with their messages and vectors.",
	request:     example(`{"ids":["0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"]}`),
	response:    example(`{"deleted":["0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"],"count":1}`),
}

func (s *Server) deleteConversations(ctx context.Context, who tenant.Identity, in *deleteConversationsInput) (*deleteConversationsOutput, error) {
	ids, err := s.Chats.Delete(ctx, who, in.Body.IDs)
	if err != nil {
		return nil, err
	}
	return &deleteConversationsOutput{Body: deletedConversationsBody{Deleted: orEmpty(ids), Count: len(ids)}}, nil
}

// required marks a query parameter as required.
func required(p *huma.Param) *huma.Param {
	p.Required = true
	p.Schema.MinLength = new(1) // empty counts as absent
	return p
}
