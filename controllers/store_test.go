package controllers_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// store is a PostgreSQL database of the test, and an index in memory. The methods of this file count calls and can fail.
type store struct {
	*postgres.DB
	index     *tenanttest.Index
	t         *testing.T
	owner     *pgxpool.Pool
	database  postgrestest.Database
	unindexed *postgres.DB // places the tenants in no index; nil if they are placed in one

	// PurgeFailure is that of every purge.
	PurgeFailure tenant.PurgeFailure

	mu sync.Mutex
	// before is called with the name of the method. If it returns an error, the call has no effect.
	before func(method string) error
	// after is called after a successful call. If it returns an error, the call took effect, as when a
	// connection is lost after a commit.
	after     func(method string) error
	calls     map[string]int
	installed int
	specs     map[tenant.ID]tenant.Spec
}

func newStore(t *testing.T) *store {
	t.Helper()
	d := postgrestest.Create(t)
	owner, err := pgxpool.New(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	return &store{
		DB: postgrestest.Open(t, d), index: tenanttest.NewIndex(),
		t: t, owner: owner, database: d,
		calls: map[string]int{}, specs: map[tenant.ID]tenant.Spec{},
	}
}

// all returns the store as every store of the operator.
func (s *store) all() controllers.Stores {
	return controllers.Stores{Tenants: s, Tokens: s, Records: s, Webhooks: s, Partitions: s, Cells: s, CellPinger: s}
}

// call counts a call and makes it, unless it fails.
func (s *store) call(method string, do func() error) error {
	s.mu.Lock()
	s.calls[method]++
	var err error
	if s.before != nil {
		err = s.before(method)
	}
	s.mu.Unlock()
	if err == nil {
		err = do()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.after != nil {
		err = s.after(method)
	}
	return err
}

// fail makes every call of the methods return err without effect, until heal.
func (s *store) fail(err error, methods ...string) { s.failIf(failing(err, methods)) }

// failIf calls before with the method of each call, until heal.
func (s *store) failIf(before func(method string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// failAfter makes every call of the methods return err after it took effect, until heal.
func (s *store) failAfter(err error, methods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = failing(err, methods)
}

func failing(err error, methods []string) func(string) error {
	return func(method string) error {
		if slices.Contains(methods, method) {
			return err
		}
		return nil
	}
}

func (s *store) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = nil, nil
}

// counts returns the number of calls of each method.
func (s *store) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Apply implements tenant.Store.
func (s *store) Apply(ctx context.Context, spec tenant.Spec) (out tenant.Tenant, err error) {
	err = s.call("Apply", func() (err error) {
		if out, err = s.DB.Apply(ctx, spec); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.specs[out.ID] = spec
		}
		return err
	})
	return out, err
}

// Usage implements tenant.Store.
func (s *store) Usage(ctx context.Context, id tenant.ID) (out tenant.Usage, err error) {
	err = s.call("Usage", func() (err error) { out, err = s.DB.Usage(ctx, id); return err })
	return out, err
}

// Retire implements tenant.Store.
func (s *store) Retire(ctx context.Context, id tenant.ID, policy tenant.DeletionPolicy) (out tenant.Remaining, err error) {
	err = s.call("Retire", func() (err error) { out, err = s.DB.Retire(ctx, id, policy); return err })
	if out.Record {
		out.Failure = s.PurgeFailure
	}
	return out, err
}

// EnsurePlacement implements tenant.PlacementStore.
func (s *store) EnsurePlacement(ctx context.Context, id tenant.ID) (out placement.Location, err error) {
	err = s.call("EnsurePlacement", func() (err error) { out, err = s.placements().EnsurePlacement(ctx, id); return err })
	return out, err
}

// ReconcilePlacement implements tenant.PlacementStore.
func (s *store) ReconcilePlacement(ctx context.Context, id tenant.ID) (out placement.State, err error) {
	err = s.call("ReconcilePlacement", func() (err error) { out, err = s.placements().ReconcilePlacement(ctx, id); return err })
	return out, err
}

// SetPartitionID implements tenant.PlacementStore.
func (s *store) SetPartitionID(ctx context.Context, id tenant.ID, at placement.Location, partitionID int64) error {
	return s.call("SetPartitionID", func() error { return s.DB.SetPartitionID(ctx, id, at, partitionID) })
}

// Install implements tenant.TokenStore.
func (s *store) Install(ctx context.Context, id tenant.ID, user string, c tenant.Credential) error {
	return s.call("Install", func() error {
		err := s.DB.Install(ctx, id, user, c)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.installed++
		}
		return err
	})
}

// RevokeOlder implements tenant.TokenStore.
func (s *store) RevokeOlder(ctx context.Context, id tenant.ID, user string, generation int64, overlap time.Duration) error {
	return s.call("RevokeOlder", func() error { return s.DB.RevokeOlder(ctx, id, user, generation, overlap) })
}

// Records implements tenant.RecordStore.
func (s *store) Records(ctx context.Context, of tenant.RecordsOf) (out []tenant.Record, err error) {
	err = s.call("Records", func() (err error) { out, err = s.DB.Records(ctx, of); return err })
	return out, err
}

// DeclareWebhook implements webhook.DeclaredStore.
func (s *store) DeclareWebhook(ctx context.Context, id tenant.ID, spec webhook.Spec, secret string, overlap time.Duration) error {
	return s.call("DeclareWebhook", func() error { return s.DB.DeclareWebhook(ctx, id, spec, secret, overlap) })
}

// Ensure implements placement.Partitions.
func (s *store) Ensure(ctx context.Context, p placement.Placement) (id int64, err error) {
	err = s.call("Ensure", func() (err error) { id, err = s.index.Ensure(ctx, p); return err })
	return id, err
}

// Drop implements placement.Partitions.
func (s *store) Drop(ctx context.Context, at placement.Location) error {
	return s.call("Drop", func() error { return s.index.Drop(ctx, at) })
}

// Ping implements controllers.CellPinger. Every cell is reachable.
func (s *store) Ping(context.Context, string, placement.Connection) error {
	return s.call("Ping", func() error { return nil })
}

// noIndex sets whether tenants are placed in no index.
func (s *store) noIndex(unindexed bool) {
	s.unindexed = nil
	if unindexed {
		s.unindexed = postgrestest.OpenUnindexed(s.t, s.database)
	}
}

func (s *store) placements() tenant.PlacementStore {
	if s.unindexed != nil {
		return s.unindexed
	}
	return s.DB
}

// exec runs a statement as the owner of the database.
func (s *store) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.owner.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](s *store, sql string, args ...any) []T {
	s.t.Helper()
	rows, err := s.owner.Query(s.t.Context(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// spec returns the spec that was applied last; false unless the tenant is active.
func (s *store) spec(id tenant.ID) (tenant.Spec, bool) {
	active := len(query[string](s, "select id::text from tenants where id = $1 and state = 'active'", id)) > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.specs[id], active
}

// scope returns the scope of a user; its User is 0 if there is no such user.
func (s *store) scope(id tenant.ID, name string) tenant.Scope {
	scope := tenant.Scope{Tenant: id}
	for _, user := range query[int64](s, "select id from users where tenant_id = $1 and name = $2", id, name) {
		scope.User = tenant.UserID(user)
	}
	return scope
}

// valid returns the hashes of the user's valid tokens, oldest first.
func (s *store) valid(id tenant.ID, name string) (out []tenant.Hash) {
	for _, h := range query[[]byte](s, `select t.hash from tokens t join users u on u.tenant_id = t.tenant_id and u.id = t.user_id
		where u.tenant_id = $1 and u.name = $2 and (t.expires_at is null or t.expires_at > now()) order by t.generation`, id, name) {
		out = append(out, tenant.Hash(h))
	}
	return out
}

// fill adds memories of 4 bytes, the first with a unit, and active conversations to the first user of the tenant.
func (s *store) fill(id tenant.ID, memories, conversations int) {
	s.t.Helper()
	scope := tenant.Scope{Tenant: id, User: tenant.UserID(query[int64](s, "select min(id) from users where tenant_id = $1", id)[0])}
	if !query[bool](s, "select exists (select from units where tenant_id = $1)", id)[0] {
		m := memory.NewMemory{CreateInput: memory.CreateInput{Text: "unit", Source: "test"}, Units: retrieve.MemoryUnits("unit")}
		if _, err := s.Memories().Create(s.t.Context(), scope, m); err != nil {
			s.t.Fatalf("Create: %v", err)
		}
		memories--
	}
	postgrestest.Fill(s.t, s.owner, scope, memories, conversations)
}

// outgrow marks a tenant as one that has outgrown exact scoring.
func (s *store) outgrow(id tenant.ID) {
	s.exec("update tenants set outgrown_at = now() where id = $1", id)
}

// age moves the time of retirement into the past.
func (s *store) age(id tenant.ID, by time.Duration) {
	s.exec("update tenants set retired_at = retired_at - make_interval(secs => $2) where id = $1", id, by.Seconds())
}

// cell returns a stored cell; false if there is none.
func (s *store) cell(name string) (c placement.Cell, ok bool) {
	err := s.owner.QueryRow(s.t.Context(), "select name, region, cordoned, max_tenants, max_units from cells where name = $1", name).
		Scan(&c.Name, &c.Region, &c.Cordoned, &c.Capacity.Tenants, &c.Capacity.Units)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		s.t.Fatal(err)
	}
	return c, err == nil
}

// saveWebhook sets the state of a webhook, as deliveries do.
func (s *store) saveWebhook(id tenant.ID, w webhook.Webhook) {
	s.exec(`update webhooks set attempts = $3, failing_since = nullif($4, 'epoch'::timestamptz), disabled = $5, message = $6
		where tenant_id = $1 and name = $2`, id, w.Name, w.Attempts, orEpoch(w.FailingSince), w.Disabled, w.Message)
}

func orEpoch(at time.Time) time.Time {
	if at.IsZero() {
		return time.Unix(0, 0)
	}
	return at
}

// embed begins the migration of the tenant to another embedding model.
func (s *store) embed(id tenant.ID, model string) {
	s.exec(`with g as (insert into embedding_generations (name, model, dimensions) values ('next', $2, 384) returning id, name),
			m as (insert into embedding_migrations (target_id, canary_percent, canary_seconds, rate) select id, 0, 0, 0 from g)
		insert into embedding_targets (tenant_id, generation, collection, partition, shared) select $1, name, 'next_1', 'n1', false from g`, id, model)
}

// stopEmbedding undoes embed.
func (s *store) stopEmbedding(id tenant.ID) {
	s.exec("delete from embedding_targets where tenant_id = $1", id)
}

// refills reports whether a job was committed that copies the tenant's units into its partition.
func (s *store) refills(id tenant.ID) bool {
	return query[bool](s, `select exists (select from river_job j join placement_migrations m on j.args ->> 'tenant' = m.tenant_id::text
		and (j.args ->> 'run')::bigint = m.run where j.kind = $1 and m.tenant_id = $2)`, indexing.MigrateArgs{}.Kind(), id)[0]
}

// work runs the jobs that purge tenants, complete migrations, and drop what was migrated. One that fails runs again in the next call.
func (s *store) work() {
	s.t.Helper()
	for range 2 { // a job commits others
		for _, id := range query[int64](s, "select id from river_job where finalized_at is null order by id") {
			if s.workOn(id) == nil {
				s.exec("update river_job set state = 'completed', finalized_at = now() where id = $1", id)
			}
		}
	}
}

func (s *store) workOn(id int64) error {
	var kind string
	var raw []byte
	if err := s.owner.QueryRow(s.t.Context(), "select kind, args from river_job where id = $1", id).Scan(&kind, &raw); err != nil {
		s.t.Fatal(err)
	}
	var purge tenant.PurgeArgs
	var migrate indexing.MigrateArgs
	var drop indexing.DropArgs
	for _, args := range []any{&purge, &migrate, &drop} {
		if err := json.Unmarshal(raw, args); err != nil {
			s.t.Fatalf("job %s: %v", kind, err)
		}
	}
	switch kind {
	case purge.Kind():
		return tenant.Purge(s.t.Context(), s, s, purge.Tenant)
	case migrate.Kind():
		return s.CompleteMigration(s.t.Context(), migrate.Tenant, migrate.Run)
	case drop.Kind():
		return s.Drop(s.t.Context(), drop.Location())
	}
	return nil
}

// version returns a text that changes with every write to the rows of a tenant.
func (s *store) version(id tenant.ID) string {
	s.t.Helper()
	return postgrestest.Version(s.t, s.owner, id)
}

// otherSpec returns a tenant without users that another cluster or operator stored.
func otherSpec(namespace, name string) tenant.Spec {
	spec := tenanttest.NewSpec()
	spec.Namespace, spec.NamespaceUID, spec.Name, spec.Users = namespace, "n", name, nil
	return spec
}

// The collections in which the first tenants are placed.
var (
	ownCollection    = placement.SelectCollection(postgrestest.Generation.Prefix(), false, nil)
	sharedCollection = placement.SelectCollection(postgrestest.Generation.Prefix(), true, nil)
)
