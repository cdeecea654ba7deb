package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Holdings returns the usage of the user and of the tenant.
func (d *DB) Holdings(ctx context.Context, scope tenant.Scope) (tenant.Holdings, error) {
	row, err := db.New(d.pool).GetHoldings(ctx, db.GetHoldingsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.Holdings{}, unknownTenant(scope.Tenant)
	}
	if err != nil {
		return tenant.Holdings{}, fmt.Errorf("read holdings: %w", mapError(err))
	}
	return tenant.Holdings{Memories: row.Memories, Conversations: row.Conversations, Tenant: tenant.Usage{
		Memories: row.TenantMemories, Conversations: row.TenantConversations, Blocked: row.Blocked, Storage: row.Storage, Users: row.Users,
	}}, nil
}
