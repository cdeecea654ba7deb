package apiserver

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type updateMemoryInput struct {
	Body updateMemoryRequest `nameHint:"UpdateMemoryRequest"`
}

type updateMemoryRequest struct {
	MemoryID   *string   `json:"memoryId,omitempty" doc:"The memory to edit. Either memoryId or memoryIds is required."`
	MemoryIDs  []string  `json:"memoryIds,omitempty" minItems:"1" maxItems:"100" doc:"The memories to move, all or none."`
	Text       *string   `json:"text,omitempty" minLength:"1" maxLength:"32768" doc:"The new text, with memoryId only. At most 32,768 bytes."`
	BucketID   *bucketID `json:"bucketId,omitempty" doc:"The bucket to move to."`
	BucketName *string   `json:"bucketName,omitempty" doc:"The case-insensitive name of the bucket to move to. If bucketId is given as well, both must refer to the same bucket."`

	AgentID        *string       `json:"agentId,omitempty" doc:"The new agentId, with memoryId only; empty removes it. At most 256 bytes."`
	RunID          *string       `json:"runId,omitempty" doc:"The new runId, with memoryId only; empty removes it. At most 256 bytes."`
	Tags           *[]string     `json:"tags,omitempty" maxItems:"32" doc:"The new tags, with memoryId only; they replace all earlier ones."`
	CustomMetadata *httpx.Object `json:"customMetadata,omitempty" doc:"The new metadata, with memoryId only. It replaces the earlier object; {} removes it. At most 4,096 bytes."`
}

// attributes returns the changes of attributes.
func (b updateMemoryRequest) attributes() memory.AttributeChanges {
	c := memory.AttributeChanges{AgentID: b.AgentID, RunID: b.RunID, Tags: b.Tags}
	if b.CustomMetadata != nil {
		raw := b.CustomMetadata.Raw()
		c.Metadata = &raw
	}
	return c
}

type updateMemoryOutput struct {
	Body updatedMemoryBody
}

type updatedMemoryBody struct {
	Message    string   `json:"message" enum:"Memory updated,Memories moved"`
	MemoryID   string   `json:"memoryId,omitempty" doc:"Set with memoryId."`
	Version    int      `json:"version,omitempty" doc:"Set with memoryId: the new version."`
	MovedCount int      `json:"movedCount,omitempty" doc:"Set with memoryIds: the number of memories moved."`
	MemoryIDs  []string `json:"memoryIds,omitempty" doc:"Set with memoryIds: the ids without duplicates."`
}

var docUpdateMemory = doc{
	id: "updateMemory", tag: "Memories", summary: "Edit a memory or move memories to another bucket",
	description: "With `memoryId`, changes the text, the bucket, `agentId`, `runId`, `tags` and `customMetadata`, or some of them. A changed text creates a new version; earlier versions are kept. Only texts have versions. " +
		"With `memoryIds`, moves up to 100 memories, all or none: ids that do not exist are returned as `rejectedIds`. " +
		"Edited and moved memories are not compared with others: a bucket can then have two memories with the same text and attributes.",
	request:  example(`{"memoryId":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07","text":"2025-05-09 Prefers the aisle seat on trains"}`),
	response: example(`{"message":"Memory updated","memoryId":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07","version":2}`),
	errors:   []int{http.StatusNotFound},
}

