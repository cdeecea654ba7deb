package postgres_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/oauth"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// grantEnv is a signed-in user who has granted access to a client.
type grantEnv struct {
	*testBundle
	scope   tenant.Scope
	name    string
	session tenant.Hash
	n       byte
}

// newGrant creates a client and a grant with its first tokens.
func newGrant(t *testing.T) *grantEnv {
	t.Helper()
	return newGrantIn(t, setup(t, nil))
}

func newGrantIn(t *testing.T, b *testBundle) *grantEnv {
	t.Helper()
	g := &grantEnv{testBundle: b, name: "alice", scope: b.users[0], session: tenant.Hash{200}}
	if err := g.CreateClient(t.Context(), oauth.Client{ID: "c", Name: "Claude", RedirectURIs: []string{"https://a/", "https://b/"}}, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	g.install(t, 1, tenant.Hash{98, 1})
	g.signIn(t, tenant.Hash{98, 1})
	g.grant(t, 1)
	if err := g.SpendSecret(t.Context(), tenant.Code, tenant.Hash{1}, accepts, g.next()); err != nil {
		t.Fatal(err)
	}
	g.identifies(t, 1, true)
	return g
}

func (g *grantEnv) install(t *testing.T, generation int64, password tenant.Hash) {
	t.Helper()
	c := tenant.Credential{Generation: generation, TokenHash: tenant.Hash{99, byte(generation)}, PasswordHash: password, Issuer: tenant.IssuerOperator}
	if err := g.Install(t.Context(), g.scope.Tenant, g.name, c); err != nil {
		t.Fatal(err)
	}
}

func (g *grantEnv) signIn(t *testing.T, password tenant.Hash) {
	t.Helper()
	s := g.specs[0]
	err := g.SignIn(t.Context(), tenant.SignIn{Name: tenant.SignInName{Namespace: s.Namespace, Tenant: s.Name, User: g.name},
		Password: password, Session: g.session, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
}

func (g *grantEnv) tryGrant(t *testing.T, code byte) error {
	t.Helper()
	return g.CreateGrant(t.Context(), g.scope, g.session, oauth.Grant{Client: "c", RedirectURI: "https://a/", Challenge: "x"}, tenant.Hash{code}, time.Minute)
}

// grant creates a grant whose code has the hash {code}.
func (g *grantEnv) grant(t *testing.T, code byte) {
	t.Helper()
	if err := g.tryGrant(t, code); err != nil {
		t.Fatal(err)
	}
}

// next returns tokens with the hashes {n, 1} and {n, 2}, n from 1.
func (g *grantEnv) next() oauth.Issued {
	g.n++
	return oauth.Issued{Access: tenant.Hash{g.n, 1}, Refresh: tenant.Hash{g.n, 2}, AccessLife: time.Minute, RefreshLife: time.Hour}
}

func (g *grantEnv) refresh(t *testing.T, n byte, issued oauth.Issued) error {
	t.Helper()
	return g.SpendSecret(t.Context(), tenant.RefreshToken, tenant.Hash{n, 2}, accepts, issued)
}

func accepts(oauth.Grant) error { return nil }

func (g *grantEnv) identifies(t *testing.T, n byte, valid bool) {
	t.Helper()
	who, err := g.IdentifyHolder(t.Context(), tenant.AccessToken, tenant.Hash{n, 1})
	if valid && (err != nil || who.Scope != g.scope || who.UserName != g.name || who.ExpiresAt.IsZero() || who.Quota.RequestsPerMinute == 0) {
		t.Errorf("access token %d: %+v, %v", n, who, err)
	}
	if !valid && !fault.Is(err, fault.Unauthorized) {
		t.Errorf("access token %d is still valid: %+v, %v", n, who, err)
	}
}

func TestCodesAreRedeemedOnce(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	if _, err := g.IdentifyHolder(t.Context(), tenant.AccessToken, tenant.Hash{1, 2}); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a refresh token is accepted as access token: %v", err)
	}
	redeem := func(code byte, check func(oauth.Grant) error, issued oauth.Issued) error {
		return g.SpendSecret(t.Context(), tenant.Code, tenant.Hash{code}, check, issued)
	}
	wantKind(t, "an unknown code", redeem(77, accepts, g.next()), fault.NotFound)
	refuses := errors.New("rejected")
	g.grant(t, 2)
	if err := redeem(2, func(oauth.Grant) error { return refuses }, g.next()); !errors.Is(err, refuses) {
		t.Errorf("rejected: %v", err)
	}
	// A rejected attempt does not consume the code; a second use ends its
	// grant.
	first := g.next()
	if err := redeem(2, func(got oauth.Grant) error {
		if got != (oauth.Grant{Client: "c", RedirectURI: "https://a/", Challenge: "x"}) {
			t.Errorf("the grant is %+v", got)
		}
		return nil
	}, first); err != nil {
		t.Fatal(err)
	}
	g.identifies(t, first.Access[0], true)
	wantKind(t, "a used code", redeem(2, accepts, g.next()), fault.NotFound)
	g.identifies(t, first.Access[0], false)
	g.identifies(t, 1, true) // another grant
	g.grant(t, 3)
	exec(t, g.owner, "update oauth_secrets set expires_at = now() where kind = 'code'")
	wantKind(t, "an expired code", redeem(3, accepts, g.next()), fault.NotFound)
	g.identifies(t, 1, true)
	wantKind(t, "a used code, later", redeem(1, accepts, g.next()), fault.NotFound)
	g.identifies(t, 1, false)
}

func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	second := g.next()
	if err := g.refresh(t, 1, second); err != nil {
		t.Fatal(err)
	}
	g.identifies(t, 1, true)
	g.identifies(t, 2, true)
	wantKind(t, "an access token", g.SpendSecret(t.Context(), tenant.RefreshToken, second.Access, accepts, g.next()), fault.NotFound)
	// Reusing the first refresh token means that it was copied, so the grant
	// ends.
	wantKind(t, "a used refresh token", g.refresh(t, 1, g.next()), fault.NotFound)
	g.identifies(t, 1, false)
	g.identifies(t, 2, false)
	wantKind(t, "the newest refresh token then", g.refresh(t, 2, g.next()), fault.NotFound)
}

// The number of stored secrets is bounded: the access tokens in use, and enough
// used refresh tokens to detect a copy.
func TestSecretsOfAGrantAreBounded(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	for n := byte(1); n < 130; n++ {
		if err := g.refresh(t, n, g.next()); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.count(t, "select count(*) from oauth_secrets"); n != 1+2+101 {
		t.Errorf("%d secrets are stored, want a code, 2 access tokens, 100 used refresh tokens and the newest", n)
	}
	g.identifies(t, 128, false)
	g.identifies(t, 129, true)
	g.identifies(t, 130, true)
	wantKind(t, "a refresh token used long ago", g.refresh(t, 10, g.next()), fault.NotFound)
	g.identifies(t, 130, true)
	wantKind(t, "a recently used refresh token", g.refresh(t, 40, g.next()), fault.NotFound)
	g.identifies(t, 130, false)
}

// However often it is refreshed, the access of an app ends.
func TestGrantsEnd(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	exec(t, g.owner, "update oauth_grants set created_at = now() + interval '30 minutes' - $1::interval", oauth.GrantLife.String())
	if err := g.refresh(t, 1, g.next()); err != nil {
		t.Fatal(err)
	}
	if err := g.refresh(t, 2, g.next()); err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "select count(*) from oauth_secrets where not used and kind = 'refresh' and expires_at > now() + interval '31 minutes'"); n != 0 {
		t.Errorf("%d refresh tokens outlive their grant", n)
	}
}

// Expired secrets are rejected and deleted.
func TestSecretsExpire(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	exec(t, g.owner, "update oauth_secrets set expires_at = now() where kind = 'access'")
	g.identifies(t, 1, false)
	if err := g.refresh(t, 1, g.next()); err != nil {
		t.Fatal(err)
	}
	g.identifies(t, 2, true)
	if n := g.count(t, "select count(*) from oauth_secrets"); n != 4 { // the code, two refresh tokens, an access token
		t.Errorf("%d secrets are stored, want 4", n)
	}
	exec(t, g.owner, "update oauth_secrets set expires_at = now()")
	wantKind(t, "an expired refresh token", g.refresh(t, 2, g.next()), fault.NotFound)
	if got, err := g.ConnectedApps(t.Context(), g.scope); err != nil || len(got) != 0 {
		t.Errorf("listed: %+v, %v", got, err)
	}
	g.grant(t, 2)
	if n := g.count(t, "select count(*) from oauth_grants"); n != 1 {
		t.Errorf("%d grants are stored, want the new one", n)
	}
}

// Of concurrent uses of a refresh token, at most one succeeds.
func TestConcurrentRefreshSucceedsOnce(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	var served atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		issued := oauth.Issued{Access: tenant.Hash{byte(i), 50}, Refresh: tenant.Hash{byte(i), 51}, AccessLife: time.Minute, RefreshLife: time.Hour}
		wg.Go(func() {
			switch err := g.refresh(t, 1, issued); {
			case err == nil:
				served.Add(1)
			case !fault.Is(err, fault.NotFound):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if served.Load() != 1 {
		t.Errorf("%d uses succeeded, want 1", served.Load())
	}
}

func TestRevokeEndsAGrant(t *testing.T) {
	t.Parallel()
	for kind, token := range map[tenant.TokenKind]tenant.Hash{tenant.AccessToken: {1, 1}, tenant.RefreshToken: {1, 2}} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			g := newGrant(t)
			for _, try := range []struct {
				client string
				token  tenant.Hash
				valid  bool
			}{{"another", token, true}, {"c", tenant.Hash{7, 7}, true}, {"c", token, false}, {"c", token, false}} {
				if err := g.RevokeGrant(t.Context(), try.client, kind, try.token); err != nil {
					t.Error(err)
				}
				g.identifies(t, 1, try.valid)
			}
		})
	}
}

// Grants end as sessions do, and stay ended.
func TestGrantsEndAsSessionsDo(t *testing.T) {
	t.Parallel()
	tests := endings((*grantEnv).identifies)
	maps.Copy(tests, map[string]ending{
		"tenant retired and claimed": {func(t *testing.T, g *grantEnv) {
			if _, err := g.Retire(t.Context(), g.specs[0].ID, tenant.Retain); err != nil {
				t.Error(err)
			}
			g.identifies(t, 1, false)
			spec := g.specs[0]
			spec.ID = "0196b2f4-0000-7000-8000-0000000000ff"
			g.apply(t, spec)
		}, false},
		"account purge started": {func(t *testing.T, g *grantEnv) {
			if _, err := g.Accounts().BeginPurge(t.Context(), g.scope); err != nil {
				t.Error(err)
			}
		}, false},
		"disconnected": {func(t *testing.T, g *grantEnv) { g.disconnects(t) }, false},
	})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrant(t)
			tc.end(t, g)
			g.identifies(t, 1, tc.valid)
			if err := g.refresh(t, 1, g.next()); (err == nil) != tc.valid {
				t.Errorf("refresh: %v", err)
			}
			if got, err := g.ConnectedApps(t.Context(), g.scope); err != nil || (len(got) == 1) != tc.valid {
				t.Errorf("connected apps: %+v, %v", got, err)
			}
		})
	}
}

