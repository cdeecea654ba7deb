package postgres_test

import (
	"context"
	"testing"
	"time"

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
