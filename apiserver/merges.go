package apiserver

import (
	"context"
	"net/http"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// MemoryMerges is the part of a memory that merges change.
type MemoryMerges struct {
	MergedCount int `json:"mergedCount,omitempty" doc:"The number of memories that were merged into this one. Absent if there are none."`
}

type mergedMemoryBody struct {
	MemoryID  string `json:"memoryId"`
	Text      string `json:"text"`
	CreatedAt string `json:"createdAt" format:"date-time"`
	MergedAt  string `json:"mergedAt" format:"date-time"`
}

func mergedBodies(list []memory.MergedMemory) []mergedMemoryBody {
	var out []mergedMemoryBody
	for _, m := range list {
		out = append(out, mergedMemoryBody{MemoryID: m.ID, Text: m.Text, CreatedAt: chat.Stamp(m.CreatedAt), MergedAt: chat.Stamp(m.MergedAt)})
	}
	return out
}

type mergeMemoriesInput struct {
	MemoryID string `path:"memoryId" doc:"The memory that is kept." example:"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"`
	Body     struct {
		MemoryIDs []string `json:"memoryIds" minItems:"1" maxItems:"100" doc:"The memories to merge into this one, all or none."`
	} `nameHint:"MergeMemoriesRequest"`
}

type mergeMemoriesOutput struct {
	Body mergedMemoriesBody
}

type mergedMemoriesBody struct {
	Message     string   `json:"message"`
	MemoryID    string   `json:"memoryId" doc:"The memory that was kept."`
	MergedCount int      `json:"mergedCount" doc:"The number of memories merged."`
	MemoryIDs   []string `json:"memoryIds" doc:"The ids without duplicates."`
}

var docMergeMemories = doc{
	id: "mergeMemories", tag: "Memories", summary: "Merge near-duplicates into a memory",
	links: map[string]string{"getMemory.memoryId": "/memoryId", "unmergeMemories.memoryId": "/memoryId"},
	description: "Keeps this memory unchanged and merges up to 100 others into it, all or none: ids that do not exist are returned as `rejectedIds`. " +
		"Merged memories are in no list, search or count. They still count toward the quota, `getMemory` lists them, and `unmergeMemories` restores them at any time. " +
		"They are deleted with this memory. Memories whose `user_id` in `customMetadata` differs cannot be merged. A memory that has merged ones can be merged itself, in at most 100 levels. Merging a memory again changes nothing.",
	request:  example(`{"memoryIds":["0196b2f6-1f4c-7aa0-8c55-7d3e1b9f2a44"]}`),
	response: example(`{"message":"Memories merged","memoryId":"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07","mergedCount":1,"memoryIds":["0196b2f6-1f4c-7aa0-8c55-7d3e1b9f2a44"]}`),
	errors:   []int{http.StatusNotFound, http.StatusConflict},

	errorExamples: map[int]string{http.StatusConflict: "at most 100 memories can be merged into one, and 100 are already"},
}

func (s *Server) mergeMemories(ctx context.Context, who tenant.Identity, in *mergeMemoriesInput) (*mergeMemoriesOutput, error) {
	ids, err := s.Memories.Merge(ctx, who, memory.MergeInput{Kept: in.MemoryID, IDs: in.Body.MemoryIDs})
	if err != nil {
		return nil, err
	}
	return &mergeMemoriesOutput{Body: mergedMemoriesBody{Message: "Memories merged", MemoryID: in.MemoryID, MergedCount: len(ids), MemoryIDs: ids}}, nil
}

type unmergeMemoriesInput struct {
	MemoryID string `path:"memoryId" doc:"The memory that is kept." example:"0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"`
	Body     struct {
		MemoryIDs []string `json:"memoryIds,omitempty" minItems:"1" maxItems:"100" doc:"The memories to restore, all or none; by default all that were merged into this one."`
	} `nameHint:"UnmergeMemoriesRequest"`
}

type unmergeMemoriesOutput struct {
	Body unmergedMemoriesBody
}

type unmergedMemoriesBody struct {
	Message       string   `json:"message"`
	RestoredCount int      `json:"restoredCount" doc:"The number of memories restored."`
	MemoryIDs     []string `json:"memoryIds"`
}

var docUnmergeMemories = doc{
	id: "unmergeMemories", tag: "Memories", summary: "Undo a merge",
	description: "Restores memories that were merged into this one, with their ids, texts, versions, buckets and times. A memory whose bucket was deleted is then in the default bucket. " +
		"Ids that are not merged into this memory are returned as `rejectedIds`, and nothing is restored. A memory that was itself merged is restored through the memory into which it was merged.",
	request:  example(`{"memoryIds":["0196b2f6-2c7d-7e15-9b30-1a4c8f6d0e52"]}`),
	response: example(`{"message":"Memories restored","restoredCount":1,"memoryIds":["0196b2f6-2c7d-7e15-9b30-1a4c8f6d0e52"]}`),
	errors:   []int{http.StatusNotFound, http.StatusConflict},

	errorExamples: map[int]string{http.StatusConflict: memory.MergedItself("0196b2f6-1f4c-7aa0-8c55-7d3e1b9f2a44").Error()},
}

func (s *Server) unmergeMemories(ctx context.Context, who tenant.Identity, in *unmergeMemoriesInput) (*unmergeMemoriesOutput, error) {
	ids, err := s.Memories.Unmerge(ctx, who, memory.UnmergeInput{Kept: in.MemoryID, IDs: in.Body.MemoryIDs})
	if err != nil {
		return nil, err
	}
	if ids == nil {
		ids = []string{}
	}
	return &unmergeMemoriesOutput{Body: unmergedMemoriesBody{Message: "Memories restored", RestoredCount: len(ids), MemoryIDs: ids}}, nil
}
