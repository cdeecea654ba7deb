package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// eraseAttempts and erasePause bound how long a command waits for jobs and requests
	// that were running when the erasure began.
	eraseAttempts = 15
	erasePause    = time.Second
	// vectorPage is the number of vectors deleted at a time.
	vectorPage = 1000
)

type eraseCommand struct {
	databaseFlags
	milvusFlags
	Tenant string `required:"" help:"Tenant: namespace/name, or its UID or ID. Without --user, the whole tenant, which must be retained or being purged."`
	User   string `help:"User of the tenant: the name or email address, or the ID to repeat an erasure. Remove the user from the Tenant first; otherwise the operator re-creates it without data."`
	Format string `enum:"text,json" default:"text" help:"Format of the receipt: ${enum}."`
	Yes    bool   `help:"Skip the confirmation."`

	IndexLost bool `help:"Erase although Milvus has none of the vectors that PostgreSQL records, because Milvus lost its data."`
}

// Run erases a user or a tenant and prints the receipt. It fails if anything remains.
func (c *eraseCommand) Run(ctx context.Context, log *slog.Logger) error {
	db, err := c.databaseFlags.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	scope, resource, err := c.find(ctx, db)
	if err != nil {
		return err
	}
	name := c.Tenant
	if c.User != "" {
		name += "/" + c.User
	}
	if !c.Yes {
		if err := confirm(os.Stdin, os.Stderr, "This permanently deletes all data. Type "+name+" to confirm: ", name); err != nil {
			return err
		}
	}
	index, err := c.milvusFlags.open(ctx, defaultGeneration.Dimensions, log)
	if err != nil {
		return err
	}
	defer func() { _ = index.Close() }()
	e := eraser{db: db, index: index, scope: scope, resource: resource, indexLost: c.IndexLost}
	receipt, err := e.run(ctx)
	if receipt.BeganAt.IsZero() {
		return err
	}
	if err := errors.Join(err, c.print(os.Stdout, receipt)); err != nil {
		return e.incomplete(err)
	}
	if n := receipt.Remaining(); n > 0 {
		return e.incomplete(fault.New(fault.Unavailable, "%d objects remain", n))
	}
	return nil
}

// find returns the user, or the retained tenant with its resource.
func (c *eraseCommand) find(ctx context.Context, db *postgres.DB) (tenant.Scope, tenant.ID, error) {
	records, err := db.Records(ctx, tenant.RecordsOf{})
	if err != nil {
		return tenant.Scope{}, "", err
	}
	if c.User == "" {
		record, err := findRetained(records, c.Tenant)
		return tenant.JobScope(record.ID, 0), record.Resource, err
	}
	record, err := findTenant(records, c.Tenant)
	if err != nil {
		return tenant.Scope{}, "", err
	}
	scope, err := db.FindUser(ctx, record.ID, c.User)
	if id, failed := strconv.ParseInt(c.User, 10, 64); failed == nil && fault.Is(err, fault.NotFound) {
		scope, err = db.FindErasedUser(ctx, record.ID, tenant.UserID(id))
	}
	return scope, record.Resource, err
}

// eraser erases one user, or a tenant if the user of the scope is 0.
type eraser struct {
	db        *postgres.DB
	index     *milvus.Router
	scope     tenant.Scope
	resource  tenant.ID
	locations []placement.Location
	indexLost bool
}

// run erases and counts. If it fails before anything was erased, the receipt is empty.
func (e *eraser) run(ctx context.Context) (erasure.Receipt, error) {
	began := time.Now().UTC()
	rows, err := e.db.CountErasable(ctx, e.scope)
	if err != nil {
		return erasure.Receipt{}, err
	}
	if e.locations, err = e.db.Locations(ctx, e.scope.Tenant); err != nil {
		return erasure.Receipt{}, err
	}
	vectors, err := e.countVectors(ctx)
	if err != nil {
		return erasure.Receipt{}, err
	}
	if err := e.checkIndex(ctx, vectors); err != nil {
		return erasure.Receipt{}, err
	}
	err = e.eraseAll(ctx, rows, vectors)
	r := erasure.Receipt{
		Tenant: e.scope.Tenant, User: e.scope.User, BeganAt: began, Stores: slices.Concat(rows, vectors), Kept: postgres.KeptAfterErasure(e.scope),
	}
	if err == nil && r.Remaining() == 0 {
		r.FinishedAt = time.Now().UTC()
	}
	return r, err
}

// eraseAll erases and updates the counts, until nothing remains or for a number of attempts.
func (e *eraser) eraseAll(ctx context.Context, rows, vectors []erasure.Count) error {
	err := e.erase(ctx)
	for attempt := range eraseAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(erasePause):
			}
		}
		if err == nil {
			err = e.finish(ctx)
		}
		if failed := e.recount(ctx, rows, vectors); err == nil { // also after a failure, for the receipt
			err = failed
		}
		if err != nil || (erasure.Receipt{Stores: slices.Concat(rows, vectors)}).Remaining() == 0 {
			return err
		}
	}
	return nil
}

