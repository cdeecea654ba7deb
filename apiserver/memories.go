package apiserver

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/apiserver/httpx"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/textrule"
)

type createMemoryInput struct {
	Body struct {
		Text           string        `json:"text" minLength:"1" maxLength:"32768" doc:"The text to store verbatim. Start it with the date, YYYY-MM-DD, in the user's time zone if known, else UTC. At most 32,768 bytes."`
		BucketID       *bucketID     `json:"bucketId,omitempty" doc:"The bucket of the memory; defaults to the user's default bucket."`
		Source         *string       `json:"source,omitempty" maxLength:"200" doc:"The name of the client."`
		AgentID        *string       `json:"agentId,omitempty" doc:"The assistant that stores it, at most 256 bytes."`
		RunID          *string       `json:"runId,omitempty" doc:"The session or run in which it is stored, at most 256 bytes."`
		Tags           []string      `json:"tags,omitempty" maxItems:"32" doc:"At most 32 tags of 1 to 64 characters. Order and duplicates do not matter."`
		CustomMetadata *httpx.Object `json:"customMetadata,omitempty" doc:"Any JSON object of at most 4,096 bytes. It counts toward the storage quota. Filters select by its members as metadata.<key>."`
	} `nameHint:"CreateMemoryRequest"`
}

type createMemoryOutput struct {
	Body createdMemoryBody
}

type createdMemoryBody struct {
	Done        string `json:"done" enum:"ok"`
	MemoryID    string `json:"memoryId"`
	IsDuplicate bool   `json:"isDuplicate,omitempty" doc:"True if the bucket already has a memory with exactly this text, agentId, runId, tags and customMetadata, or if the text is an existing memory as it was recalled: memoryId is that memory, and nothing was stored. Absent otherwise."`

	Similar []similarMemoryBody `json:"similar,omitempty" doc:"Existing memories that say nearly the same, most similar first. The new memory is stored; mergeMemories merges them into it. Absent if there are none."`
}

type similarMemoryBody struct {
	MemoryID string  `json:"memoryId"`
	Text     string  `json:"text"`
	Score    float64 `json:"score" minimum:"0" maximum:"1" doc:"0 for unrelated and 1 for equal texts."`
}

var docCreateMemory = doc{
	id: "createMemory", tag: "Memories", summary: "Store a memory",
	links: map[string]string{"getMemory.memoryId": "/memoryId", "listMemoryVersions.memoryId": "/memoryId", "deleteMemory.memoryId": "/memoryId", "mergeMemories.memoryId": "/memoryId"},
	description: "Start the text with the date, YYYY-MM-DD, in the user's time zone if known, else UTC. " +
		"The text is stored verbatim and is available to the user's next listing or search. " +
		"If the bucket already has a memory with exactly this text, `agentId`, `runId`, `tags` and `customMetadata`, nothing is stored and the response has its id and `isDuplicate`. " +
		"The same applies if the text is an existing memory plus decorations added by a recall or a list: `[1] memory:`, a bullet, a number, quotation marks or the date on which it was stored. " +
		"Then the bucket and the attributes only matter if the request has any. `similar` lists existing memories that say nearly the same.",
	request:     example(`{"text":"2025-05-09 Prefers the window seat on trains","bucketId":12,"source":"cli","agentId":"travel-planner","tags":["travel"],"customMetadata":{"confidence":0.9}}`),
	response:    example(`{"done":"ok","memoryId":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"}`),
	errors:      []int{http.StatusNotFound},
	idempotency: "memory",
}

func (s *Server) createMemory(ctx context.Context, who tenant.Identity, in *createMemoryInput) (*createMemoryOutput, error) {
	var p params
	bucket := value(in.Body.BucketID, bucketID{}).value(&p.Fields, "bucketId")
	input := memory.CreateInput{Text: in.Body.Text, Bucket: bucket, Source: value(in.Body.Source, ""), Request: requestOf(ctx),
		Attributes: memory.Attributes{AgentID: value(in.Body.AgentID, ""), RunID: value(in.Body.RunID, ""), Tags: in.Body.Tags, Metadata: in.Body.CustomMetadata.Raw()}}
	if err := p.ErrWith(input); err != nil {
		return nil, err
	}
	created, err := s.Memories.Create(ctx, who, input)
	if err != nil {
		return nil, err
	}
	out := createdMemoryBody{Done: "ok", MemoryID: created.ID, IsDuplicate: created.Duplicate}
	for _, m := range created.Similar {
		out.Similar = append(out.Similar, similarMemoryBody{m.ID, m.Text, m.Score})
	}
	return &createMemoryOutput{Body: out}, nil
}

