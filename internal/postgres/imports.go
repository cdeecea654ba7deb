package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Imports implements the stores of the importer.
type Imports struct{ *DB }

var (
	_ importer.Store       = Imports{}
	_ importer.Leases      = Imports{}
	_ importer.Files       = Imports{}
	_ importer.UploadStore = Imports{}
	_ importer.Restorer    = Imports{}
)

// Imports returns the store of imports and uploaded files.
func (d *DB) Imports() Imports { return Imports{d} }

// GetImport implements importer.Store. While an import is being indexed, it
// updates the number of indexed conversations first.
func (i Imports) GetImport(ctx context.Context, scope tenant.Scope, id string) (importer.Import, error) {
	unknown := fault.New(fault.NotFound, "import %q not found", id)
	key, ok := parseID(id)
	if !ok {
		return importer.Import{}, unknown
	}
	out, err := i.read(ctx, scope, key, false)
	if err == nil && out.Status == importer.Done && !out.Settled() {
		out, err = i.read(ctx, scope, key, true)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return importer.Import{}, unknown
	}
	if err != nil {
		return importer.Import{}, fmt.Errorf("read import: %w", err)
	}
	return out, nil
}

func (i Imports) read(ctx context.Context, scope tenant.Scope, id string, countIndexed bool) (importer.Import, error) {
	var out importer.Import
	err := i.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		if countIndexed {
			err := q.CountIndexed(ctx, db.CountIndexedParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ImportID: id})
			if err != nil {
				return fmt.Errorf("count indexed conversations: %w", err)
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

// ListImports implements importer.Store.
func (i Imports) ListImports(ctx context.Context, scope tenant.Scope, offset, limit int) ([]importer.Import, int, error) {
	out := []importer.Import{}
	var total int64
	err := i.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		out = out[:0]
		rows, err := q.ListImports(ctx, db.ListImportsParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), Skip: integer(offset), Page: integer(limit),
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			one, err := toImport(r.Import, r.Blocked)
			if err != nil {
				return err
			}
			out = append(out, one)
		}
		total, err = q.CountImports(ctx, db.CountImportsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list imports: %w", err)
	}
	return out, int(total), nil
}

func toImport(r db.Import, blocked int64) (importer.Import, error) {
	out := importer.Import{
		ID: r.ID, File: r.File, Platform: r.Platform, Status: importer.Status(r.Status), Total: int(r.Total),
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
		out.Errors = append([]importer.EntryError{{Error: r.Failure}}, out.Errors...)
	}
	return out, nil
}

// insertImport records the finished import of one conversation and returns its
// id.
func insertImport(q *db.Queries, scope tenant.Scope, platform string, r importer.Result) (string, error) {
	id, err := newID()
	if err != nil {
		return "", err
	}
	c := importer.Count([]importer.Result{r})
	list, err := json.Marshal(c.Errors)
	if err != nil {
		return "", err
	}
	q.Later().InsertImport(db.InsertImportParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Platform: platform, Status: string(c.Status()),
		Imported: c.Imported, Updated: c.Updated, Skipped: c.Skipped, Unchanged: c.Unchanged, Failed: c.Failed,
		Indexed: c.Indexed, Errors: list,
	})
	insertLedger(q, scope, id, []importer.Result{r})
	return id, nil
}

func insertLedger(q *db.Queries, scope tenant.Scope, importID string, results []importer.Result) {
	p := db.InsertLedgerParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ImportID: importID}
	for _, r := range results {
		p.Ordinals = append(p.Ordinals, integer(r.Ordinal))
		p.Outcomes = append(p.Outcomes, string(r.Outcome))
		p.ConversationIds = append(p.ConversationIds, r.Conversation)
		p.Reasons = append(p.Reasons, r.Reason)
	}
	q.Later().InsertLedger(p)
}
