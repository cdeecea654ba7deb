package postgres

import (
	"context"
	"fmt"

	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// link records what a memory supersedes and what supersedes it.
func link(q *db.Queries, scope tenant.Scope, id string, links memory.Links) {
	pairs := map[string][]string{} // the older ones, by the newer one
	if len(links.Supersedes) > 0 {
		pairs[id] = parseIDs(links.Supersedes)
	}
	if newer, ok := parseID(links.SupersededBy); ok {
		pairs[newer] = []string{id}
	}
	for newer, older := range pairs {
		q.Later().Supersede(db.SupersedeParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), Newer: newer, Older: older})
	}
}

// relink replaces the links of a memory.
func relink(q *db.Queries, scope tenant.Scope, id string, links memory.Links) {
	q.Later().Unlink(db.UnlinkParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
	link(q, scope, id, links)
}

// Newer implements memory.Store.
func (m Memories) Newer(ctx context.Context, scope tenant.Scope, ids []string, f memory.Filter) (map[string]string, error) {
	out := map[string]string{}
	err := m.DB.readScope(ctx, scope, func(tx db.DBTX, q *db.Queries) error {
		rows, err := q.NewerMemories(ctx, db.NewerMemoriesParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Ids: parseIDs(ids), BucketID: f.Bucket, AsOf: optionalTime(f.AsOf),
		})
		if err != nil {
			return err
		}
		match, err := matching(ctx, tx, scope, f.Where, collect(rows, func(r db.NewerMemoriesRow) string { return r.Newer }))
		for _, r := range rows {
			if match[r.Newer] {
				out[r.ID] = r.Newer
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read links of memories: %w", err)
	}
	return out, nil
}
