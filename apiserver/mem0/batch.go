package mem0

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

// maxBatch is the maximum number of memories of a batch.
const maxBatch = 1000

type batchIn struct {
	Memories []struct {
		MemoryID string `json:"memory_id"`
		updateIn
	} `json:"memories"`
}

// batch decodes a batch and returns the changes by memory, and the ids in order.
func (e *Endpoint) batch(r Request) (map[string]updateIn, []string, error) {
	var in batchIn
	if err := e.Decode(r.Body, &in); err != nil {
		return nil, nil, err
	}
	if n := len(in.Memories); n == 0 || n > maxBatch {
		return nil, nil, fault.New(fault.Invalid, "memories must contain 1 to %d memories, not %d", maxBatch, n)
	}
	changes := map[string]updateIn{}
	var ids []string
	for i, m := range in.Memories {
		if _, twice := changes[m.MemoryID]; twice || m.MemoryID == "" {
			return nil, nil, fault.New(fault.Invalid, "memories[%d].memory_id must not be repeated", i)
		}
		changes[m.MemoryID] = m.updateIn
		ids = append(ids, m.MemoryID)
	}
	return changes, ids, nil
}

// updateBatch changes memories one after the other. It changes none if one does not exist
// or a change is invalid.
func (e *Endpoint) updateBatch(ctx context.Context, r Request) (any, error) {
	changes, ids, err := e.batch(r)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if err := (memory.UpdateInput{ID: id, Text: changes[id].Text, AttributeChanges: memory.AttributeChanges{Metadata: changes[id].Metadata}}).Validate(); err != nil {
			return nil, fault.New(fault.Invalid, "memories[%d]: %s", i, err)
		}
	}
	found, err := e.find(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, o := range found {
		n += len(o.memories)
	}
	if n < len(ids) {
		return nil, fault.New(fault.NotFound, "%d of the memories were not found; nothing was changed", len(ids)-n)
	}
	for _, o := range found {
		for _, m := range o.memories {
			if err := e.change(ctx, o.who, m, changes[m.ID]); err != nil {
				return nil, err
			}
		}
	}
	return messageOut{fmt.Sprintf("Successfully updated %d memories", n)}, nil
}

// deleteBatch deletes memories; those that do not exist are skipped.
func (e *Endpoint) deleteBatch(ctx context.Context, r Request) (any, error) {
	_, ids, err := e.batch(r)
	if err != nil {
		return nil, err
	}
	found, err := e.find(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, o := range found {
		ids := make([]string, len(o.memories))
		for i, m := range o.memories {
			ids[i] = m.ID
		}
		if len(ids) == 0 {
			continue
		}
		if err := e.deleteMany(ctx, o.who, ids); err != nil {
			return nil, err
		}
		n += len(ids)
	}
	return messageOut{fmt.Sprintf("Successfully deleted %d memories", n)}, nil
}