func (s *Server) updateMemory(ctx context.Context, who tenant.Identity, in *updateMemoryInput) (*updateMemoryOutput, error) {
	b := in.Body
	switch {
	case b.MemoryID == nil && b.MemoryIDs == nil:
		return nil, fault.New(fault.Invalid, "memoryId or memoryIds is required")
	case b.MemoryID != nil && b.MemoryIDs != nil:
		return nil, fault.New(fault.Invalid, "memoryId and memoryIds must not be used together")
	case b.MemoryIDs != nil && b.Text != nil:
		return nil, fault.New(fault.Invalid, "text requires memoryId instead of memoryIds")
	case b.MemoryIDs != nil && !b.attributes().IsZero():
		return nil, fault.New(fault.Invalid, "agentId, runId, tags and customMetadata require memoryId instead of memoryIds")
	}
	var p params
	bucket := memory.BucketRef{
		ID: value(b.BucketID, bucketID{}).value(&p.Fields, "bucketId"), Name: value(b.BucketName, ""),
	}
	if err := p.Err(); err != nil { // an invalid bucket must not also be reported as missing
		return nil, err
	}
	if b.MemoryID == nil {
		return s.moveMemories(ctx, who, memory.MoveInput{IDs: b.MemoryIDs, Bucket: bucket})
	}
	input := memory.UpdateInput{ID: *b.MemoryID, Text: b.Text, Bucket: bucket, AttributeChanges: b.attributes()}
	version, err := s.Memories.Update(ctx, who, input)
	if err != nil {
		return nil, err
	}
	return &updateMemoryOutput{Body: updatedMemoryBody{Message: "Memory updated", MemoryID: input.ID, Version: version}}, nil
}

func (s *Server) moveMemories(ctx context.Context, who tenant.Identity, input memory.MoveInput) (*updateMemoryOutput, error) {
	moved, err := s.Memories.Move(ctx, who, input)
	if err != nil {
		return nil, err
	}
	return &updateMemoryOutput{Body: updatedMemoryBody{Message: "Memories moved", MovedCount: len(moved), MemoryIDs: moved}}, nil
}

type listVersionsInput struct {
	MemoryID string `path:"memoryId" doc:"The memory's id." example:"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"`
	Count    string `query:"count"`
	Skip     string `query:"skip"`
}

type listVersionsOutput struct {
	Body memoryVersionsBody
}

type memoryVersionsBody struct {
	MemoryID string              `json:"memoryId"`
	Versions []memoryVersionBody `json:"versions" doc:"Newest first."`
	NextSkip int                 `json:"nextSkip,omitempty" doc:"The skip of the next page; absent on the last page."`
}

type memoryVersionBody struct {
	Version   int    `json:"version"`
	Text      string `json:"text"`
	CreatedAt string `json:"createdAt" format:"date-time"`
}

var docListVersions = doc{
	id: "listMemoryVersions", tag: "Memories", summary: "List the versions of a memory",
	description: "Newest first, starting with the current version.",
	params: []*huma.Param{
		intParam("count", "The number of versions. Values above 100 are treated as 100.", memory.MaxVersions, 1, 100),
		intParam("skip", "The number of versions to skip.", 0, 0, 0),
	},
	response: example(`{"memoryId":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07","versions":[` +
		`{"version":2,"text":"2025-05-09 Prefers the aisle seat on trains","createdAt":"2025-06-01T08:00:00.000Z"},` +
		`{"version":1,"text":"2025-05-09 Prefers the window seat on trains","createdAt":"2025-05-09T14:30:00.000Z"}]}`),
	errors: []int{http.StatusBadRequest, http.StatusNotFound},
}

func (s *Server) listVersions(ctx context.Context, who tenant.Identity, in *listVersionsInput) (*listVersionsOutput, error) {
	var p params
	count := p.Integer("count", in.Count, memory.MaxVersions, 1)
	skip := p.Integer("skip", in.Skip, 0, 0)
	if err := p.Err(); err != nil {
		return nil, err
	}
	list, hasMore, err := s.Memories.Versions(ctx, who, in.MemoryID, skip, count)
	if err != nil {
		return nil, err
	}
	out := memoryVersionsBody{MemoryID: in.MemoryID, Versions: make([]memoryVersionBody, len(list))}
	for i, v := range list {
		out.Versions[i] = memoryVersionBody{Version: v.Version, Text: v.Text, CreatedAt: chat.Stamp(v.CreatedAt)}
	}
	if hasMore {
		out.NextSkip = skip + len(list)
	}
	return &listVersionsOutput{Body: out}, nil
}
