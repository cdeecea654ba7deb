package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// CopyConfig configures CopyTenant.
type CopyConfig struct {
	SourceURL string // PostgreSQL URLs of the roles that own the databases
	TargetURL string
	Tenant    string // namespace/name, UID or ID
}

// CopyTenant copies a suspended or retained tenant to another database: from one snapshot of the source, in one
// transaction of the target, which is committed only if the rows of both are equal. The source does not change, except for
// an audit record (docs/adr/0033-database-cells.md).
func CopyTenant(ctx context.Context, c CopyConfig) (report tenant.CopyReport, err error) {
	source, err := connectOwner(ctx, "source", c.SourceURL)
	if err != nil {
		return report, err
	}
	defer func() { _ = source.Close(context.WithoutCancel(ctx)) }()
	target, err := connectOwner(ctx, "target", c.TargetURL)
	if err != nil {
		return report, err
	}
	defer func() { _ = target.Close(context.WithoutCancel(ctx)) }()
	for range attempts {
		if report, err = copyOnce(ctx, source, target, c.Tenant); !lost(err) {
			break
		}
	}
	if err != nil {
		return tenant.CopyReport{}, fmt.Errorf("copy tenant: %w", mapError(err))
	}
	return report, nil
}

// connectOwner connects as the owner of a database with the schema of this binary.
func connectOwner(ctx context.Context, name, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the URL of the %s database is invalid: it must have the form postgres://user:password@host:port/database", name)
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the %s database: %w", name, mapError(err))
	}
	if err := checkOwner(ctx, name, conn); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

func checkOwner(ctx context.Context, name string, conn *pgx.Conn) error {
	version, err := readSchema(ctx, conn)
	if err != nil {
		return err
	}
	if want := SchemaVersion(); version != want {
		return fault.New(fault.Invalid, "the %s database has schema %d, but this binary requires %d in both: migrate it with this version of mnemo", name, version, want)
	}
	var owner bool
	if err := conn.QueryRow(ctx, "select not row_security_active('memories')").Scan(&owner); err != nil {
		return fmt.Errorf("check the role of the %s database: %w", name, mapError(err))
	}
	if !owner {
		return fault.New(fault.Invalid, "the role in the URL of the %s database does not own it: use the role that `mnemo migrate` runs as", name)
	}
	return nil
}

// tenantCopy is a copy in progress.
type tenantCopy struct {
	source, target pgx.Tx
	generations    generations
	report         tenant.CopyReport
}

func copyOnce(ctx context.Context, source, target *pgx.Conn, name string) (tenant.CopyReport, error) {
	if err := awaitWrites(ctx, source, name); err != nil {
		return tenant.CopyReport{}, err
	}
	from, err := beginCopy(ctx, source, pgx.RepeatableRead)
	if err != nil {
		return tenant.CopyReport{}, err
	}
	defer func() { _ = from.Rollback(context.WithoutCancel(ctx)) }()
	to, err := beginCopy(ctx, target, pgx.ReadCommitted)
	if err != nil {
		return tenant.CopyReport{}, err
	}
	defer func() { _ = to.Rollback(context.WithoutCancel(ctx)) }()
	c := tenantCopy{source: from, target: to}
	if err := c.run(ctx, name); err != nil {
		return tenant.CopyReport{}, err
	}
	if err := to.Commit(ctx); err != nil {
		return tenant.CopyReport{}, err
	}
	if err := from.Commit(ctx); err != nil { // the target contains the audit record in any case
		return tenant.CopyReport{}, fmt.Errorf("the tenant was copied, but not the audit record stored in the source: %w", err)
	}
	return c.report, nil
}

// awaitWrites waits for the running writes of the tenant before the snapshot. A snapshot that exists already would not contain
// those that lock the tenant or its usage without changing the row.
func awaitWrites(ctx context.Context, source *pgx.Conn, name string) error {
	tx, err := beginCopy(ctx, source, pgx.ReadCommitted)
	if err != nil {
		return err
	}
	c := tenantCopy{source: tx}
	return errors.Join(c.lockTenant(ctx, name), tx.Rollback(context.WithoutCancel(ctx)))
}

// beginCopy begins a transaction in which values have the same text in both databases, and triggers do
// not derive rows.
func beginCopy(ctx context.Context, conn *pgx.Conn, level pgx.TxIsoLevel) (pgx.Tx, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `set local timezone = 'UTC'; set local datestyle = 'ISO'; set local intervalstyle = 'postgres';
		set local bytea_output = 'hex'; set local extra_float_digits = 1; set local statement_timeout = 0;
		set local idle_in_transaction_session_timeout = 0; set local mnemo.copying = 'on'`)
	if err != nil {
		return nil, errors.Join(err, tx.Rollback(ctx))
	}
	return tx, nil
}

