package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// recorder is a cache that records the calls it receives.
type recorder chan string

func (h recorder) Drop(hash tenant.Hash)   { h <- "token " + hash.Fingerprint() }
func (h recorder) DropTenant(id tenant.ID) { h <- "tenant " + string(id) }
func (h recorder) DropUser(s tenant.Scope) { h <- fmt.Sprint("user ", s.Tenant, " ", s.User) }
func (h recorder) SetBypass(on bool)       { h <- fmt.Sprint("bypass ", on) }
func (h recorder) next(t *testing.T) string {
	t.Helper()
	select {
	case s := <-h:
		return s
	case <-time.After(patience):
		t.Fatalf("no call within %s", patience)
	}
	return ""
}

// want waits for a call and skips others.
func (h recorder) want(t *testing.T, want string) {
	t.Helper()
	for got := h.next(t); got != want; got = h.next(t) {
		t.Logf("received %q before %q", got, want)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	proxy, through := newFlakyConn(t, d)
	// The listening replica is not the writing one.
	b, replica := setupIn(t, d, nil), postgrestest.Open(t, through)
	id, name := b.users[0].Tenant, b.specs[0].Users[0].Name
	hashes := map[int64]tenant.Hash{}
	install := func(generation int64) {
		hashes[generation] = tenant.Hash{byte(generation), 7}
		c := tenant.Credential{Generation: generation, TokenHash: hashes[generation], Issuer: tenant.IssuerOperator}
		if err := b.Install(t.Context(), id, name, c); err != nil {
			t.Fatal(err)
		}
	}
	revoke := func(below int64) {
		if err := b.RevokeOlder(t.Context(), id, name, below, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	cache, ended := make(recorder, 1000), make(chan error, 1)
	go func() { ended <- replica.Listen(ctx, cache) }()
	if got := cache.next(t); got != "bypass true" {
		t.Errorf(`the first call is %q, want "bypass true"`, got)
	}
	cache.want(t, "bypass false")

	install(1)
	install(2)
	revoke(2)
	cache.want(t, "token "+hashes[1].Fingerprint())
	b.specs[0].Suspended = true
	if _, err := b.Apply(t.Context(), b.specs[0]); err != nil {
		t.Fatal(err)
	}
	cache.want(t, "tenant "+string(id))

	proxy.cut()
	cache.want(t, "bypass true")
	install(3)
	revoke(3) // not received: the cache must stay bypassed
	proxy.restore(t)
	cache.want(t, "bypass false")
	install(4)
	revoke(4)
	cache.want(t, "token "+hashes[3].Fingerprint())
	if _, err := b.Retire(t.Context(), b.specs[1].ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	cache.want(t, "tenant "+string(b.specs[1].ID))

	stop()
	cache.want(t, "bypass true")
	if err := <-ended; err != nil {
		t.Errorf("Listen = %v, want nil after its context ended", err)
	}
}
