package apiserver

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

type bucketBody struct {
	ID          string `json:"id" doc:"The bucket's id, as a string."`
	Name        string `json:"name"`
	Description string `json:"description"`
	MemoryCount int64  `json:"memoryCount"`
}

const exampleBucket = `{"id":"12","name":"Travel","description":"Trips and how I like them","memoryCount":2}`

func bucketBodies(list []memory.Bucket) []bucketBody {
	out := make([]bucketBody, len(list))
	for i, b := range list {
		out[i] = bucketBody{ID: strconv.FormatInt(b.ID, 10), Name: b.Name, Description: b.Description, MemoryCount: b.Memories}
	}
	return out
}

type listBucketsOutput struct {
	Body []bucketBody
}

var docListBuckets = doc{
	id: "listBuckets", tag: "Buckets", summary: "List the user's buckets",
	links:       map[string]string{"updateBucket.bucketId": "/0/id", "deleteBucket.bucketId": "/0/id"},
	description: "The default bucket, General, comes first.",
	params: []*huma.Param{
		ignoredParam("v", "The response version; accepted for older clients.", "2"),
		ignoredParam("source", "The name of the client.", "cli"),
	},
	response: example(`[` + exampleBucket + `]`),
}

func (s *Server) listBuckets(ctx context.Context, who tenant.Identity, _ *struct{}) (*listBucketsOutput, error) {
	list, err := s.Memories.ListBuckets(ctx, who)
	if err != nil {
		return nil, err
	}
	return &listBucketsOutput{Body: bucketBodies(list)}, nil
}

type createBucketInput struct {
	Body struct {
		Name        string  `json:"name" minLength:"1" maxLength:"100" doc:"1 to 100 characters, not only digits, unique ignoring case."`
		Description *string `json:"description,omitempty" maxLength:"1000"`
		Source      *string `json:"source,omitempty" doc:"The name of the client."`
	} `nameHint:"CreateBucketRequest"`
}

type createBucketOutput struct {
	Location string `header:"Location" doc:"The path of the new bucket."`
	Body     createdBucketBody
}

type createdBucketBody struct {
	Message string `json:"message"`
	ID      string `json:"id"`
}

var docCreateBucket = doc{
	id: "createBucket", tag: "Buckets", summary: "Create a bucket",
	description: "Names are unique without regard to case. The Location header is the address of the new bucket.",
	request:     example(`{"name":"Travel","description":"Trips and how I like them"}`),
	response:    example(`{"message":"Bucket created successfully","id":"12"}`),
	errors:      []int{http.StatusConflict},
	idempotency: "bucket",
}

func (s *Server) createBucket(ctx context.Context, who tenant.Identity, in *createBucketInput) (*createBucketOutput, error) {
	id, err := s.Memories.CreateBucket(ctx, who, memory.BucketInput{
		Name: in.Body.Name, Description: value(in.Body.Description, ""), Request: requestOf(ctx),
	})
	if err != nil {
		return nil, err
	}
	text := strconv.FormatInt(id, 10)
	return &createBucketOutput{
		Location: "/api/buckets/" + text,
		Body:     createdBucketBody{Message: "Bucket created successfully", ID: text},
	}, nil
}

type bucketIDInput struct {
	BucketID string `path:"bucketId" doc:"The bucket's id." example:"12"`
}

// pathBucket parses the bucket id of a path. Ids are opaque, so an invalid id is
// treated as one that does not exist.
func pathBucket(text string) int64 {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return noBucket
	}
	return id
}

type updateBucketInput struct {
	BucketID string `path:"bucketId" doc:"The bucket's id." example:"12"`
	Body     struct {
		Name        *string `json:"name,omitempty" minLength:"1" maxLength:"100" doc:"1 to 100 characters, not only digits, unique ignoring case."`
		Description *string `json:"description,omitempty" maxLength:"1000"`
	} `nameHint:"UpdateBucketRequest"`
}

var docUpdateBucket = doc{
	id: "updateBucket", tag: "Buckets", summary: "Update a bucket",
	description: "Absent fields do not change. The default bucket, General, cannot be renamed.",
	request:     example(`{"name":"Journeys","description":"Trips and how I like them"}`),
	response:    example(`{"message":"Bucket updated"}`),
	errors:      []int{http.StatusNotFound, http.StatusConflict},
}

func (s *Server) updateBucket(ctx context.Context, who tenant.Identity, in *updateBucketInput) (*confirmationOutput, error) {
	err := s.Memories.UpdateBucket(ctx, who, pathBucket(in.BucketID), memory.BucketUpdate{Name: in.Body.Name, Description: in.Body.Description})
	if err != nil {
		return nil, err
	}
	return &confirmationOutput{Body: confirmationBody{Message: "Bucket updated"}}, nil
}

type deleteBucketOutput struct {
	Body deletedBucketBody
}

type deletedBucketBody struct {
	Message    string `json:"message"`
	MovedCount int    `json:"movedCount" doc:"The number of memories moved to the default bucket."`
}

var docDeleteBucket = doc{
	id: "deleteBucket", tag: "Buckets", summary: "Delete a bucket",
	description: "Its memories move to the default bucket, General, which cannot be deleted. They are not compared with those of General, which can then have two memories with the same text and attributes.",
	response:    example(`{"message":"Bucket deleted","movedCount":2}`),
	errors:      []int{http.StatusNotFound, http.StatusConflict},
}

func (s *Server) deleteBucket(ctx context.Context, who tenant.Identity, in *bucketIDInput) (*deleteBucketOutput, error) {
	moved, err := s.Memories.DeleteBucket(ctx, who, pathBucket(in.BucketID))
	if err != nil {
		return nil, err
	}
	return &deleteBucketOutput{Body: deletedBucketBody{Message: "Bucket deleted", MovedCount: moved}}, nil
}
