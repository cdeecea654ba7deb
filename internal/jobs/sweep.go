package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

// SweepArgs are the arguments of the job that compares both stores, for all
// tenants.
type SweepArgs struct{}

// Kind returns the job kind.
func (SweepArgs) Kind() string { return "index.sweep" }

// sweep compares and repairs one tenant after the other. A failure does not stop the
// others.
func sweep(ctx context.Context, indexer Indexer, tenants Tenants, log *slog.Logger) error {
	ids, err := tenants.ActiveTenants(ctx)
	if err != nil {
		return err
	}
	var total retrieve.Drift
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		drift, err := indexer.Sweep(ctx, id)
		total = total.Add(drift)
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep tenant %s: %w", id, err))
		}
	}
	if total != (retrieve.Drift{}) {
		log.InfoContext(ctx, "repaired the vector store", "missing", total.Missing, "orphaned", total.Orphaned)
	}
	if len(errs) == 0 && ctx.Err() == nil {
		swept(ctx, total)
	}
	return errors.Join(errs...)
}
