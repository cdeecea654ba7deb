package chat

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Marks are what a user says of conversations; nil leaves one as it is.
type Marks struct {
	Excluded *bool // true leaves them out, false lets them in again if there is room
	Pinned   *bool
}

// StateStore changes what users say of conversations. internal/postgres
// implements it.
type StateStore interface {
	// Mark sets the marks on conversations and returns the ids that there are,
	// whether or not they changed; others are skipped. Counters, units and
	// index jobs commit with it, freed room goes to blocked ones at once, and
	// one that is let in without room is blocked.
	Mark(ctx context.Context, scope tenant.Scope, ids []string, m Marks) ([]string, error)
}

// UpdateInput says which conversations to mark, and how.
type UpdateInput struct {
	IDs []string // 1 to MaxBulk
	Marks
}

// Validate reports what is wrong with the input, as one Invalid error.
func (in UpdateInput) Validate() error {
	var f fault.Fields
	if len(in.IDs) == 0 || len(in.IDs) > MaxBulk {
		f.Add("ids", "must hold 1 to %d ids, not %d", MaxBulk, len(in.IDs))
	}
	if in.Excluded == nil && in.Pinned == nil {
		f.Add("excluded", "or pinned is required and takes true or false")
	}
	return f.Err()
}

// Update marks conversations and returns the ids that there are, in the order
// given, each once; ids that do not resolve are skipped.
func (s *Service) Update(ctx context.Context, who tenant.Identity, in UpdateInput) ([]string, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	found, err := s.States.Mark(ctx, who.Scope, resolvable(in.IDs), in.Marks)
	if err != nil {
		return nil, fmt.Errorf("update conversations: %w", err)
	}
	return inOrder(in.IDs, found), nil
}

// inOrder returns those of the ids that were found, in the order given, each
// once.
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
