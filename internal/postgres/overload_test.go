package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
)

// TestAllConnectionsInUse checks that a transaction does not wait for a connection until
// the deadline of its request.
func TestAllConnectionsInUse(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL, MaxConns: 2, Generation: postgrestest.Generation})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 2 { // each holds a connection
		snapshot, err := db.Accounts().Snapshot(t.Context(), b.users[0])
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	begun := time.Now()
	_, err = db.Memories().ListBuckets(ctx, b.users[0])
	wantUnavailable(t, "list buckets", err)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the transaction waited %s for a connection", took)
	}
}
