package postgres

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// reserve adds memories and bytes of storage to the usage of the tenant and the
// user; negative numbers release them later. embedded
// are the tokens of the vectors that the transaction stores. It returns
// tenant.QuotaExceeded if a quota would be exceeded. It locks the usage row, which every
// writer locks first.
func reserve(ctx context.Context, q *db.Queries, scope tenant.Scope, memories, storage, embedded int64) error {
	if memories == 0 && storage == 0 && embedded == 0 {
		return nil
	}
	if memories <= 0 && storage <= 0 {
		q.Later().ReleaseUsage(db.ReleaseUsageParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Memories: memories, Storage: storage, Embedded: embedded,
		})
		return nil
	}
	n, err := q.ReserveUsage(ctx, db.ReserveUsageParams{TenantID: string(scope.Tenant), Memories: memories, Storage: storage, Embedded: embedded})
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
	return quotaExceeded(ctx, q, scope, memories, storage)
}

// quotaExceeded returns a tenant.QuotaExceeded for the quota that a reservation
// would exceed, or errChanged.
func quotaExceeded(ctx context.Context, q *db.Queries, scope tenant.Scope, memories, storage int64) error {
	row, err := q.UsageAndQuota(ctx, db.UsageAndQuotaParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if err != nil {
		return fmt.Errorf("read quota: %w", orUnknown(err, scope.Tenant))
	}
	switch {
	case storage > 0 && row.Storage+storage > row.StorageHard:
		return storageExceeded(row.StorageHard, row.Storage)
	case row.Memories+memories > row.MemoriesHard:
		return tenant.QuotaExceeded{Resource: tenant.ResourceMemories, Limit: row.MemoriesHard, Used: row.Memories}
	case row.UserMemories+memories > row.UserMemoriesHard:
		return tenant.QuotaExceeded{Resource: tenant.ResourceUserMemories, Limit: row.UserMemoriesHard, Used: row.UserMemories}
	}
	return errChanged // a concurrent deletion released what was missing
}

func storageExceeded(limit, used int64) error {
	return tenant.QuotaExceeded{Resource: tenant.ResourceStorage, Limit: limit, Used: used}
}

func collect[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}
