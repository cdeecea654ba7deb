package postgres_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// TestSilentServer: where nobody answers, as behind a name that still leads to
// a machine that is gone, it is given up so soon that the next try finds the
// server's new place.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes connections, and nobody reads them
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	address := "postgres://user:password@" + l.Addr().String() + "/mnemo?sslmode=disable"
	for name, ask := range map[string]func(context.Context) error{
		"open": func(ctx context.Context) error {
			_, err := postgres.Open(ctx, postgres.Config{URL: address})
			return err
		},
		"migrate": func(ctx context.Context) error {
			_, err := postgres.Migrate(ctx, postgres.MigrateConfig{OwnerURL: address, AppRole: "app"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
			defer cancel()
			begin := time.Now()
			if err := ask(ctx); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%v, want that the database is away", err)
			}
			if took := time.Since(begin); took > patience {
				t.Errorf("given up after %s", took)
			}
		})
	}
}
