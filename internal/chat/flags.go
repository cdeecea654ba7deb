package chat

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Flags are the user's settings of a conversation; nil leaves one unchanged.
type Flags struct {
	Excluded *bool // false includes the conversation again, quota permitting
	Pinned   *bool
}

// Apply returns the state of a conversation after the flags are set. An included
// conversation is blocked until a re-balance activates it.
func (f Flags) Apply(s Status) Status {
	switch {
	case f.Excluded == nil:
		return s
	case *f.Excluded:
		return Excluded
	case s == Excluded:
		return Blocked
	}
	return s
}

// UpdateInput selects conversations and the flags to set.
type UpdateInput struct {
	IDs []string // 1 to MaxBulk
	Flags
}

// Validate returns one Invalid error that lists every invalid field.
func (in UpdateInput) Validate() error {
	var f fault.Fields
	if len(in.IDs) == 0 || len(in.IDs) > MaxBulk {
		f.Add("ids", "must contain 1 to %d ids, not %d", MaxBulk, len(in.IDs))
	}
	if in.Excluded == nil && in.Pinned == nil {
		f.Add("excluded", "or pinned is required and must be true or false")
	}
	return f.Err()
}

// Update sets flags on conversations and returns the ids that exist, in the
// order given and without duplicates. Unknown ids are ignored.
func (s *Service) Update(ctx context.Context, who tenant.Identity, in UpdateInput) ([]string, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	found, err := s.Store.SetFlags(ctx, who.Scope, validIDs(in.IDs), in.Flags)
	if err != nil {
		return nil, fmt.Errorf("update conversations: %w", err)
	}
	return inOrder(in.IDs, found), nil
}

// inOrder returns the ids that were found, in the order given and without
// duplicates.
func inOrder(ids, found []string) []string {
	left := make(map[string]bool, len(found))
	for _, id := range found {
		left[id] = true
	}
	out := make([]string, 0, len(found))
	for _, id := range ids {
		if left[id] {
			out = append(out, id)
			delete(left, id)
		}
	}
	return out
}
