package memory

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Count returns the number of memories that match a filter.
func (s *Service) Count(ctx context.Context, who tenant.Identity, where filter.Filter) (int, error) {
	n, err := s.Store.Count(ctx, who.Scope, where)
	if err != nil {
		return 0, fmt.Errorf("count memories: %w", err)
	}
	return n, nil
}

// Groups returns a page of the groups of the user's memories, and the number of all groups.
func (s *Service) Groups(ctx context.Context, who tenant.Identity, skip, limit int) ([]Group, int, error) {
	groups, all, err := s.Store.Groups(ctx, who.Scope, skip, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("list groups of memories: %w", err)
	}
	return groups, all, nil
}

// matchBatch is the number of memories that one transaction of DeleteMatching deletes.
const matchBatch = 1000

// DeleteMatching deletes the memories that match a filter, in batches, and returns their
// number.
func (s *Service) DeleteMatching(ctx context.Context, who tenant.Identity, where filter.Filter) (int, error) {
	deleted := 0
	for {
		ids, err := s.Store.Matching(ctx, who.Scope, where, matchBatch)
		if err != nil {
			return deleted, fmt.Errorf("list memories: %w", err)
		}
		if len(ids) == 0 {
			return deleted, nil
		}
		done, err := s.Store.Delete(ctx, who.Scope, ids)
		if err != nil {
			return deleted, fmt.Errorf("delete memories: %w", err)
		}
		deleted += len(done.IDs)
		// On failure the index job removes them.
		_ = s.unindex(ctx, who, done.Units)
		if len(ids) < matchBatch {
			return deleted, nil
		}
	}
}
