package tenant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Placement says where a tenant's vectors are. The row in PostgreSQL is the
// truth; the names never depend on user input, and none is given out twice.
type Placement struct {
	Collection string
	Partition  string
	// Shared says that the collection has a key instead of partitions:
	// Partition is then the value of the key.
	Shared bool
}

// Place is a placement and the number Partitions.Ensure gave it when it was
// last filled; 0 before.
type Place struct {
	Placement
	Made int64
}

// Places are where a tenant is and where it is being moved to.
type Places struct {
	Current Place // zero before Place
	Next    Place // zero unless it is being moved
	// Rebuilding says that Current was lost and is being filled again.
	Rebuilding bool
}

// Placer decides where tenants' vectors are. internal/postgres implements it.
type Placer interface {
	// Place gives the tenant its placement, the same one at every call until
	// it was moved.
	Place(ctx context.Context, id ID) (Placement, error)
	// Move begins the move to the kind of place that the tenant's isolation
	// asks for, gives one up that it asks for no longer, and commits the job of
	// one, or of a rebuilding, that was not heard of for a while. Writes nothing
	// when there is nothing to do.
	Move(ctx context.Context, id ID) (Places, error)
	// Refill notes that a place of the tenant's is the one numbered made. When
	// it was another one before, what is live is written into it: for the
	// current one every unit counts as unindexed until then; the tenant is
	// moved to the next one when all is there. Writes nothing when the number
	// is known.
	Refill(ctx context.Context, id ID, p Placement, made int64) error
	// Lose notes that a place is not there any more, before another one is made
	// under its name: until that is filled every unit counts as unindexed, of
	// each tenant who was there, and no search takes it for all there is.
	Lose(ctx context.Context, p Place) error
	// Known returns the newest number by which an active tenant knows the shared
	// collection of p, 0 when none does.
	Known(ctx context.Context, p Placement) (made int64, err error)
}

// Partitions are where vectors live. internal/milvus implements it.
type Partitions interface {
	// Ensure makes the collection and partition where they are missing, and
	// numbers them. One that was numbered before (p.Made is not 0) and is not
	// there any more is not made again: made is then another number, or 0.
	// ErrLoading while what is there is being loaded.
	Ensure(ctx context.Context, p Place) (made int64, err error)
	// Drop removes all that is in the place, and a partition itself; nil when
	// it is not there.
	Drop(ctx context.Context, p Placement) error
}

// ErrLoading says that a place is there and cannot be searched yet: it is to be
// asked for again.
var ErrLoading = errors.New("the place is being loaded")

// loadPoll is how often Waiting asks.
const loadPoll = 200 * time.Millisecond

// Waiting returns Partitions whose Ensure waits for what is being loaded, until
// ctx ends: for whoever has nothing else to do.
func Waiting(p Partitions) Partitions { return waiting{p} }

type waiting struct{ Partitions }

// Ensure is that of the Partitions, asked until nothing is loading.
func (w waiting) Ensure(ctx context.Context, p Place) (made int64, err error) {
	for {
		if made, err = w.Partitions.Ensure(ctx, p); !errors.Is(err, ErrLoading) {
			return made, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(loadPoll):
		}
	}
}

// EnsurePlace makes a place unless it is there, and returns its number. A place
// that was lost is made again only when everyone who was there is known to have
// lost it: of a shared collection some may have been told before others were, and
// whoever comes new knows no number at all.
func EnsurePlace(ctx context.Context, store Placer, partitions Partitions, p Place) (made int64, err error) {
	for known := p.Made; ; known = 0 {
		if known == 0 && p.Shared {
			if known, err = store.Known(ctx, p.Placement); err != nil {
				return 0, fmt.Errorf("ask who knows a collection: %w", err)
			}
		}
		at := Place{Placement: p.Placement, Made: known}
		if made, err = partitions.Ensure(ctx, at); err != nil {
			return 0, fmt.Errorf("ensure partition: %w", err)
		}
		if known == 0 || made == known {
			return made, nil
		}
		if err := store.Lose(ctx, at); err != nil {
			return 0, fmt.Errorf("note the loss of a partition: %w", err)
		}
	}
}