func (c *tenantCopy) run(ctx context.Context, name string) error {
	if err := c.checkCells(ctx); err != nil {
		return err
	}
	if err := c.lockTenant(ctx, name); err != nil {
		return err
	}
	tables, err := copiedTables(ctx, c.source)
	if err != nil {
		return err
	}
	if err := c.checkTarget(ctx, tables); err != nil {
		return err
	}
	if err := c.mapGeneration(ctx); err != nil {
		return err
	}
	// The snapshot contains the record, so that the chain in the target does, too.
	id := string(c.report.Tenant)
	if err := db.New(c.source).AppendAudit(ctx, auditRecord(ctx, id, 0, audit.TenantCopy, id)); err != nil {
		return err
	}
	if err := c.copyClients(ctx); err != nil {
		return err
	}
	for _, t := range tables {
		if err := c.copyTable(ctx, t); err != nil {
			return fmt.Errorf("copy %s: %w", t.name, err)
		}
	}
	// Afterwards, because a trigger of a table may change another one.
	for _, t := range tables {
		if err := c.verify(ctx, t); err != nil {
			return err
		}
	}
	if err := c.countVectors(ctx); err != nil {
		return err
	}
	c.report.NotCopied = keptTablesOfCopy()
	return c.copyJobs(ctx)
}

// checkCells rejects databases with the same number: the ids of both could be equal.
func (c *tenantCopy) checkCells(ctx context.Context) (err error) {
	if c.report.SourceCell, err = readDatabaseCell(ctx, c.source); err != nil {
		return err
	}
	if c.report.TargetCell, err = readDatabaseCell(ctx, c.target); err != nil {
		return err
	}
	if c.report.SourceCell == c.report.TargetCell {
		return fault.New(fault.Conflict, "both databases have the cell %d, so their ids can be equal: copy to a database with another cell (mnemo migrate --database-cell)",
			int64(c.report.SourceCell))
	}
	return nil
}

// lockTenant finds the tenant and waits for its running writes. If one has changed the tenant or its usage since the snapshot, the
// copy begins again. Writers of the usage wait until the copy ends; CloseDay, which locks the usage of all tenants, does not.
func (c *tenantCopy) lockTenant(ctx context.Context, name string) error {
	rows, err := c.source.Query(ctx, `select id::text, namespace || '/' || name, state, suspended from tenants
		where id::text = $1 or resource::text = $1 or namespace || '/' || name = $1 for no key update`, name)
	if err != nil {
		return err
	}
	var (
		id, path, state string
		suspended       bool
		found           int
	)
	if _, err := pgx.ForEachRow(rows, []any{&id, &path, &state, &suspended}, func() error { found++; return nil }); err != nil {
		return err
	}
	switch {
	case found == 0:
		return fault.New(fault.NotFound, "tenant %s not found; list tenants with `mnemo tenants list`", name)
	case found > 1:
		return fault.New(fault.Conflict, "%d tenants are named %s; give the ID of one of them, as listed by `mnemo tenants list`", found, name)
	case state == string(tenant.Purging):
		return fault.New(fault.Conflict, "tenant %s is being purged", path)
	case state == string(tenant.Active) && !suspended:
		return fault.New(fault.Conflict, "tenant %s accepts writes, which a copy would miss: set spec.suspended of its Tenant to true, and wait until its condition Suspended is True", path)
	}
	c.report.Tenant, c.report.Name = tenant.ID(id), path
	_, err = c.source.Exec(ctx, "select from usage where tenant_id = $1 for share", id)
	return err
}

// checkTarget rejects a target that contains the tenant, one of its name, or rows from an earlier stay.
func (c *tenantCopy) checkTarget(ctx context.Context, tables []copiedTable) error {
	var resource, cluster, namespace, name string
	err := c.source.QueryRow(ctx, "select resource::text, cluster, namespace, name from tenants where id = $1", string(c.report.Tenant)).
		Scan(&resource, &cluster, &namespace, &name)
	if err != nil {
		return err
	}
	var exists bool
	err = c.target.QueryRow(ctx, `select exists (select from tenants where id = $1 or resource = $2::uuid
			or (cluster, namespace, name) = ($3, $4, $5))`, string(c.report.Tenant), resource, cluster, namespace, name).Scan(&exists)
	if err != nil {
		return err
	}
	if exists {
		return fault.New(fault.Conflict, "the target database already contains tenant %s, or another one of its name", c.report.Name)
	}
	for _, t := range tables {
		err := c.target.QueryRow(ctx, fmt.Sprintf("select exists (select from %s where %s)", pgx.Identifier{t.name}.Sanitize(), t.condition(c.report.Tenant))).Scan(&exists)
		if err != nil {
			return err
		}
		if exists {
			return fault.New(fault.Conflict, "the target database contained tenant %s before: rows in %s remain", c.report.Name, t.name)
		}
	}
	return nil
}

