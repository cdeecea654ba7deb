package mem0

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
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
		id := strings.ToLower(m.MemoryID)
		if _, twice := changes[id]; twice || id == "" {
			return nil, nil, fault.New(fault.Invalid, "memories[%d].memory_id is required and must not be repeated", i)
		}
		changes[id] = m.updateIn
		ids = append(ids, id)
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
	type change struct {
		who tenant.Identity
		to  memory.UpdateInput
	}
	all := make([]change, 0, n)
	for _, o := range found {
		for _, m := range o.memories {
			to, err := changeOf(m, changes[m.ID])
			if err == nil {
				err = to.Validate() // before any memory is changed
			}
			if err != nil {
				return nil, changeError(err, slices.Index(ids, m.ID))
			}
			all = append(all, change{o.who, to})
		}
	}
	for _, c := range all {
		if _, err := e.Memories.Update(ctx, c.who, c.to); err != nil {
			return nil, err
		}
	}
	return messageOut{fmt.Sprintf("Successfully updated %d memories", n)}, nil
}

// changeError returns the error of a change, with its index in the request.
func changeError(err error, i int) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		err = f.WithFieldNames(FieldNames)
	}
	return fault.New(fault.Invalid, "memories[%d]: %s", i, err)
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
