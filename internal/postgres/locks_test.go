package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// Applying a Tenant while its users write fails on neither side and causes no
// deadlock.
func TestApplyWhileUsersWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var done atomic.Bool
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := 0; !done.Load(); i++ {
				if _, err := b.keyed(t, b.users[writer%2], fmt.Sprint(writer, "-", i), "a note"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	spec := b.specs[0]
	for i := range 100 {
		spec.DisplayName, spec.Quota.Memories = fmt.Sprint("name ", i), int64(1e6+i)
		if _, err := b.Apply(t.Context(), spec); err != nil {
			t.Errorf("apply %d: %v", i, err)
		}
	}
	done.Store(true)
	writers.Wait()
	var deadlocks int
	if err := b.owner.QueryRow(t.Context(), "select pg_stat_get_db_deadlocks(oid) from pg_database where datname = current_database()").Scan(&deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks > 0 {
		t.Errorf("%d deadlocks, want none", deadlocks)
	}
}

// A deletion of an account waits for a step of a restore without the lock that all writers of the tenant wait for: the step locks
// its import first, and the usage last.
func TestDeletionOfAccountLocksImportsBeforeUsage(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	run := b.storeImport(t, scope, 0)
	step, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = step.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := step.Exec(t.Context(), "select from imports where id = $1 for update", run.ID); err != nil {
		t.Fatal(err)
	}
	begun := make(chan error, 1)
	go func() {
		_, err := b.Accounts().BeginPurge(t.Context(), scope)
		begun <- err
	}()
	awaitLockWait(t, b.owner)
	if _, err := step.Exec(t.Context(), "select from usage where tenant_id = $1 for update nowait", string(scope.Tenant)); err != nil {
		t.Errorf("the step cannot lock the usage: %v", err)
	}
	if err := step.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-begun; err != nil {
		t.Error(err)
	}
	if n := b.count(t, "select count(*) from imports where id = $1", run.ID); n != 0 {
		t.Error("the import has not ended")
	}
}
