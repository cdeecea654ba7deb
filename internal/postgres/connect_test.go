package postgres_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres"
)

// A server that does not respond, such as a host that a stale DNS name points
// to, is given up early enough for the next attempt to reach its successor.
func TestUnresponsiveServerTimesOut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, but nothing reads from them
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
				t.Errorf("%v, want kind Unavailable", err)
			}
			if elapsed := time.Since(begin); elapsed > patience {
				t.Errorf("gave up after %s, want at most %s", elapsed, patience)
			}
		})
	}
}
