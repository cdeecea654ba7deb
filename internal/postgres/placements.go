package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// maxPartitions is how many tenants share a collection: beyond it loading and
// flushing one takes minutes.
const maxPartitions = 256

// Place implements tenant.Store.
func (d *DB) Place(ctx context.Context, id tenant.ID) (tenant.Placement, error) {
	var out tenant.Placement
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if _, err := q.ActiveTenant(ctx, string(id)); err != nil {
			return orUnknown(err, id)
		}
		row, err := q.GetPlacement(ctx, string(id))
		if err == nil {
			out = tenant.Placement{Collection: row.Collection, Partition: row.Partition}
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		out, err = d.place(ctx, q, string(id))
		return err
	})
	if err != nil {
		return tenant.Placement{}, fmt.Errorf("place tenant: %w", err)
	}
	return out, nil
}

// place picks the lowest numbered collection with room. The partition is named
// after the tenant's id, so that no place is given out twice.
func (d *DB) place(ctx context.Context, q *db.Queries, id string) (tenant.Placement, error) {
	if err := q.LockPlacing(ctx); err != nil {
		return tenant.Placement{}, err
	}
	generation := d.config.Generation.name()
	load, err := q.CollectionLoad(ctx, generation)
	if err != nil {
		return tenant.Placement{}, err
	}
	partitions := make(map[string]int64, len(load))
	for _, l := range load {
		partitions[l.Collection] = l.Partitions
	}
	out := tenant.Placement{Partition: "t" + strings.ReplaceAll(id, "-", "")}
	for n := 1; out.Collection == ""; n++ {
		if name := fmt.Sprintf("%s_%d", generation, n); partitions[name] < maxPartitions {
			out.Collection = name
		}
	}
	err = q.InsertPlacement(ctx, db.InsertPlacementParams{
		TenantID: id, Generation: generation, Collection: out.Collection, Partition: out.Partition,
	})
	if err != nil {
		return tenant.Placement{}, err
	}
	// Identities in the replicas' caches hold the placement.
	return out, q.NotifyTenant(ctx, id)
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

// Placement implements retrieve.Units.
func (d *DB) Placement(ctx context.Context, id tenant.ID) (tenant.Placement, error) {
	row, err := db.New(d.pool).GetPlacement(ctx, string(id))
	if errors.Is(err, pgx.ErrNoRows) {
		return tenant.Placement{}, fault.New(fault.NotFound, "tenant %s has no placement", id)
	}
	if err != nil {
		return tenant.Placement{}, fmt.Errorf("read placement: %w", mapError(err))
	}
	return tenant.Placement{Collection: row.Collection, Partition: row.Partition}, nil
}