// mapGeneration finds the generation of new tenants of the target in the source.
func (c *tenantCopy) mapGeneration(ctx context.Context) error {
	var (
		model, revision, settings *string
		dimensions                int32
	)
	err := c.target.QueryRow(ctx, "select id, model, revision, settings, dimensions from embedding_generations where active").
		Scan(&c.generations.target, &model, &revision, &settings, &dimensions)
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.Conflict, "the target database has no embedding model yet: start `mnemo serve` on it first")
	}
	if err != nil {
		return err
	}
	err = c.source.QueryRow(ctx, `select id from embedding_generations
		where model = $1 and revision = $2 and settings = $3 and dimensions = $4`, model, revision, settings, dimensions).Scan(&c.generations.source)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // there is no generation 0
	}
	return err
}

// copyClients copies the OAuth clients that the tenant's users granted access. They belong to no tenant.
func (c *tenantCopy) copyClients(ctx context.Context) error {
	var clients []byte
	err := c.source.QueryRow(ctx, `select coalesce(jsonb_agg(to_jsonb(c)), '[]') from oauth_clients c
		where id in (select client_id from oauth_grants where tenant_id = $1)`, string(c.report.Tenant)).Scan(&clients)
	if err != nil {
		return fmt.Errorf("read OAuth clients: %w", err)
	}
	_, err = c.target.Exec(ctx, `insert into oauth_clients select * from jsonb_populate_recordset(null::oauth_clients, $1) on conflict do nothing`, clients)
	if err != nil {
		return fmt.Errorf("copy OAuth clients: %w", err)
	}
	return nil
}

// copyTable streams the rows of a table.
func (c *tenantCopy) copyTable(ctx context.Context, t copiedTable) error {
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := c.source.Conn().PgConn().CopyTo(ctx, w, "copy ("+t.forTarget(c.report.Tenant, c.generations)+") to stdout")
		_ = w.CloseWithError(err) // always nil
		read <- err
	}()
	_, err := c.target.Conn().PgConn().CopyFrom(ctx, r, "copy "+t.into()+" from stdin")
	_ = r.CloseWithError(err)                                          // always nil; ends the goroutine
	if readErr := <-read; readErr != nil && !errors.Is(readErr, err) { // otherwise the target failed
		err = readErr
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23505" {
		return fault.New(fault.Conflict, "the target database contains a row with the same key (%s)", e.ConstraintName)
	}
	return err
}

// verify compares the rows of a table in both databases.
func (c *tenantCopy) verify(ctx context.Context, t copiedTable) error {
	want, wantSum, err := checksumOf(ctx, c.source, t.forTarget(c.report.Tenant, c.generations))
	if err != nil {
		return fmt.Errorf("check %s in the source: %w", t.name, err)
	}
	got, gotSum, err := checksumOf(ctx, c.target, t.stored(c.report.Tenant))
	if err != nil {
		return fmt.Errorf("check %s in the target: %w", t.name, err)
	}
	if got != want || gotSum != wantSum {
		return fault.New(fault.Internal, "the rows of %s differ: %d with checksum %s in the source, %d with checksum %s in the target; nothing was copied",
			t.name, want, wantSum, got, gotSum)
	}
	c.report.Tables = append(c.report.Tables, tenant.CopiedTable{Table: t.name, Rows: got, Checksum: gotSum})
	return nil
}

func (c *tenantCopy) countVectors(ctx context.Context) error {
	err := c.target.QueryRow(ctx, `select count(*) filter (where embedding is not null), count(*) filter (where embedding is null and active)
		from units where tenant_id = $1`, string(c.report.Tenant)).Scan(&c.report.Vectors, &c.report.VectorsToCompute)
	if err != nil {
		return fmt.Errorf("count vectors: %w", err)
	}
	return nil
}

// copyJobs queues the unfinished jobs of the tenant in the target.
func (c *tenantCopy) copyJobs(ctx context.Context) error {
	var jobs []byte
	err := c.source.QueryRow(ctx, `select coalesce(jsonb_agg(to_jsonb(j)), '[]') from river_job j
		where args ->> 'tenant' = $1 and finalized_at is null and kind <> all($2::text[])`, string(c.report.Tenant), notCopiedJobs).Scan(&jobs)
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	tag, err := c.target.Exec(ctx, `insert into river_job (state, kind, args, queue, priority, max_attempts, scheduled_at, metadata, tags, unique_key, unique_states)
		select case when state = 'scheduled' then state else 'available' end, kind, args, queue, priority, max_attempts, scheduled_at,
			metadata, tags, unique_key, unique_states
		from jsonb_populate_recordset(null::river_job, $1)`, jobs)
	if err != nil {
		return fmt.Errorf("queue jobs: %w", err)
	}
	c.report.Jobs = tag.RowsAffected()
	return nil
}
