package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
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
	Tenant string `required:"" help:"Tenant: namespace/name, or its UID or ID. Without --user, the whole tenant, which must be retained."`
	User   string `help:"User of the tenant: the name or email address. Remove the user from the Tenant first; otherwise the operator re-creates it without data."`
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
	if err != nil {
		return err
	}
	if err := c.print(os.Stdout, receipt); err != nil {
		return err
	}
	if n := receipt.Remaining(); n > 0 {
		return fault.New(fault.Unavailable, "%d objects remain; run the command again", n)
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

func (e *eraser) run(ctx context.Context) (erasure.Receipt, error) {
	r := erasure.Receipt{Tenant: e.scope.Tenant, User: e.scope.User, BeganAt: time.Now().UTC(), Kept: postgres.KeptAfterErasure(e.scope)}
	var err error
	if r.Stores, err = e.db.CountErasable(ctx, e.scope); err != nil {
		return r, err
	}
	if e.locations, err = e.db.Locations(ctx, e.scope.Tenant); err != nil {
		return r, err
	}
	vectors, err := e.countVectors(ctx)
	if err != nil {
		return r, err
	}
	if err := e.checkIndex(ctx, vectors); err != nil {
		return r, err
	}
	if err := e.erase(ctx); err != nil {
		return r, err
	}
	rows := r.Stores
	for attempt := range eraseAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return r, ctx.Err()
			case <-time.After(erasePause):
			}
		}
		if err := e.finish(ctx); err != nil {
			return r, err
		}
		if err := e.db.Recount(ctx, e.scope.Tenant, rows); err != nil {
			return r, err
		}
		after, err := e.countVectors(ctx)
		if err != nil {
			return r, err
		}
		for i := range vectors {
			vectors[i].After = after[i].Before
		}
		if r.Stores = slices.Concat(rows, vectors); r.Remaining() == 0 {
			break
		}
	}
	r.FinishedAt = time.Now().UTC()
	return r, nil
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

// countVectors counts the vectors at each location, as Before.
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
	fmt.Fprintf(to, "Tenant %s, %s, erased from %s to %s\n\n", r.Tenant,
		cmp.Or(map[bool]string{true: "all users"}[r.User == 0], fmt.Sprintf("user %d", r.User)),
		r.BeganAt.Format(time.RFC3339), r.FinishedAt.Format(time.RFC3339))
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
