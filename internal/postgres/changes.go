package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var _ tenant.ChangeReader = (*ChangeReader)(nil)

// ChangeReader implements tenant.ChangeReader. PostgreSQL stores with each row the
// transaction that wrote it (xmin), so changes are found without a write of their own:
// the rows written by the transactions that had not ended at the previous call.
type ChangeReader struct {
	db     *DB
	cursor string // the oldest transaction that was running at the last call
	server string // identifies the database
	seen   map[changedRow]bool
}

// changedRow is a row as written by a transaction.
type changedRow struct {
	tenant      tenant.ID
	usage       bool
	transaction string
}

// ChangeReader returns a reader whose first call of Poll reports a reset.
func (d *DB) ChangeReader() *ChangeReader {
	return &ChangeReader{db: d, cursor: "3", seen: map[changedRow]bool{}}
}

// changedSince returns one row per change, or one without a tenant. Comparing ages
// takes the wraparound of transaction ids into account. The tables are small (a row
// per tenant), and an index would make each change of the usage more expensive.
const changedSince = `with state as (
	select pg_snapshot_xmin(pg_current_snapshot()) as cursor, concat_ws('/',
		(select system_identifier from pg_control_system()), (select timeline_id from pg_control_checkpoint()),
		(select oid from pg_database where datname = current_database())) as server
)
select s.cursor::text, s.server, coalesce(c.resource::text, ''), coalesce(c.usage, false), coalesce(c.transaction, '')
from state s left join (
	select resource, false as usage, xmin::text as transaction from tenants where age(xmin) <= age($1::text::xid8::xid)
	union all select t.resource, false, p.xmin::text from placements p join tenants t on t.id = p.tenant_id
		where age(p.xmin) <= age($1::text::xid8::xid)
	union all select t.resource, true, u.xmin::text from usage u join tenants t on t.id = u.tenant_id
		where age(u.xmin) <= age($1::text::xid8::xid)
) c on true`

// Poll implements tenant.ChangeReader.
func (r *ChangeReader) Poll(ctx context.Context) (tenant.Changes, error) {
	var cursor, server string
	rows, err := r.db.pool.Query(ctx, changedSince, r.cursor)
	if err != nil {
		return tenant.Changes{}, fmt.Errorf("find changed tenants: %w", mapError(err))
	}
	changed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c changedRow, err error) {
		return c, row.Scan(&cursor, &server, &c.tenant, &c.usage, &c.transaction)
	})
	if err != nil {
		return tenant.Changes{}, fmt.Errorf("find changed tenants: %w", mapError(err))
	}
	reset := server != r.server || before(cursor, r.cursor)
	changes := tenant.Changes{Reset: reset}
	if !reset {
		changes.Tenants, changes.Usage = r.unseen(changed)
	}
	r.cursor, r.server, r.seen = cursor, server, make(map[changedRow]bool, len(changed))
	for _, c := range changed {
		r.seen[c] = true
	}
	return changes, nil
}

// unseen returns the tenants of the rows that the last call did not report. It saw
// the rows of transactions that ended while an older one was running.
func (r *ChangeReader) unseen(changed []changedRow) (tenants, usage []tenant.ID) {
	reported := map[tenant.ID]bool{}
	for _, usageOnly := range []bool{false, true} {
		for _, c := range changed {
			if c.tenant == "" || c.usage != usageOnly || r.seen[c] || reported[c.tenant] {
				continue
			}
			if reported[c.tenant] = true; usageOnly {
				usage = append(usage, c.tenant)
			} else {
				tenants = append(tenants, c.tenant)
			}
		}
	}
	return tenants, usage
}

// before compares two transaction ids (xid8), which never wrap around.
func before(a, b string) bool {
	x, _ := strconv.ParseUint(a, 10, 64)
	y, _ := strconv.ParseUint(b, 10, 64)
	return x < y
}
