package apiserver

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type updateConversationsInput struct {
	Body struct {
		IDs      []string `json:"ids" minItems:"1" maxItems:"10000" doc:"The conversations to change; ids that do not exist are skipped."`
		Excluded *bool    `json:"excluded,omitempty" doc:"True excludes them: stored, but neither searched nor counted. False includes them again; they become blocked if the quota is reached."`
		Pinned   *bool    `json:"pinned,omitempty"`
	} `nameHint:"UpdateConversationsRequest"`
}

type updateConversationsOutput struct {
	Body updatedConversationsBody
}

type updatedConversationsBody struct {
	Updated []string `json:"updated" doc:"The ids that exist, in the order given."`
	Count   int      `json:"count"`
}

var docUpdateConversations = doc{
	id: "updateConversations", tag: tagChats, summary: "Exclude, include or pin conversations",
	description: "At least one of `excluded` and `pinned` is required. Quota freed by excluding is given to the newest blocked conversations immediately. The operation is idempotent.",
	request:     example(`{"ids":["0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"],"excluded":false,"pinned":true}`),
	response:    example(`{"updated":["0196b2f5-0a77-7d21-b1c4-94e2f7a83d15"],"count":1}`),
}

func (s *Server) updateConversations(ctx context.Context, who tenant.Identity, in *updateConversationsInput) (*updateConversationsOutput, error) {
	ids, err := s.Chats.Update(ctx, who, chat.UpdateInput{
		IDs: in.Body.IDs, Flags: chat.Flags{Excluded: in.Body.Excluded, Pinned: in.Body.Pinned},
	})
	if err != nil {
		return nil, err
	}
	return &updateConversationsOutput{Body: updatedConversationsBody{Updated: orEmpty(ids), Count: len(ids)}}, nil
}
