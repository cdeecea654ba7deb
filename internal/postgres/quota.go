package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// The SQLSTATEs of statements that refuse to write.
const (
	notCreated = "MN001" // CreateMemory: the memory exists, or its bucket or user does not
	overQuota  = "MN002" // require_quota
)

// refusal returns the error of a statement that refused to write, or nil.
func refusal(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && e.Code == notCreated:
		return errChanged
	case ok && e.Code == overQuota:
		exceeded := tenant.QuotaExceeded{Resource: e.ConstraintName}
		if _, err := fmt.Sscan(e.Detail, &exceeded.Limit, &exceeded.Used); err != nil {
			return fmt.Errorf("read the reason of a refusal: %w", err)
		}
		return exceeded
	}
	return nil
}

// reserve adds memories and bytes of storage to the usage of the tenant and the user; negative numbers release them.
// embedded are the tokens of the vectors that the transaction stores. The transaction fails with tenant.QuotaExceeded
// if a quota would be exceeded. A transaction that reserves more holds the lock on the usage row.
func reserve(q *db.Queries, scope tenant.Scope, memories, storage, embedded int64) {
	if memories != 0 || storage != 0 || embedded != 0 {
		q.Later().ChargeUsage(db.ChargeUsageParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Memories: memories, Storage: storage, Embedded: embedded,
		})
	}
}

// requireStorage returns tenant.QuotaExceeded if so many more bytes of storage exceed the quota. It reserves nothing.
func requireStorage(ctx context.Context, q *db.Queries, scope tenant.Scope, bytes int64) error {
	err := q.RequireQuota(ctx, db.RequireQuotaParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Storage: bytes})
	if err != nil {
		return fmt.Errorf("check quota: %w", err)
	}
	return nil
}

func collect[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}
