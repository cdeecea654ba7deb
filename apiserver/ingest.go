package apiserver

import (
	"cmp"
	"context"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// ingestBody is the size limit of an ingested conversation, bytes.
const ingestBody = 50 << 20

type ingestInput struct {
	Body struct {
		Conversation        *ingestConversation `json:"conversation"`
		Platform            *string             `json:"platform,omitempty" pattern:"^[a-zA-Z0-9\\-_.]{0,100}$" doc:"The platform of the conversation; custom if absent or empty."`
		PlatformDisplayName *string             `json:"platformDisplayName,omitempty" maxLength:"200"`
	} `nameHint:"IngestRequest"`
}

type ingestConversation struct {
	ID        *string         `json:"id" minLength:"1" maxLength:"500" doc:"The platform's id of the conversation. Sending it again adds new messages and replaces changed ones."`
	Title     *string         `json:"title" maxLength:"2000"`
	CreatedAt *string         `json:"createdAt" format:"date-time"`
	UpdatedAt *string         `json:"updatedAt,omitempty" format:"date-time" doc:"Defaults to the time of the newest message."`
	Messages  []ingestMessage `json:"messages" minItems:"1"`
}

type ingestMessage struct {
	ID        *string `json:"id" minLength:"1" maxLength:"500" doc:"Unique within the conversation. A message replaces an earlier one with the same id, even in the same request."`
	Role      *string `json:"role" enum:"human,user,assistant,ai,model,bot,system,tool"`
	Content   *string `json:"content"`
	CreatedAt *string `json:"createdAt" format:"date-time"`
}

type ingestOutput struct {
	ImportStatus string `header:"X-Import-Status" enum:"failed" doc:"failed if the conversation was not stored; absent otherwise. The import has the reason."`
	Body         ingestedBody
}

type ingestedBody struct {
	Queued         bool                 `json:"queued"`
	ImportID       string               `json:"importId"`
	ConversationID string               `json:"conversationId"`
	Platform       string               `json:"platform"`
	Conversation   ingestedConversation `json:"conversation"`
}

type ingestedConversation struct {
	ID                     string `json:"id"`
	PlatformConversationID string `json:"platformConversationId"`
	Title                  string `json:"title"`
	UpdatedAt              string `json:"updatedAt" format:"date-time"`
	MessageCount           int    `json:"messageCount"`
	Status                 string `json:"status" enum:"queued"`
}

var docIngestConversation = doc{
	id: "ingestConversation", tag: tagChats, summary: "Ingest a conversation",
	links: map[string]string{"getConversation.conversationId": "/conversationId", "getImport.importId": "/importId"},
	description: "Adds new messages and replaces changed ones by id; messages missing from the request are kept. Of several messages in a request with the same id, only the last is stored. " +
		"Passages that a recall returned are stored, but searches find only their originals. " +
		"A conversation over quota is stored but blocked until quota is available. A conversation of more than 100,000 tokens, or that would grow beyond 32 MiB or 100,000 messages, is accepted, but its import fails: " +
		"the response has `X-Import-Status: failed`, nothing of the request is stored, and the import `importId` has the reason. At most 50 MiB per request.",
	request: example(`{"conversation":{"id":"c-1","title":"Night train to Vienna","createdAt":"2025-05-09T14:30:00Z","messages":[` +
		`{"id":"m-1","role":"user","content":"Which seat should I book?","createdAt":"2025-05-09T14:30:00Z"},` +
		`{"id":"m-2","role":"assistant","content":"A window seat, as you like it.","createdAt":"2025-05-09T14:30:04Z"}]},` +
		`"platform":"custom","platformDisplayName":"My assistant"}`),
	response: example(`{"queued":true,"importId":"0196b2f5-09d2-7e6b-8a41-5c3f9b7d2e60","conversationId":"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15",` +
		`"platform":"custom","conversation":{"id":"0196b2f5-0a77-7d21-b1c4-94e2f7a83d15","platformConversationId":"c-1","title":"Night train to Vienna",` +
		`"updatedAt":"2025-05-09T14:30:04.000Z","messageCount":2,"status":"queued"}}`),
	maxBody:     ingestBody,
	idempotency: "ingest",
}

func (s *Server) ingestConversation(ctx context.Context, who tenant.Identity, in *ingestInput) (*ingestOutput, error) {
	c := in.Body.Conversation
	if c == nil {
		return nil, fault.New(fault.Invalid, "conversation is required and must be an object with id, title, createdAt and messages")
	}
	input := chat.IngestInput{
		Platform: value(in.Body.Platform, ""), PlatformName: value(in.Body.PlatformDisplayName, ""),
		ID: c.ID, Title: c.Title, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
		Messages: make([]chat.IngestMessage, len(c.Messages)), Request: requestOf(ctx),
	}
	for i, m := range c.Messages {
		input.Messages[i] = chat.IngestMessage(m)
	}
	done, err := s.Chats.Ingest(ctx, who, input)
	if err != nil {
		return nil, err
	}
	stored := done.Conversation
	return &ingestOutput{ImportStatus: importStatus(done), Body: ingestedBody{
		Queued: true, ImportID: done.ImportID, ConversationID: stored.ID,
		Platform: cmp.Or(stored.Platform, input.Platform, chat.DefaultPlatform),
		Conversation: ingestedConversation{
			ID: stored.ID, PlatformConversationID: cmp.Or(stored.ExternalID, *c.ID), Title: cmp.Or(stored.Title, *c.Title),
			UpdatedAt: chat.Stamp(stored.UpdatedAt), MessageCount: stored.MessageCount, Status: "queued",
		},
	}}, nil
}

// importStatus returns the value of X-Import-Status; huma omits empty headers.
func importStatus(done chat.Outcome) string {
	if done.Failed {
		return string(importer.Failed)
	}
	return ""
}
