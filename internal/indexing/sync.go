package indexing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	syncBatch  = 500 // units in memory at a time
	saveBatch  = 64  // units embedded before their vectors are saved, with the confirmation that the index contains them
	embedBatch = 16  // texts embedded at a time
	maxRounds  = 5   // attempts for units that change concurrently
	// keepTimeout limits the time to save vectors after an attempt has ended.
	keepTimeout = 10 * time.Second
)

// Indexer keeps the index consistent with the database. Its methods are idempotent and
// safe to run concurrently, also in several processes.
type Indexer struct {
	units     Units
	index     Store
	embedders retrieve.Embedders
	log       *slog.Logger
	refused   *refusals
}

// NewIndexer returns an Indexer.
func NewIndexer(units Units, index Store, embedders retrieve.Embedders, log *slog.Logger) *Indexer {
	return &Indexer{units: units, index: index, embedders: embedders, log: log, refused: newRefusals()}
}

// Sync adds the live units to the index and removes the others, also if they change
// concurrently. If embedding fails it returns an error after processing the units
// that have a vector; a text that the embedder refuses is retried by a later sweep
// instead. While the tenant has no placement yet, it returns Unavailable if units are live.
func (x *Indexer) Sync(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) error {
	for range maxRounds {
		w, err := x.units.GetPlacement(ctx, t)
		if fault.Is(err, fault.NotFound) {
			return x.unplaced(ctx, t, ids)
		}
		if err != nil {
			return fmt.Errorf("get placement: %w", err)
		}
		if err := x.sync(ctx, t, w, ids); err != nil {
			return err
		}
		// A migration relies on concurrent writers to know about its target.
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
	return fault.New(fault.Unavailable, "the placement of tenant %s changes faster than it is indexed", t)
}

// unplaced returns Unavailable if units of a tenant without a placement are live: the operator issues tokens while it
// assigns the placement, and the assignment does not index the units that exist. Otherwise, the tenant or the units
// were purged.
func (x *Indexer) unplaced(ctx context.Context, t tenant.ID, ids []retrieve.UnitID) error {
	live, err := x.units.LiveOf(ctx, t, ids)
	if err == nil && len(live) > 0 {
		err = fault.New(fault.Unavailable, "tenant %s has no placement yet", t)
	}
	return err
}

func (x *Indexer) sync(ctx context.Context, t tenant.ID, w placement.State, ids []retrieve.UnitID) error {
	all := job{tenant: t, targets: w.Targets(), embed: true, confirm: true}
	for batch := range slices.Chunk(ids, syncBatch) {
		if err := x.settle(ctx, all, batch); err != nil {
			return err
		}
	}
	return nil
}

// job describes how units are settled.
type job struct {
	tenant  tenant.ID
	targets []placement.Target
	embed   bool // compute missing vectors; otherwise units without one are skipped
	confirm bool // record that the index contains them
}

// settle writes the units to the index and reads them again until the database has not
// changed meanwhile. A writer that changes a unit later commits its own job, so
// every unit is settled eventually.
func (x *Indexer) settle(ctx context.Context, j job, ids []retrieve.UnitID) error {
	for range maxRounds {
		live, err := x.units.Load(ctx, j.tenant, ids)
		if err != nil {
			return fmt.Errorf("load units: %w", err)
		}
		if len(ids) > saveBatch && x.unembedded(j, live) > saveBatch {
			return x.settleInParts(ctx, j, ids)
		}
		unsaved, embedErr := x.embed(ctx, j, live)
		confirmed, changed, err := x.write(ctx, j, ids, live)
		if err == nil {
			err = x.confirm(ctx, j, usersOf(live), confirmed, unsaved)
		}
		if err != nil {
			return errors.Join(err, x.keep(ctx, j, usersOf(live), unsaved))
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

// settleInParts settles units of which many are to be embedded, so that their vectors are saved in between.
func (x *Indexer) settleInParts(ctx context.Context, j job, ids []retrieve.UnitID) error {
	for part := range slices.Chunk(ids, saveBatch) {
		if err := x.settle(ctx, j, part); err != nil {
			return err
		}
	}
	return nil
}

// indexed reports whether a target is in an index, to which changes of the units can be written too late.
func (j job) indexed() bool {
	return slices.ContainsFunc(j.targets, func(t placement.Target) bool { return t.Indexed() })
}

// embed computes the missing vectors of each generation of the targets. It saves them, or returns them if they are to
// be saved when the units are confirmed.
func (x *Indexer) embed(ctx context.Context, j job, units []OwnedUnit) (unsaved []batchOf, _ error) {
	if !j.embed {
		return nil, nil
	}
	var errs []error
	for _, g := range j.generations() {
		b := batchOf{tenant: j.tenant, generation: g, savedLast: j.savesLast()}
		errs = append(errs, x.embedMissing(ctx, &b, units))
		if len(b.unsaved) > 0 {
			unsaved = append(unsaved, b)
		}
	}
	return unsaved, errors.Join(errs...)
}

// confirm saves vectors, and confirms units if the job does so.
func (x *Indexer) confirm(ctx context.Context, j job, users []tenant.UserID, ids []retrieve.UnitID, unsaved []batchOf) error {
	for _, b := range unsaved {
		if err := x.units.SaveVectors(ctx, b.tenant, users, b.generation, b.unsaved, ids); err != nil {
			return fmt.Errorf("save vectors: %w", err)
		}
	}
	if len(unsaved) > 0 || len(ids) == 0 || !j.confirm {
		return nil
	}
	if err := x.units.Confirm(ctx, j.tenant, users, ids); err != nil {
		return fmt.Errorf("confirm units: %w", err)
	}
	return nil
}

// keep saves vectors without confirming units, even after the timeout of the job: otherwise, each attempt would
// compute them again.
func (x *Indexer) keep(ctx context.Context, j job, users []tenant.UserID, unsaved []batchOf) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	return x.confirm(ctx, j, users, nil, unsaved)
}

// generations returns the generations of the targets, each once.
func (j job) generations() (all []placement.GenerationID) {
	for _, t := range j.targets {
		if !slices.Contains(all, t.Generation) {
			all = append(all, t.Generation)
		}
	}
	return all
}

func (x *Indexer) embedMissing(ctx context.Context, b *batchOf, units []OwnedUnit) error {
	for batch := range slices.Chunk(x.missing(*b, units), embedBatch) {
		if err := x.embedBatch(ctx, b, batch); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the units to embed.
func (x *Indexer) missing(b batchOf, units []OwnedUnit) (out []*OwnedUnit) {
	for i := range units {
		if u := &units[i]; u.Vectors[b.generation] == nil && !x.refused.waits(b.refusal(u)) {
			out = append(out, u)
		}
	}
	return out
}

// unembedded returns the number of vectors to compute that are saved when the units are confirmed.
func (x *Indexer) unembedded(j job, units []OwnedUnit) (n int) {
	if !j.savesLast() {
		return 0
	}
	for _, g := range j.generations() {
		n += len(x.missing(batchOf{tenant: j.tenant, generation: g}, units))
	}
	return n
}

// savesLast reports whether vectors are saved when the units are confirmed, not when they are computed.
func (j job) savesLast() bool { return j.embed && j.confirm && j.indexed() }

// batchOf is what the units of a batch have in common.
type batchOf struct {
	tenant     tenant.ID
	generation placement.GenerationID
	savedLast  bool            // their vectors are saved when the units are confirmed
	unsaved    []retrieve.Unit // until then: with ID, Dense and Vector
}

func (b batchOf) refusal(u *OwnedUnit) refusalKey { return refusalKey{u.ID, b.generation} }

// embedBatch embeds a batch. If the embedder refuses it, it halves the batch until
// it finds the text that was refused, and omits that one.
func (x *Indexer) embedBatch(ctx context.Context, b *batchOf, batch []*OwnedUnit) error {
	err := x.embedTexts(ctx, b, batch)
	switch {
	case !retrieve.IsRefused(err):
		return err
	case len(batch) == 1:
		return x.skip(ctx, *b, batch[0], err)
	}
	half := len(batch) / 2
	if err := x.embedBatch(ctx, b, batch[:half]); err != nil {
		return err
	}
	return x.embedBatch(ctx, b, batch[half:])
}

// embedTexts embeds units in one request and saves or collects their vectors. Jobs wait while
// the embedder fails, hence Unavailable.
func (x *Indexer) embedTexts(ctx context.Context, b *batchOf, batch []*OwnedUnit) error {
	texts := make([]string, len(batch))
	for i, u := range batch {
		texts[i] = u.Dense
	}
	vectors, err := x.embedders.Embed(ctx, b.generation, texts)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the embedder returned %d vectors for %d texts", len(vectors), len(texts))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "embed units")
	}
	embedded := make([]retrieve.Unit, len(batch))
	var users []tenant.UserID
	for i, u := range batch {
		users = withUser(users, u.User)
		embedded[i] = retrieve.Unit{ID: u.ID, Dense: u.Dense, Vector: vectors[i]}
	}
	if b.savedLast {
		b.unsaved = append(b.unsaved, embedded...)
	} else if err := x.units.SaveVectors(ctx, b.tenant, users, b.generation, embedded, nil); err != nil {
		return fmt.Errorf("save vectors: %w", err)
	}
	for i, u := range batch {
		if u.Vectors == nil {
			u.Vectors = map[placement.GenerationID][]float32{}
		}
		u.Vectors[b.generation] = vectors[i]
		x.refused.remove(b.refusal(u))
	}
	return nil
}

// skip records that the embedder refused a unit's text. The unit is found by its
// words only, and a sweep retries it later. If the embedder refuses other texts,
// too, skip returns the refusal: the cause is the configuration.
func (x *Indexer) skip(ctx context.Context, b batchOf, u *OwnedUnit, refused error) error {
	if _, err := x.embedders.Embed(ctx, b.generation, []string{probeText}); err != nil {
		return refused
	}
	retry := x.refused.add(b.refusal(u))
	x.log.WarnContext(ctx, "the embedder refused a text; found by keywords only", "tenant", b.tenant, "unit", u.ID, "retry", retry, "error", refused)
	return nil
}

// write writes the units to the targets and reads again which are live. It returns those that every target contains,
// and those that changed in between.
func (x *Indexer) write(ctx context.Context, j job, ids []retrieve.UnitID, live []OwnedUnit) (confirmed, changed []retrieve.UnitID, err error) {
	written, err := x.writeTargets(ctx, j, ids, live)
	if err != nil {
		return nil, nil, err
	}
	was := idsOf(live)
	is := was
	if j.indexed() {
		if is, err = x.units.LiveOf(ctx, j.tenant, ids); err != nil {
			return nil, nil, err
		}
	}
	settled, changed := compare(ids, was, is)
	return slices.DeleteFunc(settled, func(id retrieve.UnitID) bool { return !written[id] }), changed, nil
}

// writeTargets adds the live units with a vector to each target and removes the ids that are
// not live. It returns the ids it added to every target; one in no index contains every
// unit with a vector.
func (x *Indexer) writeTargets(ctx context.Context, j job, ids []retrieve.UnitID, live []OwnedUnit) (map[retrieve.UnitID]bool, error) {
	written := make(map[retrieve.UnitID]bool, len(live))
	for _, u := range live {
		written[u.ID] = true
	}
	var dead []retrieve.UnitID
	for _, id := range ids {
		if !written[id] {
			dead = append(dead, id)
		}
	}
	for _, target := range j.targets {
		entries := entriesOf(live, target.Generation, written)
		if !target.Indexed() {
			continue
		}
		if len(entries) > 0 {
			if err := x.index.Upsert(ctx, j.tenant, target.Location, entries); err != nil {
				return nil, fmt.Errorf("index units: %w", err)
			}
		}
		if len(dead) > 0 {
			if err := x.index.Delete(ctx, j.tenant, target.Location, dead); err != nil {
				return nil, fmt.Errorf("remove units from the index: %w", err)
			}
		}
	}
	return written, nil
}
