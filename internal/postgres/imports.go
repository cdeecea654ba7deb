package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ chat.ImportStore = Conversations{}

// GetImport implements chat.ImportStore. Of an import whose embeddings follow
// it looks how many have.
func (c Conversations) GetImport(ctx context.Context, scope tenant.Scope, id string) (chat.Import, error) {
	unknown := fault.New(fault.NotFound, "there is no import %q", id)
	key, ok := parseID(id)
	if !ok {
		return chat.Import{}, unknown
	}
	out, err := c.readImport(ctx, scope, key, false)
	if err == nil && out.Status == chat.ImportDone && !out.Settled() {
		out, err = c.readImport(ctx, scope, key, true)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return chat.Import{}, unknown
	}
	if err != nil {
		return chat.Import{}, fmt.Errorf("read import: %w", err)
	}
	return out, nil
}

func (c Conversations) readImport(ctx context.Context, scope tenant.Scope, id string, look bool) (chat.Import, error) {
	var out chat.Import
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		if look {
			err := q.CountIndexed(ctx, db.CountIndexedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ImportID: id})
			if err != nil {
				return fmt.Errorf("count what is indexed: %w", err)
			}
		}
		row, err := q.GetImport(ctx, db.GetImportParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id})
		if err != nil {
			return err
		}
		out, err = toImport(row.Import, row.Blocked)
		return err
	})
	return out, err
}

// ListImports implements chat.ImportStore.
func (c Conversations) ListImports(ctx context.Context, scope tenant.Scope, offset, limit int) ([]chat.Import, int, error) {
	out := []chat.Import{}
	var total int64
	err := c.DB.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		out = out[:0]
		rows, err := q.ListImports(ctx, db.ListImportsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Skip: int32(offset), Page: int32(limit),
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			i, err := toImport(r.Import, r.Blocked)
			if err != nil {
				return err
			}
			out = append(out, i)
		}
		total, err = q.CountImports(ctx, db.CountImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list imports: %w", err)
	}
	return out, int(total), nil
}

func toImport(r db.Import, blocked int64) (chat.Import, error) {
	out := chat.Import{
		ID: r.ID, Platform: r.Platform, Status: chat.ImportStatus(r.Status), Total: int(r.Total),
		Imported: int(r.Imported), Updated: int(r.Updated), Skipped: int(r.Skipped), Unchanged: int(r.Unchanged),
		Blocked: int(blocked), Failed: int(r.Failed), Indexed: int(r.Indexed), StartedAt: r.StartedAt.UTC(), Version: r.Version,
	}
	if r.FinishedAt != nil {
		out.FinishedAt = r.FinishedAt.UTC()
	}
	if err := json.Unmarshal(r.Errors, &out.Errors); err != nil {
		return out, fmt.Errorf("read errors: %w", err)
	}
	if err := json.Unmarshal(r.Warnings, &out.Warnings); err != nil {
		return out, fmt.Errorf("read warnings: %w", err)
	}
	if r.Failure != "" {
		out.Errors = append([]chat.ImportError{{Error: r.Failure}}, out.Errors...)
	}
	return out, nil
}