func (g *grantEnv) apply(t *testing.T, spec tenant.Spec) {
	t.Helper()
	if _, err := g.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// disconnects ends the grant, which no other user can do.
func (g *grantEnv) disconnects(t *testing.T) {
	t.Helper()
	got, err := g.ConnectedApps(t.Context(), g.scope)
	if err != nil || len(got) != 1 || got[0].Name != "Claude" || got[0].RedirectURI != "https://a/" || got[0].GivenAt.IsZero() || got[0].RefreshedAt.IsZero() {
		t.Fatalf("connected apps: %+v, %v", got, err)
	}
	for _, other := range g.users[1:] {
		if got, err := g.ConnectedApps(t.Context(), other); err != nil || len(got) != 0 {
			t.Errorf("another user sees %+v, %v", got, err)
		}
		wantKind(t, "another user", g.EndGrant(t.Context(), other, got[0].ID), fault.NotFound)
	}
	for _, id := range []string{"x", "", "\x00", "\xff", "0196b2f4-0000-7000-8000-000000000000"} {
		wantKind(t, "an unknown id", g.EndGrant(t.Context(), g.scope, id), fault.NotFound)
	}
	g.identifies(t, 1, true)
	if err := g.EndGrant(t.Context(), g.scope, got[0].ID); err != nil {
		t.Error(err)
	}
	wantKind(t, "again", g.EndGrant(t.Context(), g.scope, got[0].ID), fault.NotFound)
}

// A grant requires a valid session.
func TestGrantsNeedASession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, g *grantEnv){
		"signed out": func(t *testing.T, g *grantEnv) {
			if err := g.EndSession(t.Context(), g.session); err != nil {
				t.Error(err)
			}
		},
		"new password": func(t *testing.T, g *grantEnv) { g.install(t, 2, tenant.Hash{98, 2}) },
		"expired":      func(t *testing.T, g *grantEnv) { exec(t, g.owner, "update sessions set expires_at = now()") },
		"suspended": func(t *testing.T, g *grantEnv) {
			g.specs[0].Suspended = true
			g.apply(t, g.specs[0])
			if who, err := g.IdentifyHolder(t.Context(), tenant.AccessToken, tenant.Hash{1, 1}); err != nil || !who.Suspended {
				t.Errorf("identified %+v, %v", who, err)
			}
		},
		"session of another user": func(_ *testing.T, g *grantEnv) { g.scope = g.users[1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrant(t)
			end(t, g)
			wantKind(t, name, g.tryGrant(t, 5), fault.Forbidden)
		})
	}
}

