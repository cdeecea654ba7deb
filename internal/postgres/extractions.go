package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ extract.Store = (*DB)(nil)

// CreateExtraction stores messages and commits the job that extracts facts from them. It
// returns the id, or extract.ErrTooMany.
func (d *DB) CreateExtraction(ctx context.Context, scope tenant.Scope, in extract.Input) (string, error) {
	id, err := newID()
	if err != nil {
		return "", fmt.Errorf("generate id: %w", err)
	}
	input, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encode messages: %w", err)
	}
	err = d.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		n, err := q.CountPendingExtractions(ctx, db.CountPendingExtractionsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User)})
		if err != nil {
			return err
		}
		if n >= extract.MaxPending {
			return extract.ErrTooMany
		}
		err = q.InsertExtraction(ctx, db.InsertExtractionParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Input: input})
		if err != nil {
			return err
		}
		if err := d.insertJob(ctx, tx, queue.Extractions, extract.Args{Tenant: scope.Tenant, User: scope.User, Extraction: id}); err != nil {
			return err
		}
		appendAudit(ctx, q, scope, audit.MemoryExtract, id)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("create extraction: %w", err)
	}
	return id, nil
}

// OpenExtraction implements extract.Store.
func (d *DB) OpenExtraction(ctx context.Context, a extract.Args) (tenant.Identity, extract.Extraction, error) {
	who := tenant.Identity{Scope: tenant.JobScope(a.Tenant, a.User)}
	var x extract.Extraction
	err := d.inScope(ctx, who.Scope, func(_ pgx.Tx, q *db.Queries) error {
		row, err := q.OpenExtraction(ctx, db.OpenExtractionParams{TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Extraction})
		if errors.Is(err, pgx.ErrNoRows) {
			return memory.ErrExtractionEnded
		}
		if err != nil {
			return err
		}
		who.UserName, who.Generation = row.UserName, placement.GenerationID(row.UserPlacement.GenerationID)
		who.Placement = locationOf(row.UserPlacement)
		x.Stored = int(row.Stored)
		if row.Facts != "" {
			if err := json.Unmarshal([]byte(row.Facts), &x.Facts); err != nil {
				return err
			}
		}
		return json.Unmarshal([]byte(row.Input), &x.Input)
	})
	if err != nil {
		return tenant.Identity{}, extract.Extraction{}, fmt.Errorf("read extraction: %w", err)
	}
	return who, x, nil
}

// SaveFacts implements extract.Store.
func (d *DB) SaveFacts(ctx context.Context, scope tenant.Scope, id string, facts []string) error {
	encoded, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("encode facts: %w", err)
	}
	err = d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		return q.SaveExtractedFacts(ctx, db.SaveExtractedFactsParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Facts: encoded})
	})
	if err != nil {
		return fmt.Errorf("save facts: %w", err)
	}
	return nil
}

// FinishExtraction implements extract.Store.
func (d *DB) FinishExtraction(ctx context.Context, scope tenant.Scope, id, failure string) error {
	err := d.inScope(ctx, scope, func(_ pgx.Tx, q *db.Queries) error {
		return q.FinishExtraction(ctx, db.FinishExtractionParams{TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, Failure: failure})
	})
	if err != nil {
		return fmt.Errorf("finish extraction: %w", err)
	}
	return nil
}

// ExtractionState returns the state of an extraction of a user or, with ofApplications, of any
// user of the tenant's applications. It returns extract.ErrUnknown for others.
func (d *DB) ExtractionState(ctx context.Context, scope tenant.Scope, ofApplications bool, id string) (extract.State, error) {
	id, ok := parseID(id)
	if !ok {
		return extract.State{}, extract.ErrUnknown
	}
	var out extract.State
	err := d.inTenant(ctx, scope.Tenant, func(_ pgx.Tx, q *db.Queries) error {
		row, err := q.ExtractionState(ctx, db.ExtractionStateParams{
			TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: id, OfApplications: ofApplications,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return extract.ErrUnknown
		}
		out = extract.State{ID: id, Failure: row.Failure, CreatedAt: row.CreatedAt.UTC()}
		if row.FinishedAt != nil {
			out.FinishedAt = row.FinishedAt.UTC()
		}
		return err
	})
	if err != nil {
		return extract.State{}, fmt.Errorf("read extraction: %w", err)
	}
	return out, nil
}

// advanceExtraction records that a result of an extraction is stored, and returns
// memory.ErrExtractionEnded if it must not be. It locks the usage row first, as the deletion
// of an account does.
func advanceExtraction(ctx context.Context, q *db.Queries, scope tenant.Scope, r memory.Result) error {
	if r.Extraction == "" {
		return nil
	}
	q.Later().AwaitUsage(string(scope.Tenant))
	n, err := q.AdvanceExtraction(ctx, db.AdvanceExtractionParams{
		TenantID: string(scope.Tenant), UserID: int64(scope.User), ID: r.Extraction, Index: integer(r.Index),
	})
	if err == nil && n == 0 {
		return memory.ErrExtractionEnded
	}
	return err
}
