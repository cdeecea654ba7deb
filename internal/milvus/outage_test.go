package milvus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

func TestOutageAndRecovery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.upsert(t, b.location, entry(1, b.alice.User, 1))
	gate := testkit.NewGate(t, testkit.Milvus(t).Addr)
	c := config(t, b.prefix)
	c.Address = gate.Addr
	x := open(t, c) // while the server is down
	query := retrieve.Request{Kind: retrieve.Memory, Limit: 1}

	wantOutage := func() {
		t.Helper()
		for name, call := range map[string]func(context.Context) error{
			"Ping": x.Ping,
			"Search": func(ctx context.Context) error {
				_, err := x.Search(ctx, b.alice, b.location, query, axis(1))
				return err
			},
			"Upsert": func(ctx context.Context) error {
				return x.Upsert(ctx, b.tenant, b.location, []indexing.Entry{entry(2, b.alice.User, 1)})
			},
			"Delete": func(ctx context.Context) error {
				return x.Delete(ctx, b.tenant, b.location, []retrieve.UnitID{2})
			},
			"List": func(ctx context.Context) error {
				_, err := x.List(ctx, b.tenant, b.location, 0, 1)
				return err
			},
			"Ensure": func(ctx context.Context) error {
				_, err := x.Ensure(ctx, placement.Placement{Location: b.location})
				return err
			},
			"Drop": func(ctx context.Context) error { return x.Drop(ctx, b.location) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			if err := call(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s without the server = %v, want Unavailable", name, err)
			}
			if took := time.Since(start); took > 900*time.Millisecond {
				t.Errorf("%s failed after %v; it must not wait for its deadline", name, took)
			}
			cancel()
		}
	}
	wantRecovery := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			hits, err := x.Search(ctx, b.alice, b.location, query, axis(1))
			if err == nil && len(hits) == 1 {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("Search after recovery = %v, %v, want one hit", hits, err)
			}
		}
	}
	wantOutage()
	gate.Open(t)
	wantRecovery()
	gate.Close()
	wantOutage()
	gate.Open(t)
	wantRecovery()
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	c := config(t, "")
	c.Password = "wrong"
	err := open(t, c).Ping(t.Context())
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("Ping = %v, want Unavailable with a hint about the credentials", err)
	}
}
