package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
)

// EnsureGeneration returns the id of a generation. The current model's becomes the active
// one, in which new tenants are placed, while no tenant has a placement.
func (d *DB) EnsureGeneration(ctx context.Context, g placement.Generation, current bool) (id placement.GenerationID, err error) {
	err = d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := q.LockCollections(ctx); err != nil {
			return err
		}
		if id, err = ensureGeneration(ctx, q, g); err != nil || !current {
			return err
		}
		if err := q.DeactivateUnused(ctx, int16(id)); err != nil {
			return err
		}
		return q.SetActive(ctx, int16(id))
	})
	if err != nil {
		return 0, fmt.Errorf("ensure embedding generation: %w", err)
	}
	return id, nil
}

// ensureGeneration inserts the generation unless it exists. Vectors from before
// generations were recorded belong to the first model of their name.
func ensureGeneration(ctx context.Context, q *db.Queries, g placement.Generation) (placement.GenerationID, error) {
	name := g.Prefix()
	found, err := q.FindGeneration(ctx, db.FindGenerationParams{
		Model: g.Model, Revision: g.Revision, Settings: g.Settings, Dimensions: integer(g.Dimensions), Name: name,
	})
	if err != nil {
		return 0, err
	}
	if len(found) > 0 {
		id := found[0].ID
		if !found[0].Known {
			err = q.AdoptGeneration(ctx, db.AdoptGenerationParams{
				ID: id, Model: g.Model, Revision: g.Revision, Settings: g.Settings, Dimensions: integer(g.Dimensions),
			})
		}
		return placement.GenerationID(id), err
	}
	used, err := q.HasGenerationName(ctx, name)
	if err != nil {
		return 0, err
	}
	if used {
		sum := sha256.Sum256([]byte(g.Model + "\x00" + g.Revision + "\x00" + g.Settings))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	id, err := q.InsertGeneration(ctx, db.InsertGenerationParams{
		Name: name, Model: g.Model, Revision: g.Revision, Settings: g.Settings, Dimensions: integer(g.Dimensions),
	})
	return placement.GenerationID(id), err
}

// activeGeneration returns the name of the generation of new tenants.
func (d *DB) activeGeneration(ctx context.Context, q *db.Queries) (name string, err error) {
	if err := q.LockCollections(ctx); err != nil {
		return "", err
	}
	active, err := q.ActiveGeneration(ctx)
	if err == nil && len(active) == 0 {
		id, err := ensureGeneration(ctx, q, d.config.Generation)
		if err != nil {
			return "", err
		}
		if err := q.SetActive(ctx, int16(id)); err != nil {
			return "", err
		}
		active, err = q.ActiveGeneration(ctx)
		if err != nil {
			return "", err
		}
	}
	if err != nil {
		return "", err
	}
	return active[0].Name, nil
}

// UsedGenerations returns the generations in which tenants are placed.
func (d *DB) UsedGenerations(ctx context.Context) ([]placement.UsedGeneration, error) {
	rows, err := db.New(d.pool).ListUsedGenerations(ctx)
	if err != nil {
		return nil, fmt.Errorf("list embedding generations: %w", mapError(err))
	}
	return collect(rows, func(r db.ListUsedGenerationsRow) placement.UsedGeneration {
		return placement.UsedGeneration{
			ID: placement.GenerationID(r.ID), Tenants: r.Tenants,
			Generation: placement.Generation{Model: r.Model, Revision: r.Revision, Dimensions: int(r.Dimensions)},
		}
	}), nil
}

// CheckGenerations rejects a server without the model of stored vectors: it could neither
// search them nor add comparable ones.
func (d *DB) CheckGenerations(ctx context.Context, configured ...placement.GenerationID) error {
	used, err := d.UsedGenerations(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, g := range used {
		if !slices.Contains(configured, g.ID) {
			missing = append(missing, fmt.Sprintf("the vectors of %d tenants were computed by %s", g.Tenants, describeModel(g.Generation)))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "%s, which is not configured. Vectors of different models are not comparable: "+
		"configure that model, and set the replacement as the next model (embeddings.next, docs/models.md)", strings.Join(missing, "; "))
}

// describeModel names a model for an administrator.
func describeModel(g placement.Generation) string {
	text := fmt.Sprintf("model %s with %d dimensions", g.Model, g.Dimensions)
	if g.Revision != "" {
		text += " (revision " + g.Revision[:min(len(g.Revision), 12)] + ")"
	}
	return text
}

var _ indexing.Fingerprints = (*DB)(nil)

// EnsureFingerprint implements indexing.Fingerprints.
func (d *DB) EnsureFingerprint(ctx context.Context, g placement.GenerationID, vector []float32) (stored []float32, err error) {
	err = d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		if err := q.SetFingerprint(ctx, db.SetFingerprintParams{ID: int16(g), Fingerprint: encodeHalf(vector)}); err != nil {
			return err
		}
		fingerprint, err := q.GetFingerprint(ctx, int16(g))
		stored = decodeHalf(fingerprint)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ensure fingerprint: %w", err)
	}
	return stored, nil
}
