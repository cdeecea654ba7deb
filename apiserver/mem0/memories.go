package mem0

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func (e *Endpoint) get(ctx context.Context, r Request) (any, error) {
	who, m, err := e.one(ctx, r, r.Param("memory"))
	if err != nil {
		return nil, err
	}
	return toOut(who, m), nil
}

type updateIn struct {
	Text     *string          `json:"text"`
	Metadata *json.RawMessage `json:"metadata"`
}

type updatedOut struct {
	memoryOut
	Text string `json:"text"`
}

// notUpdated are the options of update that are refused.
var notUpdated = map[string]string{"timestamp": notAdded["timestamp"], "expiration_date": notAdded["expiration_date"]}

func (e *Endpoint) update(ctx context.Context, r Request) (any, error) {
	var in updateIn
	if err := errors.Join(e.Decode(r.Body, &in), rejectUnsupported(r.Body, notUpdated)); err != nil {
		return nil, firstOf(err)
	}
	who, m, err := e.one(ctx, r, r.Param("memory"))
	if err != nil {
		return nil, err
	}
	change, err := changeOf(m, in)
	if err != nil {
		return nil, err
	}
	if _, err := e.Memories.Update(ctx, who, change); err != nil {
		return nil, err
	}
	if m, err = e.Memories.Get(ctx, who, m.ID); err != nil {
		return nil, err
	}
	return updatedOut{toOut(who, m), m.Text}, nil
}

// changeOf returns the change of a memory. New metadata replaces that of the client, and keeps the
// user and the app.
func changeOf(m memory.Memory, in updateIn) (memory.UpdateInput, error) {
	change := memory.UpdateInput{ID: m.ID, Text: in.Text}
	if in.Metadata != nil {
		_, user, app := splitKeys(m.Metadata)
		metadata, err := withKeys(*in.Metadata, map[string]string{memory.KeyUser: user, memory.KeyApp: app})
		if err != nil {
			return memory.UpdateInput{}, err
		}
		change.Metadata = &metadata
	}
	return change, nil
}

// delete deletes a memory, and with delete_linked those that it replaces.
func (e *Endpoint) delete(ctx context.Context, r Request) (any, error) {
	who, m, err := e.one(ctx, r, r.Param("memory"))
	if err != nil {
		return nil, err
	}
	ids := []string{m.ID}
	if flag(r.Query, "delete_linked") {
		if ids, err = e.linked(ctx, who, m); err != nil {
			return nil, err
		}
	}
	return messageOut{"Memory deleted successfully!"}, e.deleteMany(ctx, who, ids)
}

// linked returns the ids of a memory and of those that it replaces, directly or not.
func (e *Endpoint) linked(ctx context.Context, who tenant.Identity, m memory.Memory) ([]string, error) {
	ids := []string{m.ID}
	seen := map[string]bool{m.ID: true}
	for next := m.Supersedes; len(next) > 0 && len(ids) < memory.MaxBulk; {
		found, err := e.Memories.Find(ctx, who, next)
		if err != nil {
			return nil, err
		}
		next = nil
		for _, older := range found {
			if !seen[older.ID] {
				seen[older.ID] = true
				ids = append(ids, older.ID)
				next = append(next, older.Supersedes...)
			}
		}
	}
	return ids, nil
}

func (e *Endpoint) deleteMany(ctx context.Context, who tenant.Identity, ids []string) error {
	done, err := e.Memories.DeleteMany(ctx, who, ids)
	if err == nil && done.Deleted == 0 && done.Cause != nil {
		err = fault.Wrap(fault.Unavailable, done.Cause, "the database is unavailable; nothing was deleted")
	}
	return err
}

type historyOut struct {
	ID        string  `json:"id"`
	MemoryID  string  `json:"memory_id"`
	OldMemory *string `json:"old_memory"`
	NewMemory string  `json:"new_memory"`
	Event     string  `json:"event"`
	UserID    *string `json:"user_id"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

// history returns the changes of a memory's text, oldest first: the last ones of more than
// memory.MaxVersions.
func (e *Endpoint) history(ctx context.Context, r Request) (any, error) {
	who, m, err := e.one(ctx, r, r.Param("memory"))
	if err != nil {
		return nil, err
	}
	versions, hasMore, err := e.Memories.Versions(ctx, who, m.ID, 0, memory.MaxVersions)
	if err != nil {
		return nil, err
	}
	user := toOut(who, m).UserID
	out := []historyOut{}
	for i, v := range slices.Backward(versions) {
		if hasMore && i == len(versions)-1 {
			continue // the text before it is not known
		}
		change := historyOut{ID: fmt.Sprintf("%s.%d", m.ID, v.Version), MemoryID: m.ID, NewMemory: v.Text, Event: "ADD",
			UserID: user, CreatedAt: chat.Stamp(m.CreatedAt), UpdatedAt: chat.Stamp(v.CreatedAt)}
		if i+1 < len(versions) {
			change.OldMemory, change.Event = &versions[i+1].Text, "UPDATE"
		}
		out = append(out, change)
	}
	return out, nil
}