// recount sets After of the rows, and then of the vectors.
func (e *eraser) recount(ctx context.Context, rows, vectors []erasure.Count) error {
	if err := e.db.Recount(ctx, e.scope.Tenant, rows); err != nil {
		return err
	}
	after, err := e.countVectors(ctx)
	if err != nil {
		return err
	}
	for i := range vectors {
		vectors[i].After = after[i].Before
	}
	return nil
}

// incomplete adds to an error how the erasure is repeated. Names may be those of others by then.
func (e *eraser) incomplete(err error) error {
	if e.scope.User != 0 {
		return fmt.Errorf("the erasure is incomplete; repeat it with `mnemo erase --tenant %s --user %d`: %w", e.scope.Tenant, e.scope.User, err)
	}
	return fmt.Errorf("the erasure is incomplete; repeat it with `mnemo erase --tenant %s`: %w", e.scope.Tenant, err)
}

// checkIndex returns an error if Milvus has none of the vectors that PostgreSQL records:
// it is another one, and the receipt would not prove anything. It does nothing if the
// index was lost, or if the tenant is in no index.
func (e *eraser) checkIndex(ctx context.Context, vectors []erasure.Count) error {
	if e.indexLost || len(vectors) == 0 {
		return nil
	}
	for _, c := range vectors {
		if c.Before > 0 {
			return nil
		}
	}
	n, err := e.db.IndexedUnits(ctx, e.scope)
	if err != nil || n == 0 {
		return err
	}
	return fault.New(fault.Conflict, "PostgreSQL records %d vectors, but Milvus has none of them; nothing was erased: "+
		"check --milvus-address, and add --index-lost only if Milvus lost its data", n)
}

// erase deletes the rows, and the vectors of a tenant.
func (e *eraser) erase(ctx context.Context) error {
	if e.scope.User != 0 {
		return e.db.EraseUser(ctx, e.scope)
	}
	if _, err := e.db.Retire(ctx, e.resource, tenant.Delete); err != nil {
		return err
	}
	return tenant.Purge(ctx, e.db, e.index, e.scope.Tenant)
}

// finish deletes the remaining vectors of a user, and jobs that have nothing left to do.
func (e *eraser) finish(ctx context.Context) error {
	for _, at := range e.locations {
		for e.scope.User != 0 {
			ids, err := e.index.ListUser(ctx, e.scope, at, 0, vectorPage)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				break
			}
			if err := e.index.Delete(ctx, e.scope.Tenant, at, ids); err != nil {
				return err
			}
		}
	}
	return e.db.EraseJobs(ctx, e.scope)
}

// countVectors counts the vectors at each location, as Before and After.
func (e *eraser) countVectors(ctx context.Context) ([]erasure.Count, error) {
	var out []erasure.Count
	for _, at := range e.locations {
		query := fmt.Sprintf("query collection %s partition %s", at.Collection, at.Partition)
		if at.Cell != "" {
			query += " of cell " + at.Cell
		}
		if e.scope.User != 0 {
			query += fmt.Sprintf(" where user_id == %d", e.scope.User)
		}
		count := erasure.Count{Store: "vectors", Query: query}
		for after := retrieve.UnitID(0); ; {
			ids, err := e.index.ListUser(ctx, e.scope, at, after, vectorPage)
			if err != nil {
				return nil, err
			}
			count.Before += int64(len(ids))
			if len(ids) < vectorPage {
				break
			}
			after = ids[len(ids)-1]
		}
		count.After = count.Before
		out = append(out, count)
	}
	return out, nil
}

// print writes the receipt.
func (c *eraseCommand) print(to io.Writer, r erasure.Receipt) error {
	if c.Format == "json" {
		out := json.NewEncoder(to)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	period := fmt.Sprintf("erased from %s to %s", r.BeganAt.Format(time.RFC3339), r.FinishedAt.Format(time.RFC3339))
	if r.FinishedAt.IsZero() {
		period = fmt.Sprintf("erasure begun at %s, incomplete", r.BeganAt.Format(time.RFC3339))
	}
	fmt.Fprintf(to, "Tenant %s, %s, %s\n\n", r.Tenant, cmp.Or(map[bool]string{true: "all users"}[r.User == 0], fmt.Sprintf("user %d", r.User)), period)
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "STORE\tBEFORE\tAFTER\tQUERY")
	for _, s := range r.Stores {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", s.Store, s.Before, s.After, s.Query)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(to, "\nNot erased:")
	for _, k := range r.Kept {
		fmt.Fprintf(to, "- %s: %s\n", k.Store, k.Reason)
	}
	return nil
}
