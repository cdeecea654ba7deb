package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/db"
)

func TestReadScopeSeesOnlyItsUser(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	want := map[string]bool{}
	for i, scope := range b.users {
		id := b.remember(t, scope, "a memory", nil)
		if i == 0 {
			want[id] = true
		}
	}
	got := map[string]bool{}
	err := postgres.ReadScope(b.DB, t.Context(), b.users[0], func(tx db.DBTX, _ *db.Queries) error {
		for range 2 { // each statement has the scope
			rows, err := tx.Query(t.Context(), "select id::text from memories")
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			for _, id := range ids {
				got[id] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("memories in the scope: -want +got\n%s", d)
	}
}

func TestReadScopeEndsWithItsStatement(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	read := func(do func(tx db.DBTX) error) error {
		return postgres.ReadScope(b.DB, t.Context(), b.users[0], func(tx db.DBTX, _ *db.Queries) error { return do(tx) })
	}
	err := read(func(tx db.DBTX) error {
		_, err := tx.Exec(t.Context(), "delete from memories")
		return err
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "25006" {
		t.Errorf("a deletion: %v, want read_only_sql_transaction", err)
	}
	var n int
	err = read(func(tx db.DBTX) error { return tx.QueryRow(t.Context(), "select 1 where false").Scan(&n) })
	if !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("no row: %v, want ErrNoRows", err)
	}
	err = read(func(tx db.DBTX) error {
		return tx.QueryRow(t.Context(), "select 1 / (count(*) - count(*)) from buckets").Scan(&n)
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "22012" {
		t.Errorf("a division by zero: %v, want division_by_zero", err)
	}
	// The connection that the statements used has no scope, and can write again.
	var tenant, readOnly string
	err = postgres.InTx(b.DB, t.Context(), func(tx pgx.Tx, _ *db.Queries) error {
		return tx.QueryRow(t.Context(), "select coalesce(current_setting('mnemo.tenant', true), ''), current_setting('transaction_read_only')").Scan(&tenant, &readOnly)
	})
	if err != nil {
		t.Fatal(err)
	}
	if tenant != "" {
		t.Errorf("the scope of tenant %s is left", tenant)
	}
	if readOnly != "off" {
		t.Errorf("transaction_read_only = %s after reads, want off", readOnly)
	}
}

// A generic plan is forced for the statement only.
func TestReadWithGenericPlan(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var modes []string
	err := postgres.ReadScope(b.DB, t.Context(), b.users[0], func(tx db.DBTX, _ *db.Queries) error {
		for _, tx := range []db.DBTX{tx, postgres.WithGenericPlan(tx), tx} {
			var mode string
			if err := tx.QueryRow(t.Context(), "select current_setting('plan_cache_mode')").Scan(&mode); err != nil {
				return err
			}
			modes = append(modes, mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"auto", "force_generic_plan", "auto"}, modes); d != "" {
		t.Errorf("plan_cache_mode: -want +got\n%s", d)
	}
}
