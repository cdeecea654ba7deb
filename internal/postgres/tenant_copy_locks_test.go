package postgres_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// A write that is running when the copy begins is in it, even if it only locks the row of the usage.
func TestCopyTenantWaitsForWrites(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"usage changes": "update usage set embedded_tokens = 4711 where tenant_id = $1",
		"usage is locked": `with u as materialized (select tenant_id from usage where tenant_id = $1 for update)
			update conversations c set title = '4711' from u where c.tenant_id = u.tenant_id`,
		"tenant is locked": `with n as materialized (select id from tenants where id = $1 for share)
			update conversations c set title = '4711' from n where c.tenant_id = n.id`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newCopyFixture(t)
			id := f.users[0].Tenant
			write, err := f.owner.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tag, err := write.Exec(t.Context(), sql, string(id)); err != nil || tag.RowsAffected() == 0 {
				t.Fatalf("the write changed %d rows, %v", tag.RowsAffected(), err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := f.copyTenant(context.WithoutCancel(t.Context()))
				done <- err
			}()
			for !waitsForLock(t, f.owner) {
				select {
				case err := <-done:
					t.Fatalf("CopyTenant = %v while a write is running", err)
				default:
				}
			}
			if err := write.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rowsOf(t, f.owner, id), rowsOf(t, f.targetOwner, id)); diff != "" {
				t.Errorf("rows of the tenant (-source +target):\n%s", diff)
			}
		})
	}
}

// While a copy is running, the usage of a day can be exported. The copied tenant still accepts no writes.
func TestUsageExportDuringCopy(t *testing.T) {
	t.Parallel()
	f := newCopyFixture(t)
	id := f.users[0].Tenant
	block, err := f.targetOwner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = block.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := block.Exec(t.Context(), "lock table messages in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := f.copyTenant(context.WithoutCancel(t.Context()))
		done <- err
	}()
	awaitLockWait(t, f.targetOwner)

	ctx, cancel := context.WithTimeout(t.Context(), 4*postgres.LockTimeout)
	defer cancel()
	if err := f.CloseDay(ctx, f.today(t)); err != nil {
		t.Errorf("CloseDay during a copy: %v", err)
	}
	for _, write := range []string{
		"select from usage where tenant_id = $1 for update nowait",
		"with u as (select from usage where tenant_id = $1 for no key update nowait) select from u", // the lock of an update
	} {
		if _, err := f.owner.Exec(t.Context(), write, string(id)); err == nil {
			t.Errorf("%s succeeds during a copy", write)
		}
		if _, err := f.owner.Exec(t.Context(), write, string(f.users[2].Tenant)); err != nil {
			t.Errorf("%s of the other tenant: %v", write, err)
		}
	}
	if err := block.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
