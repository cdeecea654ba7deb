package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// ownerPool returns a pool of the owner role, which sees every row.
func ownerPool(t *testing.T, d postgrestest.Database) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestStoreConforms(t *testing.T) {
	t.Parallel()
	tenanttest.Exercise(t, func(t *testing.T) tenanttest.Backend {
		d := postgrestest.Create(t)
		store, owner := postgrestest.Open(t, d), ownerPool(t, d)
		return tenanttest.Backend{
			Store: store, Unindexed: postgrestest.OpenUnindexed(t, d), Tokens: store, Cells: store, Access: store, Records: store, Sessions: store, Webhooks: store,
			Fill: func(t *testing.T, scope tenant.Scope, memories, conversations int) {
				postgrestest.Fill(t, owner, scope, memories, conversations)
			},
			SetOutgrown: func(t *testing.T, id tenant.ID, outgrown bool) {
				exec(t, owner, "update tenants set outgrown_at = case when $2 then now() end where id = $1", id, outgrown)
			},
			Work: func(t *testing.T) { workJobs(t, store, owner) },
			Version: func(t *testing.T, id tenant.ID) string {
				return postgrestest.Version(t, owner, id)
			},
		}
	})
}

// droppedAtOnce is an index without data.
type droppedAtOnce struct{}

// Drop implements tenant.Dropper.
func (droppedAtOnce) Drop(context.Context, placement.Location) error { return nil }

// workJobs runs the queued jobs, as internal/jobs would.

func workJobs(t *testing.T, store *postgres.DB, owner *pgxpool.Pool) {
	t.Helper()
	rows, err := owner.Query(t.Context(), "delete from river_job where kind like 'tenant.%' or kind = 'placement.migrate' returning kind, args")
	if err != nil {
		t.Fatal(err)
	}
	type job struct {
		Kind string
		Args []byte
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[job])
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		var args tenant.PurgeUserArgs // a superset of the arguments of all kinds
		if err := json.Unmarshal(j.Args, &args); err != nil {
			t.Fatal(err)
		}
		var err error
		switch j.Kind {
		case tenant.PurgeArgs{}.Kind():
			err = tenant.Purge(t.Context(), store, droppedAtOnce{}, args.Tenant)
		case tenant.FinishDeletionsArgs{}.Kind():
			err = store.FinishDeletions(t.Context(), tenant.Scope(args))
		case tenant.PurgeUserArgs{}.Kind():
			err = store.PurgeUser(t.Context(), tenant.Scope(args))
		case indexing.MigrateArgs{}.Kind(): // with an index that takes all at once
			var fill indexing.MigrateArgs
			if err = json.Unmarshal(j.Args, &fill); err == nil {
				err = store.CompleteMigration(t.Context(), fill.Tenant, fill.Run)
			}
		default:
			err = store.Rebalance(t.Context(), args.Tenant)
		}
		if err != nil {
			t.Errorf("job %s: %v", j.Kind, err)
		}
	}
}

func TestRowLevelSecurityRestrictsTheApplication(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, owner := postgrestest.Open(t, d), ownerPool(t, d)
	var scopes []tenant.Scope
	for range 2 {
		got, err := store.Apply(t.Context(), tenanttest.NewSpec())
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range got.Users {
			scope := tenant.Scope{Tenant: got.ID, User: u.ID}
			postgrestest.Fill(t, owner, scope, 1, 1)
			scopes = append(scopes, scope)
		}
	}
	app, err := pgxpool.New(t.Context(), d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	count := func(tenantID, user string) (memories, conversations int) {
		err := pgx.BeginFunc(t.Context(), app, func(tx pgx.Tx) error {
			if tenantID != "" {
				if _, err := tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)", tenantID, user); err != nil {
					return err
				}
			}
			return tx.QueryRow(t.Context(), "select (select count(*) from memories), (select count(*) from conversations)").Scan(&memories, &conversations)
		})
		if err != nil {
			t.Fatal(err)
		}
		return memories, conversations
	}
	s := scopes[0]
	for name, tc := range map[string]struct {
		tenant, user string
		want         int
	}{
		"no scope":               {"", "", 0},
		"one user":               {string(s.Tenant), fmt.Sprint(s.User), 1},
		"whole tenant":           {string(s.Tenant), "*", 2},
		"tenant without user":    {string(s.Tenant), "", 0},
		"user of another tenant": {string(s.Tenant), fmt.Sprint(scopes[2].User), 0},
		"no scope again":         {"", "", 0},
		"unknown tenant":         {uuid.NewString(), "*", 0},
	} {
		if m, c := count(tc.tenant, tc.user); m != tc.want {
			t.Errorf("%s: m = %v, want %v", name, m, tc.want)
		} else if c != tc.want {
			t.Errorf("%s: c = %v, want %v", name, c, tc.want)
		}
	}
	if _, err := app.Exec(t.Context(), "alter table memories disable row level security"); err == nil {
		t.Error("the application role can disable row-level security")
	}
}

func TestPlacementsFillCollections(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	store, owner := postgrestest.Open(t, d), ownerPool(t, d)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := store.Apply(t.Context(), tenanttest.NewSpec())
			if err == nil {
				_, err = store.EnsurePlacement(t.Context(), got.ID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Fill the first collection.
	for range 248 {
		id := uuid.NewString()
		exec(t, owner, "insert into tenants (id, resource, cluster, namespace, name) values ($1, $1, 'c', $2, 'n')", id, "ns-"+id)
		exec(t, owner, "insert into placements (tenant_id, generation, collection, partition) select $1, generation, collection, $2 from placements limit 1", id, "t"+id)
	}
	got, err := store.Apply(t.Context(), tenanttest.NewSpec())
	if err != nil {
		t.Fatal(err)
	}
	p, err := store.EnsurePlacement(t.Context(), got.ID)
	if err != nil || !strings.HasSuffix(p.Collection, "_2") {
		t.Errorf("placement of the 257th tenant = %+v, %v, want the second collection", p, err)
	}
}

func TestOpenRejectsAnOlderSchema(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	exec(t, ownerPool(t, d), "delete from goose_db_version where version_id = $1", postgres.SchemaVersion())
	_, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "mnemo migrate") {
		t.Errorf("Open = %v, want the command to run", err)
	}
}

// A function-only change has no schema version of its own.
func TestOpenRejectsOlderFunctions(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	exec(t, ownerPool(t, d), "update schema_files set checksum = 'older' where path = 'repeatable/triggers.sql'")
	_, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "mnemo migrate") {
		t.Errorf("Open = %v, want the command to run", err)
	}
}

// A previous release runs on the schema of a newer one, unless a migration has
// raised the oldest compatible version.
func TestOpenOnANewerSchema(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	owner := ownerPool(t, d)
	exec(t, owner, "insert into goose_db_version (version_id, is_applied) values ($1, true), ($2, true)", postgres.SchemaVersion()+1, postgres.SchemaVersion()+2)
	postgrestest.Open(t, d)
	exec(t, owner, "update schema_oldest set version = $1", postgres.SchemaVersion())
	postgrestest.Open(t, d)
	exec(t, owner, "update schema_oldest set version = $1", postgres.SchemaVersion()+1)
	_, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "run a newer mnemo") {
		t.Errorf("Open = %v, want the command to run", err)
	}
}
