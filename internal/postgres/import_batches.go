package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// readBytes limits the stored message text that a batch reads at a time.
const readBytes = 4 << 20

// StoreBatch implements importer.Files.
func (i Imports) StoreBatch(ctx context.Context, run importer.Run, b importer.Batch) (importer.Batch, error) {
	var uncounted importer.Batch
	err := retryInserts(func() error {
		return i.inScope(ctx, run.Scope, func(tx pgx.Tx, q *db.Queries) error {
			w := conversationWriter{db: i.DB, tx: tx, q: q, scope: run.Scope, importID: run.ID}
			x := importBatch{conversationWriter: w, run: run}
			var err error
			uncounted, err = x.store(ctx, b)
			return err
		})
	})
	if err != nil {
		return importer.Batch{}, fmt.Errorf("store batch: %w", err)
	}
	return uncounted, nil
}

// importBatch is the transaction that stores a batch of an import.
type importBatch struct {
	conversationWriter
	run importer.Run

	results   []importer.Result
	inserts   []chat.Change // new conversations, written together
	storage   int64         // bytes gained
	units     []retrieve.UnitID
	stored    []string         // ids of conversations that were created or changed
	uncounted []importer.Entry // tokens not counted
}

func (x *importBatch) store(ctx context.Context, b importer.Batch) (importer.Batch, error) {
	var keys []chat.Key
	for _, e := range b.Entries {
		if e.Outcome == "" {
			keys = append(keys, e.Upsert.Key())
		}
	}
	stored, err := x.lock(ctx, keys...)
	if err != nil {
		return importer.Batch{}, err
	}
	for entries := b.Entries; len(entries) > 0; {
		n := window(entries, stored)
		if err := x.storeWindow(ctx, entries[:n], stored); err != nil {
			return importer.Batch{}, err
		}
		entries = entries[n:]
	}
	if len(x.results) == 0 {
		return b, nil
	}
	if err := x.insertNew(ctx); err != nil {
		return importer.Batch{}, err
	}
	return importer.Batch{Entries: x.uncounted}, x.account(ctx)
}

// window returns how many of the entries to store at a time, so that the stored
// messages that they are merged into fit into readBytes.
func window(entries []importer.Entry, stored map[chat.Key]chat.Conversation) int {
	var bytes int64
	for n, e := range entries {
		if bytes += stored[e.Upsert.Key()].Bytes; bytes > readBytes && n > 0 {
			return n
		}
	}
	return len(entries)
}

// storeWindow updates the stored conversations of the entries and collects the
// new ones.
func (x *importBatch) storeWindow(ctx context.Context, entries []importer.Entry, stored map[chat.Key]chat.Conversation) error {
	var ids []string
	for _, e := range entries {
		if c, ok := stored[e.Upsert.Key()]; ok {
			ids = append(ids, c.ID)
		}
	}
	messages, err := listMessages(ctx, x.q, x.scope, ids...)
	if err != nil {
		return err
	}
	var updates []chat.Change
	for _, e := range entries {
		if e.Outcome != "" {
			x.results = append(x.results, importer.Rejected(e))
			continue
		}
		id, err := newID()
		if err != nil {
			return err
		}
		before := stored[e.Upsert.Key()]
		c := e.Plan(before, messages[before.ID], id, x.run.StartedAt)
		if len(c.Added)+len(c.Replaced) > 0 && !e.TokensCounted {
			x.uncounted = append(x.uncounted, e)
			continue
		}
		x.results = append(x.results, importer.ResultOf(e, c))
		switch {
		case c.Created():
			x.inserts = append(x.inserts, c)
		case c.Changed():
			updates = append(updates, c)
		}
	}
	return x.writeAll(ctx, updates)
}

// writeAll writes changes with their units.
func (x *importBatch) writeAll(ctx context.Context, changes []chat.Change) error {
	for _, c := range changes {
		x.storage += c.Storage()
	}
	if err := x.write(ctx, changes...); err != nil {
		return err
	}
	units, err := x.writeUnits(ctx, changes...)
	x.units = append(x.units, units...)
	x.stored = append(x.stored, collect(changes, func(c chat.Change) string { return c.After.ID })...)
	return err
}

// insertNew writes the new conversations. It checks the quota first: charge,
// which comes last, would reject the batch only after everything is written.
func (x *importBatch) insertNew(ctx context.Context) error {
	storage := x.storage
	for _, c := range x.inserts {
		storage += c.Storage()
	}
	if err := requireStorage(ctx, x.q, x.scope, storage); err != nil {
		return err
	}
	return x.writeAll(ctx, x.inserts)
}

// account commits the index job and the ledger rows, and last locks the import
// and the usage rows, which other transactions wait for.
func (x *importBatch) account(ctx context.Context) error {
	if err := x.db.insertSync(ctx, x.tx, x.q, x.scope.Tenant, x.units); err != nil {
		return err
	}
	insertLedger(x.q, x.scope, x.run.ID, x.results)
	if err := x.addToImport(ctx); err != nil {
		return fmt.Errorf("update import: %w", err)
	}
	var counts chat.StatusCounts
	for _, c := range x.inserts {
		counts.Move("", c.After.Status)
	}
	if x.storage > 0 {
		if err := x.q.AwaitUsage(ctx, string(x.scope.Tenant)); err != nil {
			return err
		}
	}
	x.charge(x.storage, counts)
	if len(x.stored) == 0 {
		return nil
	}
	if err := requireImporter(ctx, x.q, x.scope); err != nil {
		return err
	}
	appendAudit(ctx, x.q, x.scope, audit.ConversationStore, x.stored...)
	return nil
}

// requireImporter is requireUser for imports, whose work ends with the user: ErrLeaseLost.
func requireImporter(ctx context.Context, q *db.Queries, scope tenant.Scope) error {
	err := requireUser(ctx, q, scope)
	if fault.Is(err, fault.NotFound) {
		return importer.ErrLeaseLost
	}
	return err
}

// addToImport adds the batch to the counts of the import; ErrLeaseLost.
func (x *importBatch) addToImport(ctx context.Context) error {
	notes, err := x.q.LockRunningImport(ctx, db.LockRunningImportParams{
		TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), ID: x.run.ID, Worker: &x.run.Worker,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return importer.ErrLeaseLost
	}
	if err != nil {
		return err
	}
	c := importer.Count(x.results)
	if !c.Notes.IsZero() {
		if notes, err = importer.AddNotes(notes, c.Notes); err != nil {
			return err
		}
	}
	list, err := json.Marshal(c.Errors)
	if err != nil {
		return err
	}
	return x.q.AddToImport(ctx, db.AddToImportParams{
		TenantID: string(x.scope.Tenant), UserID: int64(x.scope.User), ID: x.run.ID, Lease: seconds(batchLease), Notes: notes,
		Imported: c.Imported, Updated: c.Updated, Skipped: c.Skipped, Unchanged: c.Unchanged, Failed: c.Failed,
		Indexed: c.Indexed, Errors: list,
	})
}