type listMemoriesInput struct {
	BucketID string `query:"bucketId"`
	Count    string `query:"count"`
	All      string `query:"all"`
	Latest   string `query:"latest"`
	Query    string `query:"query"`
	Skip     string `query:"skip"`
	MinScore string `query:"minScore"`
	AsOf     string `query:"asOf"`
	Filter   string `query:"filter"`
}

type memoryListBody struct {
	Memories []memoryBody `json:"memories"`
	Buckets  []bucketBody `json:"buckets" doc:"All buckets of the user, regardless of the query."`
	NextSkip int          `json:"nextSkip,omitempty" doc:"The skip of the next page; absent on the last page."`
}

type listMemoriesOutput struct {
	Degraded string `header:"X-Degraded"`
	Body     memoryListBody
}

type memoryBody struct {
	ID       string             `json:"id"`
	Text     string             `json:"text"`
	Metadata memoryMetadataBody `json:"metadata"`
	MemoryDetails
}

// MemoryDetails are the members that most memories do not have.
type MemoryDetails struct {
	MemoryLinks
	MemoryMerges
	MemoryAttributes
	Score *float64 `json:"score,omitempty" minimum:"0" maximum:"1" doc:"With query: the probability that the memory is relevant. Comparable only within one response if X-Degraded is set."`
}

// MemoryLinks are the links between an outdated memory and the one that replaces it.
type MemoryLinks struct {
	SupersededBy string   `json:"supersededBy,omitempty" doc:"The id of the newer memory that replaces this one. Both are kept."`
	Supersedes   []string `json:"supersedes,omitempty" doc:"The ids of the memories that this one replaces."`
}

type memoryMetadataBody struct {
	Text       string `json:"text"`
	CreatedAt  string `json:"createdAt" format:"date-time"`
	BucketID   int64  `json:"bucketId"`
	BucketName string `json:"bucketName"`
}

const exampleMemory = `{"id":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07","text":"2025-05-09 Prefers the window seat on trains",` +
	`"metadata":{"text":"2025-05-09 Prefers the window seat on trains","createdAt":"2025-05-09T14:30:00.000Z","bucketId":12,"bucketName":"Travel"},"agentId":"travel-planner","tags":["travel"],"customMetadata":{"confidence":0.9}}`

var docListMemories = doc{
	id: "listMemories", tag: "Memories", summary: "List or search memories",
	description: "Sorted by relevance with `query`, without irrelevant memories (see `minScore`), newest first with `latest`, and otherwise oldest first, so that paging with `skip` is stable. " +
		"A memory that a newer one replaces follows it in a search and has `supersededBy`. " +
		"A response ends at the tenant's token limit, after at least one memory; `nextSkip` is the start of the next page. " +
		"With `query`, each page is a new search: pages can repeat or miss memories if the ranking changes between them, for example with the user's data or the server's cache. " +
		"`X-Degraded: vector` means that the vector store was unavailable and the results are keyword matches.",
	params: []*huma.Param{
		bucketParam("bucketId", "Only memories of this bucket."),
		intParam("count", "The number of memories. Values above 1,000 are treated as 1,000.", memory.DefaultCount, 1, 10),
		boolParam("all", "Return all memories, regardless of `count`."),
		boolParam("latest", "Newest first; ignored with `query`."),
		queryParam("query", "A search query in natural language. At most 8,192 bytes.", "where do I like to sit on trains?"),
		scoreParam("minScore", "With `query`: the score below which memories are omitted. By default, irrelevant memories are omitted; 0 returns all. Not applied while the embedding model is unavailable: scores are not comparable then."),
		param("asOf", "Return what was known at this ISO 8601 time: memories stored by then, with the text and links they had at that time; a date includes the whole day. Deleted and merged memories are not returned, and the ranking compares the current texts.", &huma.Schema{Type: huma.TypeString}, "2025-05-09"),
		filterParam("filter"),
		intParam("skip", "The number of memories to skip; with `query`, out of the 1,000 best matches.", 0, 0, 0),
		ignoredParam("source", "The name of the client. It does not filter.", "cli"),
		ignoredParam("contentType", "Accepted for older clients; only `text` exists.", "text"),
		ignoredParam("includeIds", "Accepted for older clients; ids are always included.", "true"),
	},
	response: example(`{"memories":[` + exampleMemory + `],"buckets":[` + exampleBucket + `],"nextSkip":1}`),
	errors:   []int{http.StatusBadRequest, http.StatusNotFound},
}

