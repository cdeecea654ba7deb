package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// A place that is left is emptied when those who read it have heard of the new
// one, and again when no job that wrote to it can still run.
const (
	emptyAfter = 15 * time.Second
	emptyAgain = 15 * time.Minute
)

// Move implements tenant.Placer.
func (d *DB) Move(ctx context.Context, id tenant.ID) (tenant.Places, error) {
	var out tenant.Places
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		isolation, err := q.TenantIsolation(ctx, string(id))
		if err != nil {
			return orUnknown(err, id)
		}
		if err := q.LockPlaces(ctx, string(id)); err != nil {
			return err
		}
		r, err := readPlaces(ctx, q, id)
		if err != nil || r == (placesRow{}) {
			return err
		}
		wanted := r.Shared == (isolation == string(tenant.Shared))
		switch {
		case r.isMoving() && wanted:
			err = d.giveUp(ctx, tx, q, id, r)
		case !r.isFilling() && !wanted:
			err = d.beginMove(ctx, q, id, isolation)
		case r.FillingMade != 0 && r.Unheard:
			err = d.runAgain(ctx, tx, q, id)
		}
		if err != nil {
			return err
		}
		r, err = readPlaces(ctx, q, id)
		out = r.places()
		return err
	})
	if err != nil {
		return tenant.Places{}, fmt.Errorf("move tenant: %w", err)
	}
	return out, nil
}

func (d *DB) beginMove(ctx context.Context, q *db.Queries, id tenant.ID, isolation string) error {
	n, err := q.PlaceNumber(ctx)
	if err != nil {
		return err
	}
	to, err := d.choose(ctx, q, isolation, fmt.Sprintf("%s_%d", placeName(id), n))
	if err != nil {
		return err
	}
	_, err = d.setFill(ctx, q, id, to, 0)
	return err
}

// giveUp ends a move where it is.
func (d *DB) giveUp(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, r placesRow) error {
	if err := q.DeleteFill(ctx, string(id)); err != nil {
		return err
	}
	return d.insertEmpty(ctx, tx, r.filling())
}

func (d *DB) runAgain(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID) error {
	run, err := q.RunFillAgain(ctx, string(id))
	if err != nil {
		return err
	}
	return d.insertJob(ctx, tx, retrieve.FillArgs{Tenant: id, Run: run})
}

func (d *DB) setFill(ctx context.Context, q *db.Queries, id tenant.ID, p tenant.Placement, made int64) (int64, error) {
	return q.SetFill(ctx, db.SetFillParams{TenantID: string(id), Generation: d.config.Generation.name(),
		Collection: p.Collection, Partition: p.Partition, Shared: p.Shared, Made: made})
}

