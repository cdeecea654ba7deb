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

// Confirmation is the phrase that confirms the deletion of an account.
const Confirmation = "delete everything"

// defaultPurgeTime bounds the purge inside a request; the job does the rest.
const defaultPurgeTime = 20 * time.Second

// Config holds the dependencies of a Service. Store is required.
type Config struct {
	Store Store
	// PurgeTime bounds the purge inside a request, after which the job does the
	// rest. The default is 20 s.
	PurgeTime time.Duration
}

// Service exports and deletes accounts.
type Service struct {
	Config
}

// NewService returns a Service.
func NewService(c Config) *Service {
	c.PurgeTime = cmp.Or(c.PurgeTime, defaultPurgeTime)
	return &Service{Config: c}
}

// Export opens a snapshot of the account. The caller closes it.
func (s *Service) Export(ctx context.Context, who tenant.Identity) (*Snapshot, error) {
	snapshot, err := s.Store.Snapshot(ctx, who.Scope)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	return snapshot, nil
}

// Delete deletes everything the user owns. If that takes longer than PurgeTime,
// a job does the rest and Purged.Done is false. It returns Invalid unless confirm
// is the Confirmation phrase.
func (s *Service) Delete(ctx context.Context, who tenant.Identity, confirm *string) (Purged, error) {
	switch {
	case confirm == nil:
		return Purged{}, fault.New(fault.Invalid, "confirm is required and must be %q", Confirmation)
	case *confirm != Confirmation:
		return Purged{}, fault.New(fault.Invalid, "confirm must be %q; nothing was deleted", Confirmation)
	}
	if who.User == tenant.NoUser {
		return Purged{Done: true}, nil
	}
	cutoff, err := s.Store.BeginPurge(ctx, who.Scope)
	if err != nil {
		return Purged{}, fmt.Errorf("begin purge: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.PurgeTime)
	defer cancel()
	done, err := Purge(ctx, s.Store, who.Scope, cutoff)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return done, nil // the job does the rest
	}
	return done, err
}