func (s *Server) listMemories(ctx context.Context, who tenant.Identity, in *listMemoriesInput) (*listMemoriesOutput, error) {
	var p params
	input := memory.ListInput{
		Bucket: bucketID{strings.TrimSpace(in.BucketID)}.value(&p.Fields, "bucketId"),
		Count:  p.Integer("count", in.Count, memory.DefaultCount, 1),
		All:    p.Boolean("all", in.All),
		Newest: p.Boolean("latest", in.Latest),
		Query:  in.Query,
		Skip:   p.Integer("skip", in.Skip, 0, 0),

		MinScore: p.Score("minScore", in.MinScore),
		AsOf:     p.to("asOf", in.AsOf),
		Where:    filter.Parse(&p.Fields, "filter", []byte(in.Filter)),
	}
	if err := p.ErrWith(input); err != nil {
		return nil, err
	}
	listing, err := s.Memories.List(ctx, who, input)
	if err != nil {
		return nil, err
	}
	bodies := make([]memoryBody, len(listing.Memories))
	for i, m := range listing.Memories {
		bodies[i] = bodyOf(m)
		if !textrule.IsBlank(in.Query) {
			bodies[i].Score = &listing.Memories[i].Score
		}
	}
	return &listMemoriesOutput{Degraded: degraded(listing.Degraded), Body: memoryListBody{
		Memories: bodies, Buckets: bucketBodies(listing.Buckets), NextSkip: listing.NextSkip,
	}}, nil
}

func bodyOf(m memory.Memory) memoryBody {
	return memoryBody{ID: m.ID, Text: m.Text, Metadata: memoryMetadataBody{
		Text: m.Text, CreatedAt: chat.Stamp(m.CreatedAt), BucketID: m.BucketID, BucketName: m.BucketName,
	}, MemoryDetails: detailsOf(&m)}
}

func detailsOf(m *memory.Memory) MemoryDetails {
	return MemoryDetails{MemoryLinks: MemoryLinks{m.SupersededBy, m.Supersedes}, MemoryMerges: MemoryMerges{m.Merged}, MemoryAttributes: attributesOf(m.Attributes)}
}

// degraded returns the value of X-Degraded; huma omits empty headers.
func degraded(is bool) string {
	if is {
		return degradedVector
	}
	return ""
}

type memoryIDInput struct {
	MemoryID string `path:"memoryId" doc:"The memory's id." example:"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"`
}

type getMemoryOutput struct {
	Body fullMemoryBody
}

type fullMemoryBody struct {
	ID       string             `json:"id"`
	Text     string             `json:"text"`
	Metadata memoryMetadataBody `json:"metadata"`
	MemoryAttributes
	Version   int    `json:"version" doc:"Starts at 1 and increases with each edit of the text."`
	Source    string `json:"source"`
	UpdatedAt string `json:"updatedAt" format:"date-time"`
	MemoryLinks
	MemoryMerges
	MergedInto string             `json:"mergedInto,omitempty" doc:"The memory into which this one was merged. Absent otherwise."`
	Merged     []mergedMemoryBody `json:"merged,omitempty" maxItems:"100" doc:"The memories that were merged into this one, those merged last first. Absent if there are none."`
}

