package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// keptTables are the tables with a column tenant_id whose rows outlive an erasure, and why.
var keptTables = map[string]string{
	"erasures":      erasure.KeptForLedger,
	"audit_pending": erasure.KeptForAudit,
	"audit_records": erasure.KeptForAudit,
	"audit_chains":  erasure.KeptForChain,
	"usage_days":    erasure.KeptForBilling,
}

// FindUser returns the user with a name or email address, active or not.
func (d *DB) FindUser(ctx context.Context, id tenant.ID, name string) (tenant.Scope, error) {
	rows, err := db.New(d.pool).FindUsers(ctx, db.FindUsersParams{TenantID: string(id), Name: name})
	switch {
	case err != nil:
		return tenant.Scope{}, fmt.Errorf("find user: %w", mapError(err))
	case len(rows) == 0:
		return tenant.Scope{}, fault.New(fault.NotFound, "tenant %s has no user %s", id, name)
	case len(rows) > 1:
		return tenant.Scope{}, fault.New(fault.Conflict, "%d users have the email address %s; give the name of one of them", len(rows), name)
	}
	return tenant.JobScope(id, tenant.UserID(rows[0])), nil
}

// FindErasedUser returns the user with an id whose erasure began earlier, and may have ended. It returns Conflict if the
// user is not being erased: a name is less easily mistaken.
func (d *DB) FindErasedUser(ctx context.Context, id tenant.ID, user tenant.UserID) (tenant.Scope, error) {
	err := d.inTx(ctx, func(_ pgx.Tx, q *db.Queries) error {
		users, err := q.LockErasableUser(ctx, db.LockErasableUserParams{TenantID: string(id), ID: int64(user)})
		if err == nil && len(users) > 0 {
			err = fault.New(fault.Conflict, "user %d is named %s and is not being erased; give the name", user, users[0].Name)
		}
		return err
	})
	if err != nil {
		return tenant.Scope{}, fmt.Errorf("find user: %w", err)
	}
	return tenant.JobScope(id, user), nil
}

// EraseUser ends the access of a user and deletes all rows.
func (d *DB) EraseUser(ctx context.Context, scope tenant.Scope) error {
	err := d.inTx(ctx, func(tx pgx.Tx, q *db.Queries) error {
		if _, err := q.LockUsage(ctx, string(scope.Tenant)); err != nil { // which counts the applications' users
			return orUnknown(err, scope.Tenant)
		}
		users, err := q.LockErasableUser(ctx, db.LockErasableUserParams{TenantID: string(scope.Tenant), ID: int64(scope.User)})
		if err != nil || len(users) == 0 { // already being purged
			return err
		}
		if err := d.removeUser(ctx, tx, q, string(scope.Tenant), db.LockUsersRow(users[0]), tenant.Delete); err != nil {
			return err
		}
		return q.NotifyOperator(ctx, string(scope.Tenant)) // the user may still be in the Tenant
	})
	if err != nil {
		return fmt.Errorf("erase user: %w", err)
	}
	return d.PurgeUser(ctx, scope)
}

// EraseJobs deletes the jobs of an erased user, or of a tenant (user 0), that are not
// running. There is nothing left for them to do.
func (d *DB) EraseJobs(ctx context.Context, scope tenant.Scope) error {
	user := fmt.Sprint(scope.User)
	if scope.User == 0 {
		user = ""
	}
	_, err := d.pool.Exec(ctx, `delete from river_job where state <> 'running' and args ->> 'tenant' = $1
		and ($2 = '' or args ->> 'user' = $2)`, string(scope.Tenant), user)
	if err != nil {
		return fmt.Errorf("erase jobs: %w", mapError(err))
	}
	return nil
}

// Locations returns where the vectors of a tenant are: its location, and the targets of
// migrations.
func (d *DB) Locations(ctx context.Context, id tenant.ID) ([]placement.Location, error) {
	state, err := readPlacement(ctx, db.New(d.pool), id)
	if err != nil {
		return nil, fmt.Errorf("read placement: %w", mapError(err))
	}
	return state.Locations(), nil
}

