package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// sealEvery is the interval at which pending records are sealed. It bounds how long a
// record can be removed without a trace.
const sealEvery = time.Second

// ErrSealing means that another process has been sealing the records of the tenant for longer than a caller waits.
var ErrSealing error = &fault.Error{Kind: fault.Unavailable, Message: "audit records are being sealed; retry", RetryAfter: sealEvery}

// SealForReader seals the pending records of a tenant before they are read. If another process is sealing them for long, the reader
// gets those that are sealed.
func SealForReader(ctx context.Context, s Store, id tenant.ID) error {
	if err := s.SealRecords(ctx, id, true); !errors.Is(err, ErrSealing) {
		return err
	}
	return nil
}

// Seal seals pending records of all tenants until the context ends.
func Seal(ctx context.Context, s Store, log *slog.Logger) {
	tick := time.NewTicker(sealEvery)
	defer tick.Stop()
	failing := map[tenant.ID]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		failures := sealAll(ctx, s)
		if err := begun(failures, failing); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "audit records are waiting to be sealed", "error", err)
		}
		clear(failing)
		for id := range failures {
			failing[id] = true
		}
	}
}

// begun returns the failures of tenants that did not fail before.
func begun(failures map[tenant.ID]error, failing map[tenant.ID]bool) error {
	var out []error
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		if !failing[id] {
			out = append(out, failures[id])
		}
	}
	return errors.Join(out...)
}

// sealAll seals the pending records of all tenants and returns the failures, under no tenant if they cannot
// be listed. A failure does not stop the others.
func sealAll(ctx context.Context, s Store) map[tenant.ID]error {
	tenants, err := s.PendingTenants(ctx)
	if err != nil {
		return map[tenant.ID]error{"": err}
	}
	failures := map[tenant.ID]error{}
	for _, id := range tenants {
		if err := s.SealRecords(ctx, id, false); err != nil {
			failures[id] = fmt.Errorf("tenant %s: %w", id, err)
		}
	}
	return failures
}
