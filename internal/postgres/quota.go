package postgres

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// reserve adds memories and bytes of storage (negative to free them) to what
// the tenant and the user hold; Forbidden when that would pass a quota. It
// locks the usage row, which every writer takes first.
func reserve(ctx context.Context, q *db.Queries, scope tenant.Scope, memories, storage int64) error {
	if memories == 0 && storage == 0 {
		return nil
	}
	n, err := q.ReserveUsage(ctx, db.ReserveUsageParams{TenantID: string(scope.Tenant), Memories: memories, Storage: storage})
	if err == nil && n > 0 && memories != 0 {
		n, err = q.ReserveUserMemories(ctx, db.ReserveUserMemoriesParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Memories: memories,
		})
	}
	if err != nil {
		return fmt.Errorf("reserve quota: %w", err)
	}
	if n > 0 {
		return nil
	}
	return usedUp(ctx, q, scope, memories, storage)
}

// help says what to do when a quota is used up.
const help = "delete some, or ask your host for more"

func storageUsedUp(hard, used int64) error {
	return fault.New(fault.Forbidden, "the storage quota of %d bytes is used up (%d used): %s", hard, used, help)
}

// usedUp says which quota was in the way.
func usedUp(ctx context.Context, q *db.Queries, scope tenant.Scope, memories, storage int64) error {
	row, err := q.UsageAndQuota(ctx, string(scope.Tenant))
	if err != nil {
		return fmt.Errorf("read quota: %w", orUnknown(err, scope.Tenant))
	}
	switch {
	case storage > 0 && row.Storage+storage > row.StorageHard:
		return storageUsedUp(row.StorageHard, row.Storage)
	case row.Memories+memories > row.MemoriesHard:
		return fault.New(fault.Forbidden, "the quota of %d memories is used up: %s", row.MemoriesHard, help)
	}
	return fault.New(fault.Forbidden, "your quota of %d memories is used up: %s", row.UserMemoriesHard, help)
}

func collect[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}
