package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// MaxMerged is the maximum number of memories that are merged into one, and of ids in one
// request.
const MaxMerged = 100

// MaxMergeDepth is the maximum number of levels of merges: of memories that were merged into one that was merged later.
const MaxMergeDepth = 100

// Merger is the part of a Store that merges memories. A merged memory is in no list, search
// or count, and still counts toward the quota. It is deleted with the memory it was merged into.
type Merger interface {
	// Merge merges all of the memories into the kept one; those that were merged into it
	// before are skipped. If any id is unknown it merges none and returns MissingMerge. It
	// returns ErrMemoryNotFound for an unknown kept memory, MergedElsewhere for a merged one,
	// ErrOtherSubject for memories about different persons, TooManyMerged and ErrMergeDepth.
	Merge(ctx context.Context, scope tenant.Scope, in MergeInput) (MergeResult, error)
	// Unmerge restores memories as they were when they were merged, and returns their ids. If
	// any id was not merged into the kept memory it restores none and returns
	// MissingMerged. It returns ErrMemoryNotFound for an unknown kept memory, and MergedItself
	// for a merged one without ids if none was merged into it.
	Unmerge(ctx context.Context, scope tenant.Scope, in UnmergeInput) ([]string, error)
	// ListMerged returns the memories that were merged into one, those merged last first.
	ListMerged(ctx context.Context, scope tenant.Scope, id string) ([]MergedMemory, error)
	// GetMerged returns a merged memory, or ErrMemoryNotFound.
	GetMerged(ctx context.Context, scope tenant.Scope, id string) (Memory, error)
}

// MergeInput merges memories that say the same.
type MergeInput struct {
	Kept string   // the memory that is kept
	IDs  []string // 1 to MaxMerged
}

// UnmergeInput restores merged memories.
type UnmergeInput struct {
	Kept string   // the memory into which they were merged
	IDs  []string // empty for all, at most MaxMerged
}

// MergeResult is the result of a merge.
type MergeResult struct {
	IDs   []string          // distinct
	Units []retrieve.UnitID // of the merged memories
}

// MergedMemory is a memory that was merged into another one.
type MergedMemory struct {
	ID        string
	Text      string
	CreatedAt time.Time
	MergedAt  time.Time
}

// ErrOtherSubject rejects a merge of memories about different persons.
var ErrOtherSubject = otherSubject()

func otherSubject() error {
	var f fault.Fields
	f.Add("memory ids", "must name memories with the same user_id in their metadata")
	return f.Err()
}

// ErrMergeDepth rejects a merge of memories with too many levels of merges.
var ErrMergeDepth = fault.New(fault.Conflict,
	"merges can be at most %d levels deep: keep the memory into which the others were merged, or undo its merges first", MaxMergeDepth)

// MergedElsewhere returns the error for a merge into a memory that was itself merged.
func MergedElsewhere(into string) error {
	return fault.New(fault.Conflict, "the memory was merged into memory %s: merge into that one, or restore the memory first", into)
}

// MergedItself returns the error for an Unmerge of a memory that was itself merged, and into
// which no other was.
func MergedItself(into string) error {
	return fault.New(fault.Conflict, "no memories are merged into this one; it was itself merged into memory %s, and undoing that merge restores it", into)
}

// TooManyMerged returns the error for a merge into a memory with this many merged ones.
func TooManyMerged(n int) error {
	return fault.New(fault.Conflict, "at most %d memories can be merged into one, and %d are already", MaxMerged, n)
}

// MissingMerge returns the error for a merge that was rejected because of unknown ids, or nil
// if there are none.
func MissingMerge(ids []string) error {
	return rejected(ids, fmt.Sprintf("%d of the memories were not found; nothing was merged", len(ids)))
}

// MissingMerged returns the error for an Unmerge that was rejected because of ids that were not
// merged into the kept memory, or nil if there are none.
func MissingMerged(ids []string) error {
	return rejected(ids, fmt.Sprintf("%d of the memories are not merged into this one; nothing was restored", len(ids)))
}

func rejected(ids []string, message string) error {
	if len(ids) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.NotFound, RejectedIDs: ids, Message: message}
}

// Validate returns one Invalid error for all invalid fields.
func (in MergeInput) Validate() error {
	var f fault.Fields
	if n := len(in.IDs); n == 0 || n > MaxMerged {
		f.Add("memory ids", "must contain 1 to %d ids, not %d", MaxMerged, n)
	}
	if slices.ContainsFunc(in.IDs, func(id string) bool { return strings.EqualFold(id, in.Kept) }) {
		f.Add("memory ids", "must not contain the memory that is kept")
	}
	return f.Err()
}

// Validate returns one Invalid error for all invalid fields.
func (in UnmergeInput) Validate() error {
	var f fault.Fields
	if n := len(in.IDs); n > MaxMerged {
		f.Add("memory ids", "must contain at most %d ids, not %d", MaxMerged, n)
	}
	return f.Err()
}

// Merge merges up to MaxMerged memories into one, all of them or none, and returns their
// distinct ids. Unmerge undoes it at any time. It returns Invalid for an invalid input or memories
// about different persons, NotFound for an unknown kept memory or, with RejectedIDs, for unknown
// memories, and Conflict if the kept memory was itself merged, or for too many merged ones or levels.
func (s *Service) Merge(ctx context.Context, who tenant.Identity, in MergeInput) ([]string, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	merged, err := s.Store.Merge(ctx, who.Scope, in)
	if err != nil {
		return nil, fmt.Errorf("merge memories: %w", err)
	}
	// On failure the index job removes them.
	_ = s.unindex(ctx, who, merged.Units)
	return merged.IDs, nil
}

// Unmerge restores memories that were merged into one, all of the ids or none; without ids,
// all that were merged into it. It returns their ids. It returns Invalid for too many ids, and
// NotFound for an unknown kept memory or, with RejectedIDs, for memories that were not merged into it,
// and Conflict for a memory that was itself merged if none was merged into it.
func (s *Service) Unmerge(ctx context.Context, who tenant.Identity, in UnmergeInput) ([]string, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	ids, err := s.Store.Unmerge(ctx, who.Scope, in)
	if err != nil {
		return nil, fmt.Errorf("restore merged memories: %w", err)
	}
	return ids, nil
}

// GetMerged returns a memory, also a merged one, with the memories that were merged into
// it. It returns NotFound for an unknown memory.
func (s *Service) GetMerged(ctx context.Context, who tenant.Identity, id string) (Memory, []MergedMemory, error) {
	m, err := s.Get(ctx, who, id)
	if errors.Is(err, ErrMemoryNotFound) {
		m, err = s.Store.GetMerged(ctx, who.Scope, id)
	}
	if err != nil {
		return Memory{}, nil, fmt.Errorf("read memory: %w", err)
	}
	if m.Merged == 0 {
		return m, nil, nil
	}
	list, err := s.Store.ListMerged(ctx, who.Scope, m.ID)
	if err != nil {
		return Memory{}, nil, fmt.Errorf("list merged memories: %w", err)
	}
	return m, list, nil
}
