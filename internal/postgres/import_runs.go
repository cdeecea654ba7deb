package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/queue"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// checkDelay is how long after the end of a lease a job checks the import.
	checkDelay = 5 * time.Second
	// chunkBatch is the number of chunks deleted per transaction.
	chunkBatch = 64
	// batchLease is the lease after a batch is stored, which proves that the
	// worker is alive.
	batchLease = 15 * time.Second
)

// Claim implements importer.Leases.
func (i Imports) Claim(ctx context.Context, a importer.Args, worker string, lease time.Duration) (importer.Run, importer.Claim, error) {
	scope := tenant.ImportScope(a.Tenant, a.User)
	run, claim := importer.Run{}, importer.ClaimComplete
	err := i.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		row, err := q.ClaimImport(ctx, db.ClaimImportParams{
			TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Import, Worker: &worker, Lease: seconds(lease),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			claim, err = unclaimed(ctx, q, a)
			return err
		}
		if err != nil {
			return err
		}
		claim = importer.ClaimGranted
		run = importer.Run{
			Scope: scope, ID: a.Import, Worker: worker, RequestedPlatform: row.RequestedPlatform, SkipInvalid: row.SkipInvalid, Size: row.Size, Stored: row.Stored,
			Failure: row.Failure, Attempts: int(row.Attempts), Killed: int(row.Killed), StartedAt: row.StartedAt.UTC(),
		}
		if err := json.Unmarshal(row.Notes, &run.Notes); err != nil {
			return fmt.Errorf("read notes: %w", err)
		}
		if err := json.Unmarshal(row.Warnings, &run.Warnings); err != nil {
			return fmt.Errorf("read warnings: %w", err)
		}
		return i.insertImportJob(ctx, tx, scope, a.Import, queue.Check, lease+checkDelay)
	})
	if err != nil {
		return importer.Run{}, importer.ClaimBusy, fmt.Errorf("claim import: %w", err)
	}
	return run, claim, nil
}

// unclaimed returns why an import could not be claimed, and deletes an expired
// upload.
func unclaimed(ctx context.Context, q *db.Queries, a importer.Args) (importer.Claim, error) {
	status, err := q.ImportStatus(ctx, db.ImportStatusParams{TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Import})
	if errors.Is(err, pgx.ErrNoRows) {
		return importer.ClaimComplete, nil
	}
	if err != nil {
		return importer.ClaimBusy, err
	}
	switch status {
	case string(importer.Done), string(importer.Failed):
		return importer.ClaimComplete, nil
	case "uploading":
		n, err := q.DeleteExpiredUpload(ctx, db.DeleteExpiredUploadParams{TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Import})
		if n > 0 {
			return importer.ClaimComplete, err
		}
		return importer.ClaimBusy, err
	}
	return importer.ClaimBusy, nil
}

// Renew implements importer.Leases.
func (i Imports) Renew(ctx context.Context, run importer.Run, lease time.Duration) error {
	return i.update(ctx, run, "renew import", func(q *db.Queries) (int64, error) {
		return q.RenewImport(ctx, db.RenewImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Lease: seconds(lease),
		})
	})
}

// Waiting implements importer.Leases.
func (i Imports) Waiting(ctx context.Context, run importer.Run) (bool, error) {
	var waiting bool
	err := i.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		waiting, err = q.ImportsWait(ctx)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for waiting imports: %w", err)
	}
	return waiting, nil
}

// Release implements importer.Leases.
func (i Imports) Release(ctx context.Context, run importer.Run, failed bool) error {
	err := i.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		return q.ReleaseImport(ctx, db.ReleaseImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Failed: failed,
		})
	})
	if err != nil {
		return fmt.Errorf("release import: %w", err)
	}
	return nil
}

// update updates an import that the worker has claimed; ErrLeaseLost if no row
// was updated.
func (i Imports) update(ctx context.Context, run importer.Run, what string, change func(q *db.Queries) (int64, error)) error {
	err := i.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		n, err := change(q)
		if err == nil && n == 0 {
			return importer.ErrLeaseLost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ReadChunk implements importer.Files.
func (i Imports) ReadChunk(ctx context.Context, run importer.Run, n int) ([]byte, error) {
	var data []byte
	err := i.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		data, err = q.ReadChunk(ctx, db.ReadChunkParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID, N: integer(n)})
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.NotFound, "chunk %d of the file not found", n)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chunk: %w", err)
	}
	return data, nil
}

// Ledger implements importer.Files.
func (i Imports) Ledger(ctx context.Context, run importer.Run) ([]int, error) {
	var out []int
	err := i.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.LedgerOrdinals(ctx, db.LedgerOrdinalsParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID})
		out = collect(rows, func(n int32) int { return int(n) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return out, nil
}

// SetContent implements importer.Files.
func (i Imports) SetContent(ctx context.Context, run importer.Run, c importer.FileContent) error {
	warnings, err := marshalList(c.Warnings)
	if err != nil {
		return err
	}
	return i.update(ctx, run, "set content of import", func(q *db.Queries) (int64, error) {
		return q.SetImportContent(ctx, db.SetImportContentParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker,
			Platform: c.Platform, Total: int64(c.Total), Warnings: warnings,
		})
	})
}

// Finish implements importer.Files.
func (i Imports) Finish(ctx context.Context, run importer.Run, failure string, warnings []string) error {
	list, err := marshalList(warnings)
	if err != nil {
		return err
	}
	err = i.update(ctx, run, "mark import stored", func(q *db.Queries) (int64, error) {
		return q.SetImportStored(ctx, db.SetImportStoredParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Failure: failure, Warnings: list,
		})
	})
	if err != nil {
		return err
	}
	if err := i.rebalanceAll(ctx, run.Scope, userChange); err != nil {
		return err
	}
	if err := i.deleteChunks(ctx, run); err != nil {
		return err
	}
	return i.update(ctx, run, "end import", func(q *db.Queries) (int64, error) {
		settled, err := q.SettleLedger(ctx, db.SettleLedgerParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID})
		if err != nil {
			return 0, err
		}
		n, err := q.EndImport(ctx, db.EndImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Settled: settled,
		})
		if err != nil || n == 0 {
			return n, err
		}
		appendAudit(ctx, q, run.Scope, audit.ImportFinish, run.ID)
		return n, nil
	})
}

// deleteChunks deletes the file, which is completely stored.
func (i Imports) deleteChunks(ctx context.Context, run importer.Run) error {
	for {
		var n int64
		err := i.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
			var err error
			n, err = q.DeleteChunks(ctx, db.DeleteChunksParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID, Batch: chunkBatch})
			return err
		})
		if err != nil {
			return fmt.Errorf("delete chunks: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// marshalList returns a list as JSON, with [] for nil.
func marshalList(list []string) ([]byte, error) {
	if list == nil {
		list = []string{}
	}
	return json.Marshal(list)
}