var docGetMemory = doc{
	id: "getMemory", tag: "Memories", summary: "Get a memory",
	description: "The memory with its version, source and times. `merged` lists the memories that were merged into it. A merged memory has `mergedInto`.",
	response: example(`{"id":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07","text":"2025-05-09 Prefers the window seat on trains",` +
		`"metadata":{"text":"2025-05-09 Prefers the window seat on trains","createdAt":"2025-05-09T14:30:00.000Z","bucketId":12,"bucketName":"Travel"},"agentId":"travel-planner","tags":["travel"],"customMetadata":{"confidence":0.9},` +
		`"version":1,"source":"cli","updatedAt":"2025-05-09T14:30:00.000Z"}`),
	errors: []int{http.StatusNotFound},
}

func (s *Server) getMemory(ctx context.Context, who tenant.Identity, in *memoryIDInput) (*getMemoryOutput, error) {
	m, merged, err := s.Memories.GetMerged(ctx, who, in.MemoryID)
	if err != nil {
		return nil, err
	}
	b := bodyOf(m)
	return &getMemoryOutput{Body: fullMemoryBody{ID: b.ID, Text: b.Text, Metadata: b.Metadata, MemoryAttributes: b.MemoryAttributes,
		Version: m.Version, Source: m.Source, UpdatedAt: chat.Stamp(m.UpdatedAt), MemoryLinks: b.MemoryLinks,
		MemoryMerges: b.MemoryMerges, MergedInto: m.MergedInto, Merged: mergedBodies(merged)}}, nil
}

type confirmationOutput struct {
	Body confirmationBody
}

type confirmationBody struct {
	Message string `json:"message"`
}

var docDeleteMemory = doc{
	id: "deleteMemory", tag: "Memories", summary: "Delete a memory",
	description: "Permanently deletes the memory, and the memories that were merged into it, from the database and the vector store.",
	response:    example(`{"message":"Memory deleted"}`),
	errors:      []int{http.StatusNotFound},
}

func (s *Server) deleteMemory(ctx context.Context, who tenant.Identity, in *memoryIDInput) (*confirmationOutput, error) {
	if err := s.Memories.Delete(ctx, who, in.MemoryID); err != nil {
		return nil, err
	}
	return &confirmationOutput{Body: confirmationBody{Message: "Memory deleted"}}, nil
}

type deleteMemoriesInput struct {
	Body struct {
		MemoryIDs []string `json:"memoryIds" minItems:"1" maxItems:"10000" doc:"The memories to delete; ids that do not exist are skipped."`
	} `nameHint:"DeleteMemoriesRequest"`
}

type deleteMemoriesOutput struct {
	Body deletedMemoriesBody
}

type deletedMemoriesBody struct {
	Message      string          `json:"message"`
	DeletedCount int             `json:"deletedCount" doc:"Memories deleted from the database, with those that were merged into them."`
	Errors       []bulkErrorBody `json:"errors" doc:"Failed deletions; the memoryId milvus_bulk or postgres_bulk stands for the whole batch."`
}

type bulkErrorBody struct {
	MemoryID string `json:"memoryId"`
	Error    string `json:"error"`
}

var docDeleteMemories = doc{
	id: "deleteMemories", tag: "Memories", summary: "Delete up to 10,000 memories",
	description: "Returns 200 even for a partial failure. `milvus_bulk` means that the memories are deleted and their vectors will be deleted later; `postgres_bulk` means that nothing was deleted.",
	request:     example(`{"memoryIds":["0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"]}`),
	response:    example(`{"message":"Memories deleted","deletedCount":1,"errors":[]}`),
}

func (s *Server) deleteMemories(ctx context.Context, who tenant.Identity, in *deleteMemoriesInput) (*deleteMemoriesOutput, error) {
	done, err := s.Memories.DeleteMany(ctx, who, in.Body.MemoryIDs)
	if err != nil {
		return nil, err
	}
	if done.Cause != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "bulk delete incomplete",
			slog.String("request_id", httpx.RequestIDOf(ctx)), slog.Any("error", done.Cause))
	}
	out := deletedMemoriesBody{Message: "Memories deleted", DeletedCount: done.Deleted, Errors: make([]bulkErrorBody, len(done.Errors))}
	for i, e := range done.Errors {
		out.Errors[i] = bulkErrorBody{MemoryID: e.MemoryID, Error: e.Err}
	}
	return &deleteMemoriesOutput{Body: out}, nil
}