// IndexedUnits returns how many units of a user, or of a tenant (user 0), the vector store
// contains according to the database.
func (d *DB) IndexedUnits(ctx context.Context, scope tenant.Scope) (int64, error) {
	var n int64
	err := d.inTenant(ctx, scope.Tenant, func(tx pgx.Tx, _ *db.Queries) error {
		return tx.QueryRow(ctx, `select count(*) from units where tenant_id = $1 and ($2 = 0 or user_id = $2)
			and active and indexed_at is not null`, string(scope.Tenant), int64(scope.User)).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("count indexed units: %w", err)
	}
	return n, nil
}

// CountErasable counts the rows of a user, or of a tenant (user 0), in every table of the
// schema that has any, and in the job queue, as Before and After.
func (d *DB) CountErasable(ctx context.Context, scope tenant.Scope) ([]erasure.Count, error) {
	var out []erasure.Count
	err := d.inTenant(ctx, scope.Tenant, func(tx pgx.Tx, q *db.Queries) error {
		var err error
		if out, err = erasable(ctx, tx, q, scope); err != nil {
			return err
		}
		for i := range out {
			if err := tx.QueryRow(ctx, out[i].Query).Scan(&out[i].Before); err != nil {
				return fmt.Errorf("count %s: %w", out[i].Store, err)
			}
			out[i].After = out[i].Before
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count rows to erase: %w", err)
	}
	return out, nil
}

// Recount runs the queries again and sets After.
func (d *DB) Recount(ctx context.Context, id tenant.ID, counts []erasure.Count) error {
	err := d.inTenant(ctx, id, func(tx pgx.Tx, _ *db.Queries) error {
		for i := range counts {
			if err := tx.QueryRow(ctx, counts[i].Query).Scan(&counts[i].After); err != nil {
				return fmt.Errorf("count %s: %w", counts[i].Store, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count erased rows: %w", err)
	}
	return nil
}

// erasable returns the queries, derived from the catalog so that a new table cannot be
// forgotten. Both ids are validated: a UUID and a number.
func erasable(ctx context.Context, tx pgx.Tx, q *db.Queries, scope tenant.Scope) ([]erasure.Count, error) {
	id, ok := parseID(string(scope.Tenant))
	if !ok {
		return nil, unknownTenant(scope.Tenant)
	}
	tables, err := scopedTables(ctx, tx)
	if err != nil {
		return nil, err
	}
	var out []erasure.Count
	add := func(store, table, condition string) {
		out = append(out, erasure.Count{Store: store, Query: "select count(*) from " + table + " where " + condition})
	}
	for _, t := range tables {
		_, kept := keptTables[t.name]
		name := pgx.Identifier{t.name}.Sanitize()
		switch {
		case kept:
		case scope.User == 0:
			add(t.name, name, fmt.Sprintf("tenant_id = '%s'", id))
		case t.hasUser:
			add(t.name, name, fmt.Sprintf("tenant_id = '%s' and user_id = %d", id, scope.User))
		}
	}
	if scope.User == 0 {
		add("tenants", "tenants", fmt.Sprintf("id = '%s'", id))
		add("jobs", "river_job", fmt.Sprintf("args ->> 'tenant' = '%s'", id))
		return out, nil
	}
	add("users", "users", fmt.Sprintf("tenant_id = '%s' and id = %d", id, scope.User))
	pseudonym, err := q.Pseudonym(ctx, db.PseudonymParams{TenantID: id, ID: int64(scope.User)})
	switch {
	case err == nil:
		add("audit pseudonym", "users", fmt.Sprintf("audit_id = '%s'", pseudonym))
	case !errors.Is(err, pgx.ErrNoRows): // an earlier attempt deleted the row
		return nil, err
	}
	add("jobs", "river_job", fmt.Sprintf("args ->> 'tenant' = '%s' and args ->> 'user' = '%d'", id, scope.User))
	return out, nil
}

// scopedTable is a table with a column tenant_id.
type scopedTable struct {
	name    string
	hasUser bool // and a column user_id
}

func scopedTables(ctx context.Context, tx pgx.Tx) ([]scopedTable, error) {
	rows, err := tx.Query(ctx, `select c.relname::text, exists (
			select from pg_attribute u where u.attrelid = c.oid and u.attname = 'user_id' and not u.attisdropped)
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by c.relname`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t scopedTable, err error) {
		err = row.Scan(&t.name, &t.hasUser)
		return t, err
	})
}

// KeptAfterErasure returns what an erasure deliberately does not erase.
func KeptAfterErasure(scope tenant.Scope) []erasure.Kept {
	var out []erasure.Kept
	for table, reason := range keptTables {
		out = append(out, erasure.Kept{Store: table, Reason: reason})
	}
	out = append(out, erasure.Kept{Store: "sign_in_attempts", Reason: erasure.KeptForSignIns})
	if scope.User != 0 { // those of a tenant are erased
		out = append(out, erasure.Kept{Store: "removed_users", Reason: erasure.KeptForRejection})
	}
	slices.SortFunc(out, func(a, b erasure.Kept) int { return strings.Compare(a.Store, b.Store) })
	return out
}
