package retrieve

import (
	"context"
	"fmt"
	"slices"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	syncBatch  = 500 // units held in memory at a time
	embedBatch = 16  // texts embedded before their vectors are saved
	maxRounds  = 5   // times a batch is looked at again because it changed meanwhile
)

// Indexer makes the index agree with the database. All it does may be repeated
// and may run beside itself.
type Indexer struct {
	units    Units
	index    Index
	embedder Embedder
}

// NewIndexer makes an Indexer.
func NewIndexer(units Units, index Index, embedder Embedder) *Indexer {
	return &Indexer{units: units, index: index, embedder: embedder}
}

// Sync makes the index hold those of the units that are live, and not the
// others, whatever happens to them meanwhile. Units that the embedder failed on
// are left out and make it an error; the others are done nevertheless. Nothing
// is done for a tenant that has no placement.
func (x *Indexer) Sync(ctx context.Context, t tenant.ID, ids []UnitID) error {
	for range maxRounds {
		w, err := x.units.GetPlacement(ctx, t)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get placement: %w", err)
		}
		if err := x.sync(ctx, t, w, ids); err != nil {
			return err
		}
		// Who moves the tenant trusts that those who wrote meanwhile knew of it.
		now, err := x.units.GetPlacement(ctx, t)
		switch {
		case fault.Is(err, fault.NotFound):
			return nil // it was purged
		case err != nil:
			return fmt.Errorf("get placement again: %w", err)
		case slices.Equal(w.Targets(), now.Targets()):
			return nil
		}
	}
	return fault.New(fault.Unavailable, "tenant %s is moved faster than it is indexed", t)
}

func (x *Indexer) sync(ctx context.Context, t tenant.ID, w placement.State, ids []UnitID) error {
	all := job{tenant: t, places: w.Targets(), embed: true, confirm: true}
	for batch := range slices.Chunk(ids, syncBatch) {
		if err := x.settle(ctx, all, batch); err != nil {
			return err
		}
	}
	return nil
}

// job says how units are to be settled.
type job struct {
	tenant  tenant.ID
	places  []placement.Location
	embed   bool // fill in vectors that are missing; else what has none is left out
	confirm bool // note that the index holds them
}

// settle writes the units as the database has them and looks again, until what
// was written is what the database has. A writer that changes a unit after the
// last look commits a job of its own, so every unit is settled by someone.
func (x *Indexer) settle(ctx context.Context, j job, ids []UnitID) error {
	for range maxRounds {
		live, err := x.units.Load(ctx, j.tenant, ids)
		if err != nil {
			return fmt.Errorf("load units: %w", err)
		}
		embedErr := x.embed(ctx, j, live)
		written, err := x.write(ctx, j, ids, live)
		if err != nil {
			return err
		}
		again, err := x.units.Load(ctx, j.tenant, ids)
		if err != nil {
			return fmt.Errorf("load units again: %w", err)
		}
		settled, changed := compare(ids, live, again)
		confirmed := slices.DeleteFunc(settled, func(id UnitID) bool { return !written[id] })
		if len(confirmed) > 0 && j.confirm {
			if err := x.units.Confirm(ctx, j.tenant, confirmed); err != nil {
				return fmt.Errorf("confirm units: %w", err)
			}
		}
		if embedErr != nil {
			return embedErr
		}
		if len(changed) == 0 {
			return nil
		}
		ids = changed
	}
	return fault.New(fault.Unavailable, "units of tenant %s change faster than they are indexed", j.tenant)
}

// embed fills in the vectors that are missing or of another model's length,
// and saves them.
func (x *Indexer) embed(ctx context.Context, j job, units []OwnedUnit) error {
	var missing []*OwnedUnit
	for i := range units {
		if len(units[i].Vector) != x.embedder.Dimensions() {
			units[i].Vector = nil
			missing = append(missing, &units[i])
		}
	}
	if !j.embed {
		return nil
	}
	for batch := range slices.Chunk(missing, embedBatch) {
		texts := make([]string, len(batch))
		for i, u := range batch {
			texts[i] = u.Dense
		}
		vectors, err := x.embedder.Embed(ctx, texts)
		if err == nil && len(vectors) != len(texts) {
			err = fault.New(fault.Unavailable, "the embedder answered %d vectors for %d texts", len(vectors), len(texts))
		}
		if err != nil {
			return fmt.Errorf("embed units: %w", err)
		}
		made := make(map[UnitID][]float32, len(batch))
		for i, u := range batch {
			made[u.ID] = vectors[i]
		}
		if err := x.units.SaveVectors(ctx, j.tenant, made); err != nil {
			return fmt.Errorf("save vectors: %w", err)
		}
		for i, u := range batch {
			u.Vector = vectors[i]
		}
	}
	return nil
}

// write puts the live units that have a vector into the index and takes those
// of the ids that are not live out, in each place. It returns what it put.
func (x *Indexer) write(ctx context.Context, j job, ids []UnitID, live []OwnedUnit) (map[UnitID]bool, error) {
	isLive := make(map[UnitID]bool, len(live))
	written := make(map[UnitID]bool, len(live))
	var entries []Entry
	for _, u := range live {
		isLive[u.ID] = true
		if u.Vector != nil && !written[u.ID] {
			written[u.ID] = true
			entries = append(entries, Entry{ID: u.ID, User: int64(u.User), Kind: u.Kind, Group: u.Group, Vector: u.Vector})
		}
	}
	var dead []UnitID
	for _, id := range ids {
		if !isLive[id] {
			dead = append(dead, id)
		}
	}
	for _, p := range j.places {
		if len(entries) > 0 {
			if err := x.index.Upsert(ctx, j.tenant, p, entries); err != nil {
				return nil, fmt.Errorf("index units: %w", err)
			}
		}
		if len(dead) > 0 {
			if err := x.index.Delete(ctx, j.tenant, p, dead); err != nil {
				return nil, fmt.Errorf("remove units from the index: %w", err)
			}
		}
	}
	return written, nil
}

// compare returns which of the ids were live both times, and which changed
// from live to dead or back in between.
func compare(ids []UnitID, before, after []OwnedUnit) (settled, changed []UnitID) {
	was, is := make(map[UnitID]bool, len(before)), make(map[UnitID]bool, len(after))
	for _, u := range before {
		was[u.ID] = true
	}
	for _, u := range after {
		is[u.ID] = true
	}
	for _, id := range ids {
		switch {
		case was[id] != is[id]:
			changed = append(changed, id)
		case is[id]:
			settled = append(settled, id)
		}
	}
	return settled, changed
}
