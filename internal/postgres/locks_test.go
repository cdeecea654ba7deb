package postgres_test

import (
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
