package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// maxPartitions is how many tenants have a partition in one collection:
	// beyond it loading and flushing the collection takes minutes.
	maxPartitions = 256
	// maxShared is how many tenants share a collection by its key.
	maxShared = 10_000
)

// Place implements tenant.Placer.
func (d *DB) Place(ctx context.Context, id tenant.ID) (tenant.Placement, error) {
	var out tenant.Placement
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		now, err := q.PlaceOf(ctx, string(id))
		if err != nil {
			return orUnknown(err, id)
		}
		out = tenant.Placement{Collection: now.Collection, Partition: now.Partition, Shared: now.Shared}
		if out != (tenant.Placement{}) {
			return nil
		}
		// Named after the tenant's id; later places of its have a number beside it.
		out, err = d.choose(ctx, q, now.Isolation, placeName(id))
		if err != nil {
			return err
		}
		return q.InsertPlacement(ctx, db.InsertPlacementParams{TenantID: string(id), Generation: d.config.Generation.name(),
			Collection: out.Collection, Partition: out.Partition, Shared: out.Shared})
	})
	if err != nil {
		return tenant.Placement{}, fmt.Errorf("place tenant: %w", err)
	}
	return out, nil
}

func placeName(id tenant.ID) string { return "t" + strings.ReplaceAll(string(id), "-", "") }

// choose picks the lowest numbered collection of the kind with room.
func (d *DB) choose(ctx context.Context, q *db.Queries, isolation, name string) (tenant.Placement, error) {
	if err := q.LockPlacing(ctx); err != nil {
		return tenant.Placement{}, err
	}
	generation, most := d.config.Generation.name(), int64(maxPartitions)
	out := tenant.Placement{Partition: name, Shared: isolation == string(tenant.Shared)}
	prefix := generation + "_"
	if out.Shared {
		prefix, most = prefix+"shared_", maxShared
	}
	load, err := q.CollectionLoad(ctx, db.CollectionLoadParams{Generation: generation, Shared: out.Shared})
	if err != nil {
		return tenant.Placement{}, err
	}
	places := make(map[string]int64, len(load))
	for _, l := range load {
		places[l.Collection] = l.Places
	}
	for n := 1; out.Collection == ""; n++ {
		if name := fmt.Sprintf("%s%d", prefix, n); places[name] < most {
			out.Collection = name
		}
	}
	return out, nil
}

// name returns the generation as a part of a collection's name: letters,
// digits and underscores.
func (g Generation) name() string {
	clean := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}
	return fmt.Sprintf("mnemo_%s_%d", strings.Map(clean, g.Model), g.Dimensions)
}

// placesRow is where a tenant is and what is being filled; zero when nowhere.
type placesRow db.GetPlacesRow

func readPlaces(ctx context.Context, q *db.Queries, id tenant.ID) (placesRow, error) {
	rows, err := q.GetPlaces(ctx, string(id))
	if err != nil || len(rows) == 0 {
		return placesRow{}, err
	}
	return placesRow(rows[0]), nil
}

func (r placesRow) current() tenant.Placement {
	return tenant.Placement{Collection: r.Collection, Partition: r.Partition, Shared: r.Shared}
}

func (r placesRow) filling() tenant.Placement {
	return tenant.Placement{Collection: r.FillingCollection, Partition: r.FillingPartition, Shared: r.FillingShared}
}

func (r placesRow) isFilling() bool { return r.FillingCollection != "" }

func (r placesRow) isMoving() bool { return r.isFilling() && r.filling() != r.current() }

func (r placesRow) places() tenant.Places {
	out := tenant.Places{
		Current:    tenant.Place{Placement: r.current(), Made: r.Made},
		Rebuilding: r.isFilling() && !r.isMoving(),
	}
	if r.isMoving() {
		out.Next = tenant.Place{Placement: r.filling(), Made: r.FillingMade}
	}
	return out
}

// Places implements retrieve.Places.
func (d *DB) Places(ctx context.Context, id tenant.ID) (retrieve.Whereabouts, error) {
	r, err := readPlaces(ctx, db.New(d.pool), id)
	if err != nil {
		return retrieve.Whereabouts{}, fmt.Errorf("read places: %w", mapError(err))
	}
	if r == (placesRow{}) {
		return retrieve.Whereabouts{}, fault.New(fault.NotFound, "tenant %s has no placement", id)
	}
	out := retrieve.Whereabouts{Current: r.current()}
	if r.FillingMade != 0 { // nothing can be written to it before
		out.Filling, out.Run, out.Upto = r.filling(), r.Run, retrieve.UnitID(r.Upto)
	}
	return out, nil
}
