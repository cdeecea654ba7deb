package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// notCopied are the tables with a column tenant_id whose rows a copy of a tenant omits, and why. Unlogged
// tables are omitted, too.
var notCopied = map[string]string{
	"erasures":             "erasures that the ledger of this database does not contain yet",
	"placements":           "the operator of the target assigns a placement, and fills the index from the copied vectors",
	"placement_migrations": "belongs to the placement",
	"embedding_targets":    "belongs to a migration to another model in this database",
	"index_sweeps":         "progress of the sweep of this database",
	"tenant_units":         "number of units in a cell of this installation, counted every hour",
}

// notCopiedJobs are the kinds of jobs that a copy omits: those about the index and webhooks, for which sweeps
// queue jobs.
var notCopiedJobs = []string{"index.sync", "placement.migrate", "placement.drop", "webhook.deliver"}

// copiedTable is a table that a copy of a tenant contains.
type copiedTable struct {
	name       string
	columns    []string
	key        string   // column with the id of the tenant
	references []string // tables that must be copied before
}

// copiedTables returns the tables to copy, derived from the catalog so that a new table cannot be forgotten. Each
// comes after those that it references.
func copiedTables(ctx context.Context, tx pgx.Tx) ([]copiedTable, error) {
	rows, err := tx.Query(ctx, `select c.relname::text, case c.relname when 'tenants' then 'id' else 'tenant_id' end,
			array(select a.attname::text from pg_attribute a
				where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attname),
			array(select f.relname::text from pg_constraint r join pg_class f on f.oid = r.confrelid
				where r.conrelid = c.oid and r.contype = 'f' and r.confrelid <> c.oid)
		from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence <> 'u'
			and (c.relname = 'tenants' or exists (select from pg_attribute a
				where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped))
		order by c.relname`)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t copiedTable, err error) {
		err = row.Scan(&t.name, &t.key, &t.columns, &t.references)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	all = slices.DeleteFunc(all, func(t copiedTable) bool { return notCopied[t.name] != "" })
	return inOrder(all)
}

// inOrder sorts tables so that each comes after those that it references.
func inOrder(tables []copiedTable) (out []copiedTable, err error) {
	waiting := map[string]bool{}
	for _, t := range tables {
		waiting[t.name] = true
	}
	for len(out) < len(tables) {
		n := len(out)
		for _, t := range tables {
			if waiting[t.name] && !slices.ContainsFunc(t.references, func(r string) bool { return waiting[r] }) {
				out = append(out, t)
			}
		}
		for _, t := range out[n:] {
			delete(waiting, t.name)
		}
		if len(out) == n {
			return nil, fault.New(fault.Internal, "the tables %v reference one another", waiting)
		}
	}
	return out, nil
}

// generations are the numbers of one embedding generation in both databases.
type generations struct{ source, target int16 }

// condition selects the rows of a tenant, whose id is validated.
func (t copiedTable) condition(id tenant.ID) string {
	return fmt.Sprintf("%s = '%s'", t.key, id)
}

// stored returns a query of the rows of a tenant.
func (t copiedTable) stored(id tenant.ID) string {
	return t.query(id, func(column string) string { return pgx.Identifier{column}.Sanitize() })
}

// forTarget returns a query of the rows of a tenant as the target stores them. A vector is kept if its generation
// is the one in which the target places tenants. Other units have none, and the next sweep of the target embeds them.
func (t copiedTable) forTarget(id tenant.ID, g generations) string {
	if t.name != "units" {
		return t.stored(id)
	}
	vector := fmt.Sprintf("case when generation_id = %d then embedding when next_generation_id = %d then next_embedding end", g.source, g.source)
	values := map[string]string{
		"embedding":          vector,
		"generation_id":      fmt.Sprintf("case when (%s) is not null then %d::smallint end", vector, g.target),
		"indexed_at":         fmt.Sprintf("case when (%s) is not null then indexed_at end", vector),
		"next_embedding":     "null::bytea",
		"next_generation_id": "null::smallint",
	}
	return t.query(id, func(column string) string {
		name := pgx.Identifier{column}.Sanitize()
		return cmp.Or(values[column], name) + " as " + name
	})
}

func (t copiedTable) query(id tenant.ID, value func(column string) string) string {
	var values []string
	for _, c := range t.columns {
		values = append(values, value(c))
	}
	return fmt.Sprintf("select %s from %s where %s", strings.Join(values, ", "), pgx.Identifier{t.name}.Sanitize(), t.condition(id))
}

// into returns the table with its columns, as the target of a copy.
func (t copiedTable) into() string {
	var columns []string
	for _, c := range t.columns {
		columns = append(columns, pgx.Identifier{c}.Sanitize())
	}
	return fmt.Sprintf("%s (%s)", pgx.Identifier{t.name}.Sanitize(), strings.Join(columns, ", "))
}

// checksumOf returns the number of rows of a query and a checksum that does not depend on their order.
func checksumOf(ctx context.Context, tx pgx.Tx, query string) (rows int64, sum string, err error) {
	err = tx.QueryRow(ctx, `select count(*), coalesce(sum(('x' || encode(substring(sha256(convert_to(r::text, 'UTF8')) for 8), 'hex'))::bit(64)::bigint), 0)::text
		from (`+query+`) r`).Scan(&rows, &sum)
	return rows, sum, err
}

// keptTablesOfCopy returns what a copy omits, in order.
func keptTablesOfCopy() []tenant.KeptTable {
	var out []tenant.KeptTable
	for table, reason := range notCopied {
		out = append(out, tenant.KeptTable{Table: table, Reason: reason})
	}
	slices.SortFunc(out, func(a, b tenant.KeptTable) int { return strings.Compare(a.Table, b.Table) })
	return out
}
