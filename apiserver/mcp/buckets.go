package mcp

import (
	"context"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

// bucketPageSize is the number of buckets in one result.
const bucketPageSize = 50

type bucketOut struct {
	BucketID    string `json:"bucketId"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MemoryCount int64  `json:"memoryCount"`
}

type listBucketsIn struct {
	Skip int `json:"skip,omitempty" jsonschema:"The number of buckets to skip: nextSkip of the previous result."`
}

type listBucketsOut struct {
	Buckets  []bucketOut `json:"buckets" jsonschema:"The default bucket first, then by name."`
	NextSkip int         `json:"nextSkip,omitempty" jsonschema:"The skip of the next page; absent on the last page."`
}

type createBucketIn struct {
	Name        string `json:"name" jsonschema:"1 to 100 characters, not only digits, unique ignoring case."`
	Description string `json:"description,omitempty" jsonschema:"What belongs in the bucket, so that assistants can choose the right one later; at most 1000 characters."`
}

type createBucketOut struct {
	BucketID string `json:"bucketId"`
	Name     string `json:"name"`
}

func (e *Endpoint) addBuckets() {
	add(e, tool{
		name: "list_buckets", title: "List buckets", reads: true,
		description: "List the user's buckets, which group memories, with their descriptions and memory counts. " +
			"Use it to choose a bucketId for store_memory.",
		in: func(s *jsonschema.Schema) { between(s, "skip", 0, 1<<30, 0) },
	}, e.listBuckets)
	add(e, tool{
		name: "create_bucket", title: "Create a bucket",
		description: "Create a bucket to group memories, if the user asks for one, or if several memories clearly belong together and no bucket of list_buckets fits.",
	}, e.createBucket)
}

func (e *Endpoint) listBuckets(ctx context.Context, c call, in listBucketsIn) (listBucketsOut, error) {
	if in.Skip < 0 {
		return listBucketsOut{}, fault.New(fault.Invalid, "skip must be at least 0, not %d", in.Skip)
	}
	list, err := e.Memories.ListBuckets(ctx, c.who)
	shown, next := e.bucketPage(list, in.Skip, readTokens)
	return listBucketsOut{Buckets: shown, NextSkip: next}, err
}

func (e *Endpoint) createBucket(ctx context.Context, c call, in createBucketIn) (createBucketOut, error) {
	created, err := e.Memories.CreateBucket(ctx, c.who, memory.BucketInput{Name: in.Name, Description: in.Description, Request: c.request})
	return createBucketOut{BucketID: strconv.FormatInt(created, 10), Name: in.Name}, err
}

// bucketPage returns a page of buckets within a number of tokens, and the skip of the next page, 0 for none.
func (e *Endpoint) bucketPage(list []memory.Bucket, skip, tokens int) (out []bucketOut, next int) {
	out = []bucketOut{}
	for i, b := range list[min(skip, len(list)):] {
		item := bucketOut{BucketID: strconv.FormatInt(b.ID, 10), Name: b.Name, Description: b.Description, MemoryCount: b.Memories}
		if tokens -= e.size(item, tokens); i == bucketPageSize || tokens < 0 {
			return out, skip + i
		}
		out = append(out, item)
	}
	return out, 0
}
