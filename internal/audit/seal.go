package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// sealEvery is the interval at which pending records are sealed. It bounds how long a
// record can be removed without a trace.
const sealEvery = time.Second

// Seal seals pending records of all tenants until the context ends.
func Seal(ctx context.Context, s Store, log *slog.Logger) {
	tick := time.NewTicker(sealEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := sealAll(ctx, s)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "audit records are waiting to be sealed", "error", err)
		}
		failing = err != nil
	}
}

// sealAll seals the pending records of all tenants. A failure does not stop the others.
func sealAll(ctx context.Context, s Store) error {
	tenants, err := s.PendingTenants(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, id := range tenants {
		if err := s.SealRecords(ctx, id, false); err != nil {
			failures = append(failures, fmt.Errorf("tenant %s: %w", id, err))
		}
	}
	return errors.Join(failures...)
}
