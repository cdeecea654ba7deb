package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// The erasure of a user who is still in the Tenant revokes the token in the user's Secret:
// the operator must learn of it, or TokensReady stays True until the next resync.
func TestEraseUserNotifiesOperator(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.Create(t))
	got, err := db.Apply(t.Context(), tenanttest.NewSpec())
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan tenant.ID, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- db.ListenTenants(ctx, func(id tenant.ID) { changed <- id }) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if id := <-changed; id != "" {
		t.Fatalf("connected with %q", id)
	}
	if err := db.EraseUser(t.Context(), tenant.Scope{Tenant: got.ID, User: got.Users[0].ID}); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-changed:
		if id != got.ID {
			t.Errorf("notified of %q, want %q", id, got.ID)
		}
	case <-time.After(5 * time.Second):
		t.Error("the operator was not notified")
	}
}

// A user who is erased while data is stored has none afterwards, nor parts of it, which the end of the test checks.
func TestEraseUserWhileDataIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := func(w, n int) error {
		var err error
		if w%2 == 0 {
			_, err = b.Memories().Create(ctx, scope, newMemory(fmt.Sprintf("%s %d %d", seat, w, n)))
		} else {
			_, err = b.Conversations().Upsert(ctx, scope, newConversation(fmt.Sprintf("%d-%d", w, n), 0, 2))
		}
		return err
	}
	var writers sync.WaitGroup
	started := make(chan struct{}, 8)
	for w := range cap(started) {
		writers.Go(func() {
			var err error
			for n := 0; err == nil; n++ {
				err = store(w, n)
				if n == 0 {
					started <- struct{}{}
				}
			}
			wantKind(t, "data for an erased user", err, fault.NotFound)
		})
	}
	for range cap(started) {
		<-started
	}
	// A purge that does not stop the writers would never finish.
	erasing, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	if err := b.EraseUser(erasing, scope); err != nil {
		t.Error(err)
		cancel()
	}
	writers.Wait()
	for w := range 2 {
		wantKind(t, "data for an erased user", store(w, 0), fault.NotFound)
	}
}