// Refill implements tenant.Placer.
func (d *DB) Refill(ctx context.Context, id tenant.ID, p tenant.Placement, made int64) error {
	err := d.inTenant(ctx, id, func(tx pgx.Tx, q *db.Queries) error {
		first, err := q.NoteFirstPlace(ctx, db.NoteFirstPlaceParams{
			TenantID: string(id), Collection: p.Collection, Partition: p.Partition, Made: made,
		})
		if err != nil || first > 0 {
			return err
		}
		if _, err := q.ActiveTenant(ctx, string(id)); err != nil {
			return orUnknown(err, id)
		}
		if err := q.LockPlaces(ctx, string(id)); err != nil {
			return err
		}
		r, err := readPlaces(ctx, q, id)
		switch {
		case err != nil:
			return err
		case p == r.current() && made != r.Made:
			return d.refillCurrent(ctx, tx, q, id, r, made)
		case r.isMoving() && p == r.filling() && made != r.FillingMade:
			return d.startFill(ctx, tx, q, id, p, made)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("refill place: %w", err)
	}
	return nil
}

// Lose implements tenant.Placer. A place without a number is not filled before
// it has one again.
func (d *DB) Lose(ctx context.Context, p tenant.Place) error {
	there, err := db.New(d.pool).TenantsAt(ctx, db.TenantsAtParams{
		Collection: p.Collection, Shared: p.Shared, Partition: p.Partition, Made: p.Made,
	})
	if err != nil {
		return fmt.Errorf("list who was at a place: %w", mapError(err))
	}
	for _, t := range there {
		at := tenant.Placement{Collection: p.Collection, Partition: t.Partition, Shared: p.Shared}
		if err := d.Refill(ctx, tenant.ID(t.TenantID), at, 0); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// Known implements tenant.Placer.
func (d *DB) Known(ctx context.Context, p tenant.Placement) (int64, error) {
	made, err := db.New(d.pool).KnownMade(ctx, p.Collection)
	if err != nil {
		return 0, fmt.Errorf("ask who knows a collection: %w", mapError(err))
	}
	return made, nil
}

// refillCurrent fills the place the tenant is in. A move to another one is
// given up for it and begins anew when this one is whole.
func (d *DB) refillCurrent(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, r placesRow, made int64) error {
	if err := q.SetPlacementMade(ctx, db.SetPlacementMadeParams{TenantID: string(id), Made: made}); err != nil {
		return err
	}
	if r.isMoving() {
		if err := d.giveUp(ctx, tx, q, id, r); err != nil {
			return err
		}
	}
	some, err := q.HasUnits(ctx, string(id))
	if err != nil || !some {
		return err
	}
	if err := q.UnindexTenant(ctx, string(id)); err != nil {
		return err
	}
	return d.startFill(ctx, tx, q, id, r.current(), made)
}

// startFill commits the job that fills a place which the vector store has.
func (d *DB) startFill(ctx context.Context, tx pgx.Tx, q *db.Queries, id tenant.ID, p tenant.Placement, made int64) error {
	run, err := d.setFill(ctx, q, id, p, made)
	if err != nil {
		return err
	}
	return d.insertJob(ctx, tx, retrieve.FillArgs{Tenant: id, Run: run})
}

// Advance implements retrieve.Places.
func (d *DB) Advance(ctx context.Context, id tenant.ID, run int64, upto retrieve.UnitID) (bool, error) {
	n, err := db.New(d.pool).AdvanceFill(ctx, db.AdvanceFillParams{TenantID: string(id), Run: run, Upto: int64(upto)})
	if err != nil {
		return false, fmt.Errorf("note progress: %w", mapError(err))
	}
	return n > 0, nil
}

// Filled implements retrieve.Places.
func (d *DB) Filled(ctx context.Context, id tenant.ID, run int64) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		if err := q.LockPlaces(ctx, string(id)); err != nil {
			return err
		}
		r, err := readPlaces(ctx, q, id)
		if err != nil || !r.isFilling() || r.Run != run {
			return err
		}
		if r.isMoving() {
			if err := q.SetPlacement(ctx, string(id)); err != nil {
				return err
			}
			if err := d.insertEmpty(ctx, tx, r.current()); err != nil {
				return err
			}
			// Searches go to the new place from here on.
			if err := q.NotifyTenant(ctx, string(id)); err != nil {
				return err
			}
		}
		return q.DeleteFill(ctx, string(id))
	})
	if err != nil {
		return fmt.Errorf("end filling: %w", err)
	}
	return nil
}

// insertEmpty commits the jobs that empty a place nobody is in any more.
func (d *DB) insertEmpty(ctx context.Context, tx pgx.Tx, p tenant.Placement) error {
	var params []river.InsertManyParams
	for _, wait := range []time.Duration{emptyAfter, emptyAgain} {
		params = append(params, river.InsertManyParams{
			Args:       retrieve.EmptyArgs{Collection: p.Collection, Partition: p.Partition, Shared: p.Shared},
			InsertOpts: &river.InsertOpts{Queue: queueBacklog, MaxAttempts: maxAttempts, ScheduledAt: time.Now().Add(wait)},
		})
	}
	if _, err := d.jobs.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("commit job that empties a place: %w", err)
	}
	return nil
}