// Every replica is notified when grants end.
func TestEndedGrantsAreNotified(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	cache := make(recorder, 1000)
	go func() { _ = g.Listen(t.Context(), cache) }()
	cache.want(t, "bypass false")
	user := fmt.Sprint("user ", g.scope.Tenant, " ", g.scope.User)
	g.disconnects(t)
	cache.want(t, user)
	g.install(t, 2, tenant.Hash{98, 2})
	cache.want(t, user)
	if _, err := g.Accounts().BeginPurge(t.Context(), g.scope); err != nil {
		t.Fatal(err)
	}
	cache.want(t, user)
	g.purge(t, g.scope)
	cache.want(t, user) // the cutoff
	cache.want(t, user) // the end of the purge
	spec := g.specs[0]
	spec.Users = []tenant.UserSpec{{Name: "bob"}}
	g.apply(t, spec)
	cache.want(t, user)
}

// The application role sees only grants of its scope, and returns the holder
// only for the hash of a secret.
func TestGrantsHaveRowLevelSecurity(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	g := newGrantIn(t, setupIn(t, d, nil))
	app, err := pgxpool.New(t.Context(), d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	for name, tc := range map[string]struct {
		scope tenant.Scope
		want  int
	}{"none": {}, "theirs": {g.scope, 4}, "another user": {g.users[1], 0}, "another tenant": {g.users[2], 0}} {
		var n, holders int
		err := pgx.BeginFunc(t.Context(), app, func(tx pgx.Tx) error {
			if tc.scope.Tenant != "" {
				if _, err := tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)", string(tc.scope.Tenant), fmt.Sprint(tc.scope.User)); err != nil {
					return err
				}
			}
			return tx.QueryRow(t.Context(), `select (select count(*) from oauth_grants) + (select count(*) from oauth_secrets),
				(select count(*) from oauth_holder($1, 'access'))`, make([]byte, 32)).Scan(&n, &holders)
		})
		if err != nil {
			t.Fatalf("scope %s: %v", name, err)
		}
		if n != tc.want {
			t.Errorf("scope %s: n = %v, want %v", name, n, tc.want)
		}
		if holders != 0 {
			t.Errorf("scope %s: holders = %d, want 0", name, holders)
		}
	}
}

