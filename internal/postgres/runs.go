package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var (
	_ chat.ImportLeases = Conversations{}
	_ chat.ImportFiles  = Conversations{}
)

const (
	// watchAfter is how long after a lease its watcher looks.
	watchAfter = 5 * time.Second
	// chunkBatch is how many chunks one transaction drops.
	chunkBatch = 64
	// landLease is what storing a batch renews the lease to: its worker lives.
	landLease = 15 * time.Second
)

// Claim implements chat.ImportLeases.
func (c Conversations) Claim(ctx context.Context, a chat.ImportArgs, worker string, lease time.Duration) (chat.ImportRun, chat.Claim, error) {
	scope := tenant.Scope{Tenant: a.Tenant, User: a.User}
	run, got := chat.ImportRun{}, chat.ClaimOver
	err := c.DB.inScope(ctx, scope, func(tx pgx.Tx, q *db.Queries) error {
		row, err := q.ClaimImport(ctx, db.ClaimImportParams{
			TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Import, Worker: &worker, Lease: seconds(lease),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			got, err = whyNot(ctx, q, a)
			return err
		}
		if err != nil {
			return err
		}
		got = chat.ClaimGot
		run = chat.ImportRun{
			Scope: scope, ID: a.Import, Worker: worker, Asked: row.Asked, Size: row.Size, Landed: row.Landed,
			Failure: row.Failure, Notes: row.Notes, Attempts: int(row.Attempts), StartedAt: row.StartedAt.UTC(),
		}
		if err := json.Unmarshal(row.Warnings, &run.Warnings); err != nil {
			return fmt.Errorf("read warnings: %w", err)
		}
		return c.DB.insertImportJob(ctx, tx, scope, a.Import, lease+watchAfter)
	})
	if err != nil {
		return chat.ImportRun{}, chat.ClaimBusy, fmt.Errorf("claim import: %w", err)
	}
	return run, got, nil
}

// whyNot says why an import could not be claimed, and removes an upload that
// was abandoned.
func whyNot(ctx context.Context, q *db.Queries, a chat.ImportArgs) (chat.Claim, error) {
	status, err := q.ImportStatus(ctx, db.ImportStatusParams{TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Import})
	if errors.Is(err, pgx.ErrNoRows) {
		return chat.ClaimOver, nil
	}
	if err != nil {
		return chat.ClaimBusy, err
	}
	switch status {
	case "done", "failed":
		return chat.ClaimOver, nil
	case "uploading":
		n, err := q.DropAbandonedUpload(ctx, db.DropAbandonedUploadParams{TenantID: string(a.Tenant), UserID: int64(a.User), ID: a.Import})
		if n > 0 {
			return chat.ClaimOver, err
		}
		return chat.ClaimBusy, err
	}
	return chat.ClaimBusy, nil
}

// Keep implements chat.ImportLeases.
func (c Conversations) Keep(ctx context.Context, run chat.ImportRun, lease time.Duration) error {
	return c.held(ctx, run, "keep import", func(q *db.Queries) (int64, error) {
		return q.KeepImport(ctx, db.KeepImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Lease: seconds(lease),
		})
	})
}

// Release implements chat.ImportLeases.
func (c Conversations) Release(ctx context.Context, run chat.ImportRun, blamed bool) error {
	err := c.DB.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		return q.ReleaseImport(ctx, db.ReleaseImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Blamed: blamed,
		})
	})
	if err != nil {
		return fmt.Errorf("release import: %w", err)
	}
	return nil
}

// held changes an import that is the worker's: none changed means it is not.
func (c Conversations) held(ctx context.Context, run chat.ImportRun, what string, change func(q *db.Queries) (int64, error)) error {
	err := c.DB.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		n, err := change(q)
		if err == nil && n == 0 {
			return chat.ErrLost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Chunk implements chat.ImportFiles.
func (c Conversations) Chunk(ctx context.Context, run chat.ImportRun, n int) ([]byte, error) {
	var data []byte
	err := c.DB.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		var err error
		data, err = q.ReadChunk(ctx, db.ReadChunkParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID, N: int32(n)})
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.NotFound, "chunk %d of the file is not there", n)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chunk: %w", err)
	}
	return data, nil
}

// Ledger implements chat.ImportFiles.
func (c Conversations) Ledger(ctx context.Context, run chat.ImportRun) ([]int, error) {
	var out []int
	err := c.DB.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
		rows, err := q.LedgerOrdinals(ctx, db.LedgerOrdinalsParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID})
		out = collect(rows, func(n int32) int { return int(n) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return out, nil
}

// Describe implements chat.ImportFiles.
func (c Conversations) Describe(ctx context.Context, run chat.ImportRun, f chat.FileContent) error {
	warnings, err := marshalList(f.Warnings)
	if err != nil {
		return err
	}
	return c.held(ctx, run, "describe import", func(q *db.Queries) (int64, error) {
		return q.DescribeImport(ctx, db.DescribeImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker,
			Platform: f.Platform, Total: int64(f.Total), Warnings: warnings,
		})
	})
}

// Finish implements chat.ImportFiles.
func (c Conversations) Finish(ctx context.Context, run chat.ImportRun, failure string, warnings []string) error {
	list, err := marshalList(warnings)
	if err != nil {
		return err
	}
	err = c.held(ctx, run, "land import", func(q *db.Queries) (int64, error) {
		return q.LandImport(ctx, db.LandImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Failure: failure, Warnings: list,
		})
	})
	if err != nil {
		return err
	}
	if err := c.DB.Rebalance(ctx, run.Tenant); err != nil {
		return err
	}
	if err := c.dropChunks(ctx, run); err != nil {
		return err
	}
	return c.held(ctx, run, "end import", func(q *db.Queries) (int64, error) {
		settled, err := q.SettleLedger(ctx, db.SettleLedgerParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID})
		if err != nil {
			return 0, err
		}
		return q.EndImport(ctx, db.EndImportParams{
			TenantID: string(run.Tenant), UserID: int64(run.User), ID: run.ID, Worker: &run.Worker, Settled: settled,
		})
	})
}

// dropChunks removes the file. It is read no more: all of it has landed.
func (c Conversations) dropChunks(ctx context.Context, run chat.ImportRun) error {
	for {
		var n int64
		err := c.DB.inScope(ctx, run.Scope, func(_ pgx.Tx, q *db.Queries) error {
			var err error
			n, err = q.DropChunks(ctx, db.DropChunksParams{TenantID: string(run.Tenant), UserID: int64(run.User), ImportID: run.ID, Batch: chunkBatch})
			return err
		})
		if err != nil {
			return fmt.Errorf("drop chunks: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
}

// marshalList writes a list as JSON, an empty one as [].
func marshalList(list []string) ([]byte, error) {
	if list == nil {
		list = []string{}
	}
	return json.Marshal(list)
}
