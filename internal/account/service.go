package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Confirmation is what a request to remove everything says.
const Confirmation = "delete everything"

// defaultPurgeTime is how long a request purges before it leaves the rest to
// the job.
const defaultPurgeTime = 20 * time.Second

// Config is what a Service works with. Store is required.
type Config struct {
	Store Store
	// PurgeTime is how long a request purges before it leaves the rest to the
	// job; 20 s when 0.
	PurgeTime time.Duration
}

// Service takes accounts out and removes them.
type Service struct {
	Config
}

// NewService makes a Service.
func NewService(c Config) *Service {
	c.PurgeTime = cmp.Or(c.PurgeTime, defaultPurgeTime)
	return &Service{Config: c}
}

// Export opens all that the user has as it is now. The caller closes it.
func (s *Service) Export(ctx context.Context, who tenant.Identity) (*Snapshot, error) {
	snapshot, err := s.Store.Snapshot(ctx, who.Scope)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	return snapshot, nil
}

// Delete removes all that the user has. What takes longer than a request may
// is left to a job, which Purged tells. Invalid without the confirmation.
func (s *Service) Delete(ctx context.Context, who tenant.Identity, confirm *string) (Purged, error) {
	switch {
	case confirm == nil:
		return Purged{}, fault.New(fault.Invalid, "confirm is required and takes %q", Confirmation)
	case *confirm != Confirmation:
		return Purged{}, fault.New(fault.Invalid, "confirm takes %q, and nothing was deleted", Confirmation)
	}
	mark, err := s.Store.Mark(ctx, who.Scope)
	if err != nil {
		return Purged{}, fmt.Errorf("mark account: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.PurgeTime)
	defer cancel()
	done, err := Purge(ctx, s.Store, who.Scope, mark)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return done, nil // the job goes on
	}
	return done, err
}