// Purging a user, tenant or account deletes its grants.
func TestGrantsArePurged(t *testing.T) {
	t.Parallel()
	for name, purge := range map[string]func(t *testing.T, g *grantEnv){
		"user": func(t *testing.T, g *grantEnv) {
			spec := g.specs[0]
			spec.DeletionPolicy, spec.Users = tenant.Delete, []tenant.UserSpec{{Name: "bob"}}
			g.apply(t, spec)
			workJobs(t, g.DB, g.owner)
		},
		"tenant": func(t *testing.T, g *grantEnv) {
			if _, err := g.Retire(t.Context(), g.specs[0].ID, tenant.Delete); err != nil {
				t.Fatal(err)
			}
			if err := tenant.Purge(t.Context(), g.DB, droppedAtOnce{}, g.scope.Tenant); err != nil {
				t.Fatal(err)
			}
		},
		"account": func(t *testing.T, g *grantEnv) { g.purge(t, g.scope) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrant(t)
			purge(t, g)
			if n := g.count(t, "select (select count(*) from oauth_grants) + (select count(*) from oauth_secrets)"); n != 0 {
				t.Errorf("%d rows are left, want none", n)
			}
		})
	}
}

func TestClientsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	c, err := g.Client(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "Claude" {
		t.Errorf(`c.Name = %q, want "Claude"`, c.Name)
	}
	if len(c.RedirectURIs) != 2 {
		t.Errorf("len(c.RedirectURIs) = %d, want 2", len(c.RedirectURIs))
	}
	_, err = g.Client(t.Context(), "x")
	wantKind(t, "an unknown client", err, fault.NotFound)
	register := func(id, address string) error {
		return g.CreateClient(t.Context(), oauth.Client{ID: id, RedirectURIs: []string{"https://a/"}}, address)
	}
	n := 0
	for err = nil; err == nil; n++ {
		err = register(fmt.Sprint("of one ", n), "192.0.2.2")
	}
	if n != 31 || !fault.Is(err, fault.RateLimited) {
		t.Errorf("registration %d from an address: %v", n, err)
	}
	if err := register("other", "192.0.2.3"); err != nil {
		t.Errorf("another address: %v", err)
	}
	// Clients without a grant expire after a month; used ones stay.
	exec(t, g.owner, "update oauth_clients set created_at = now() - interval '31 days'")
	if err := register("new", "192.0.2.3"); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := g.owner.QueryRow(t.Context(), "select array_agg(id order by id) from oauth_clients").Scan(&left); err != nil || !slices.Equal(left, []string{"c", "new"}) {
		t.Errorf("clients left: %v, %v", left, err)
	}
	// New registrations replace the oldest unused clients.
	exec(t, g.owner, "insert into oauth_clients (id, name, redirect_uris, created_at) select 'x' || i, '', '{}', now() - i * interval '1 s' from generate_series(1, 10000) i")
	if err := register("last", "192.0.2.3"); err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "select count(*) from oauth_clients where used_at is null"); n != 10000 {
		t.Errorf("%d unused clients", n)
	}
	for _, id := range []string{"c", "last"} {
		if _, err := g.Client(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	exec(t, g.owner, "update oauth_clients set used_at = now() - interval '91 days' where id = 'c'")
	if err := register("after", "192.0.2.3"); err != nil {
		t.Fatal(err)
	}
	_, err = g.Client(t.Context(), "c")
	wantKind(t, "a client unused for long", err, fault.NotFound)
}

func TestGrantsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	for i := range 60 {
		g.grant(t, byte(100+i))
	}
	if n := g.count(t, "select count(*) from oauth_grants"); n != 50 {
		t.Errorf("%d grants", n)
	}
	g.identifies(t, 1, false) // the oldest
}
