package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ indexing.Units = (*DB)(nil)

// Load implements indexing.Units.
func (d *DB) Load(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) ([]indexing.OwnedUnit, error) {
	var out []indexing.OwnedUnit
	err := d.readTenant(ctx, t, func(tx db.DBTX, _ *db.Queries) error {
		rows, err := db.New(withGenericPlan(tx)).LoadUnits(ctx, db.LoadUnitsParams{TenantID: string(t), Ids: int64s(ids)})
		out = collect(rows, toOwnedUnit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load units: %w", err)
	}
	return out, nil
}

func toOwnedUnit(r db.LoadUnitsRow) indexing.OwnedUnit {
	dense := retrieve.MemoryDense(r.Piece)
	if retrieve.Kind(r.Kind) == retrieve.Chat {
		dense = retrieve.ChatDense(r.At, r.Sender, r.Piece)
	}
	return indexing.OwnedUnit{User: tenant.UserID(r.UserID), Unit: retrieve.Unit{
		ID: retrieve.UnitID(r.ID), Kind: retrieve.Kind(r.Kind), Group: r.GroupID, Owner: r.Owner, Seq: int(r.Seq),
		Start: int(r.SpanStart), End: int(r.SpanEnd), Dense: dense,
	}, Vectors: vectorsOf(r)}
}

// vectorsOf returns the vectors of a unit: two while its tenant migrates to another
// generation.
func vectorsOf(r db.LoadUnitsRow) map[placement.GenerationID][]float32 {
	vectors := make(map[placement.GenerationID][]float32, 2)
	if r.Embedding != nil && r.GenerationID != nil {
		vectors[placement.GenerationID(*r.GenerationID)] = decodeHalf(r.Embedding)
	}
	if r.NextEmbedding != nil && r.NextGenerationID != nil {
		vectors[placement.GenerationID(*r.NextGenerationID)] = decodeHalf(r.NextEmbedding)
	}
	return vectors
}

// SaveVectors implements indexing.Units. It holds the placement, so that a tenant does not leave a
// generation or enter the index, and DeleteOtherVectors does not run, between the check and the write. The lock of the usage row is
// held for one round trip.
func (d *DB) SaveVectors(
	ctx context.Context, t tenant.ID, users []tenant.UserID, g placement.GenerationID, embedded []retrieve.Unit, confirmed []retrieve.UnitID,
) error {
	p := db.SaveVectorsParams{TenantID: string(t), UserIds: userIDs(users), GenerationID: int16(g)}
	for _, u := range embedded {
		p.Ids, p.Embeddings, p.Tokens = append(p.Ids, int64(u.ID)), append(p.Embeddings, encodeHalf(u.Vector)), append(p.Tokens, d.tokensOf(u))
		p.Confirmed = append(p.Confirmed, slices.Contains(confirmed, u.ID))
	}
	err := d.inTenant(ctx, t, func(_ pgx.Tx, q *db.Queries) error {
		q.Later().PlanEachExecution()
		q.Later().SharePlacement(string(t))
		state, err := readPlacement(ctx, q, t)
		if err != nil || state.Assigned() && !serves(state, g) {
			return err
		}
		grown := int64s(confirmed)
		if inNoIndex(state) {
			grown, p.Confirmed = p.Ids, slices.Repeat([]bool{true}, len(p.Ids))
		}
		if len(grown) > 0 && !state.Outgrown {
			markOutgrown(q, t, p.UserIds, grown)
		}
		// Two jobs that embed the same unit do not both count it, and every writer locks the usage before units.
		q.Later().AwaitUsage(string(t))
		q.Later().SaveVectors(p)
		if len(confirmed) > 0 {
			q.Later().ConfirmUnits(db.ConfirmUnitsParams{TenantID: string(t), UserIds: p.UserIds, Ids: int64s(confirmed)})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save vectors: %w", err)
	}
	return nil
}

// serves reports whether a tenant has vectors of a generation, or will have them.
func serves(state placement.State, g placement.GenerationID) bool {
	return slices.ContainsFunc(state.Targets(), func(t placement.Target) bool { return t.Generation == g })
}

// inNoIndex reports whether the vectors of a tenant are in no index, now and after its migration.
func inNoIndex(state placement.State) bool {
	return state.Assigned() && len(state.Targets()) == 1 && len(state.Locations()) == 0
}

// Confirm implements indexing.Units. It locks the tenant before the units, as every writer does, and needs
// one round trip.
func (d *DB) Confirm(ctx context.Context, t tenant.ID, users []tenant.UserID, ids []retrieve.UnitID) error {
	p := db.ConfirmUnitsParams{TenantID: string(t), UserIds: userIDs(users), Ids: int64s(ids)}
	err := d.inTenant(ctx, t, func(_ pgx.Tx, q *db.Queries) error {
		q.Later().PlanEachExecution()
		markOutgrown(q, t, p.UserIds, p.Ids)
		q.Later().ConfirmUnits(p)
		return nil
	})
	if err != nil {
		return fmt.Errorf("confirm units: %w", err)
	}
	return nil
}

// markOutgrown records that the tenant has outgrown exact scoring, if one of these units is of such a user.
func markOutgrown(q *db.Queries, t tenant.ID, users, ids []int64) {
	q.Later().MarkOutgrown(db.MarkOutgrownParams{TenantID: string(t), UserIds: users, Ids: ids, AtLeast: placement.ExactUnits + 1})
}

// Live implements indexing.Units.
func (d *DB) Live(ctx context.Context, t tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error) {
	var out []retrieve.UnitID
	err := d.readTenant(ctx, t, func(_ db.DBTX, q *db.Queries) error {
		ids, err := q.LiveUnits(ctx, db.LiveUnitsParams{TenantID: string(t), After: int64(after), Count: integer(limit)})
		out = unitIDs(ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list live units: %w", err)
	}
	return out, nil
}

// LiveOf implements indexing.Units.
func (d *DB) LiveOf(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) ([]retrieve.UnitID, error) {
	var out []retrieve.UnitID
	err := d.readTenant(ctx, t, func(tx db.DBTX, _ *db.Queries) error {
		live, err := db.New(withGenericPlan(tx)).LiveUnitsOf(ctx, db.LiveUnitsOfParams{TenantID: string(t), Ids: int64s(ids)})
		out = unitIDs(live)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list live units: %w", err)
	}
	return out, nil
}

// Unconfirmed implements indexing.Units.
func (d *DB) Unconfirmed(ctx context.Context, t tenant.ID, after retrieve.UnitID, limit int) ([]retrieve.UnitID, error) {
	var out []retrieve.UnitID
	err := d.readTenant(ctx, t, func(_ db.DBTX, q *db.Queries) error {
		ids, err := q.UnconfirmedUnits(ctx, db.UnconfirmedUnitsParams{TenantID: string(t), After: int64(after), Count: integer(limit)})
		out = unitIDs(ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list unconfirmed units: %w", err)
	}
	return out, nil
}

// CountConfirmed implements indexing.Units.
func (d *DB) CountConfirmed(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) (int, error) {
	var n int64
	err := d.readTenant(ctx, t, func(_ db.DBTX, q *db.Queries) (err error) {
		n, err = q.CountConfirmed(ctx, db.CountConfirmedParams{TenantID: string(t), Ids: int64s(ids)})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count confirmed units: %w", err)
	}
	return int(n), nil
}

func userIDs(users []tenant.UserID) []int64 {
	return collect(users, func(id tenant.UserID) int64 { return int64(id) })
}

func int64s(ids []retrieve.UnitID) []int64 {
	return collect(ids, func(id retrieve.UnitID) int64 { return int64(id) })
}
