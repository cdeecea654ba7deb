package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// signedIn returns a context in which the user acts with the session.
func (g *grantEnv) signedIn(t *testing.T) context.Context {
	t.Helper()
	return tenant.WithActor(t.Context(), tenant.SessionActor(g.session))
}

// token creates a token whose hash is {n, 33}.
func (g *grantEnv) token(t *testing.T, n byte, change ...func(*tenant.NewUserToken)) tenant.UserToken {
	t.Helper()
	in := tenant.NewUserToken{Name: fmt.Sprint("token ", n), Access: tenant.AccessRead | tenant.AccessTokens, Hash: tenant.Hash{n, 33}}
	for _, f := range change {
		f(&in)
	}
	out, err := g.CreateUserToken(g.signedIn(t), g.scope, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tokenWorks fails unless the token {n, 33} identifies the user, or does not.
func (g *grantEnv) tokenWorks(t *testing.T, n byte, want bool) {
	t.Helper()
	who, err := g.Identify(t.Context(), tenant.Hash{n, 33})
	if want && (err != nil || who.Scope != g.scope || who.UserName != g.name) {
		t.Errorf("token %d: %+v, %v, want the user", n, who, err)
	}
	if !want && !fault.Is(err, fault.Unauthorized) {
		t.Errorf("token %d: %v, want Unauthorized", n, err)
	}
}

func names(list []tenant.UserToken) (out []string) {
	for _, t := range list {
		out = append(out, t.Name)
	}
	return out
}

func TestUserTokens(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	first := g.token(t, 1)
	second := g.token(t, 2, func(in *tenant.NewUserToken) { in.ExpiresAt, in.Access = ends, tenant.AccessRead })
	want := []tenant.UserToken{
		{Name: "token 2", Access: tenant.AccessRead, Fingerprint: tenant.Hash{2, 33}.Fingerprint(), ExpiresAt: ends},
		{Name: "token 1", Access: tenant.AccessRead | tenant.AccessTokens, Fingerprint: tenant.Hash{1, 33}.Fingerprint()},
	}
	list, err := g.UserTokens(t.Context(), g.scope)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(tenant.UserToken{}, "ID", "CreatedAt"), cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	who, err := g.Identify(t.Context(), tenant.Hash{2, 33})
	if err != nil {
		t.Fatal(err)
	}
	if who.Access != tenant.AccessRead {
		t.Errorf("access = %v, want that of the token", who.Access.Names())
	}
	if who.ExpiresAt.IsZero() || who.ExpiresAt.After(ends.Add(time.Second)) {
		t.Errorf("the identity expires at %v, want %v", who.ExpiresAt, ends)
	}
	for _, other := range g.users[1:] { // of the same tenant and of another
		if got, err := g.UserTokens(t.Context(), other); err != nil || len(got) > 0 {
			t.Errorf("another user has %v, %v, want none", names(got), err)
		}
		if err := g.RevokeUserToken(t.Context(), other, first.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("another user revokes: %v, want NotFound", err)
		}
	}
	g.tokenWorks(t, 1, true)
	if err := g.RevokeUserToken(g.signedIn(t), g.scope, first.ID); err != nil {
		t.Fatal(err)
	}
	g.tokenWorks(t, 1, false)
	g.tokenWorks(t, 2, true)
	for _, id := range []string{first.ID, "", "x", second.ID + "0"} {
		if err := g.RevokeUserToken(g.signedIn(t), g.scope, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("revoke %q: %v, want NotFound", id, err)
		}
	}
	// The names of revoked tokens stay known, to the user only.
	known := map[string]string{first.Fingerprint: "token 1", tenant.Hash{2, 33}.Fingerprint(): "token 2"}
	for i, scope := range append([]tenant.Scope{g.scope}, g.users[1:]...) {
		got, err := g.UserTokenNames(t.Context(), scope)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			known = map[string]string{}
		}
		if diff := cmp.Diff(known, got); diff != "" {
			t.Errorf("names of the tokens of user %d (-want +got):\n%s", i, diff)
		}
	}
}

// A token ends no later than the credential that creates it, and none is created with one
// that has ended.
func TestUserTokenOfAnotherCredential(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	ends := time.Now().Add(time.Hour)
	creator := g.token(t, 1, func(in *tenant.NewUserToken) { in.ExpiresAt = ends })
	by := tenant.WithActor(t.Context(), tenant.TokenActor(tenant.Hash{1, 33}))
	for n, asked := range map[byte]time.Time{2: {}, 3: ends.Add(time.Hour), 4: ends.Add(-time.Minute)} {
		got, err := g.CreateUserToken(by, g.scope, tenant.NewUserToken{Name: fmt.Sprint(n), Access: tenant.AccessRead, Hash: tenant.Hash{n, 33}, ExpiresAt: asked})
		if err != nil {
			t.Fatal(err)
		}
		if got.ExpiresAt.IsZero() || got.ExpiresAt.After(ends) || n == 4 && !got.ExpiresAt.Before(ends) {
			t.Errorf("a token that shall end at %v ends at %v, the creator at %v", asked, got.ExpiresAt, ends)
		}
	}
	if err := g.RevokeUserToken(by, g.scope, creator.ID); err != nil {
		t.Fatal(err)
	}
	if err := g.EndSession(t.Context(), g.session); err != nil {
		t.Fatal(err)
	}
	for name, ctx := range map[string]context.Context{"revoked token": by, "ended session": g.signedIn(t), "no credential": t.Context()} {
		_, err := g.CreateUserToken(ctx, g.scope, tenant.NewUserToken{Name: "late", Access: tenant.AccessRead, Hash: tenant.Hash{9, 33}})
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("create with a %s: %v, want Unauthorized", name, err)
		}
	}
	main := tenant.WithActor(t.Context(), tenant.TokenActor(tenant.Hash{99, 1}))
	if got, err := g.CreateUserToken(main, g.scope, tenant.NewUserToken{Name: "m", Access: tenant.AccessRead, Hash: tenant.Hash{10, 33}}); err != nil || !got.ExpiresAt.IsZero() {
		t.Errorf("create with the administrator's token: %+v, %v", got, err)
	}
}

// Created tokens end as connected apps do, except with their own revocation.
func TestUserTokensEndWithAccess(t *testing.T) {
	t.Parallel()
	tests := endings((*grantEnv).tokenWorks)
	maps.Copy(tests, map[string]ending{
		"tenant retired": {func(t *testing.T, g *grantEnv) {
			if _, err := g.Retire(t.Context(), g.specs[0].ID, tenant.Retain); err != nil {
				t.Error(err)
			}
		}, false},
		"user erased": {func(t *testing.T, g *grantEnv) {
			if err := g.EraseUser(t.Context(), g.scope); err != nil {
				t.Error(err)
			}
			if n := g.count(t, "select count(*) from user_tokens"); n != 0 {
				t.Errorf("%d tokens are left", n)
			}
		}, false},
	})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrant(t)
			g.token(t, 1)
			tc.end(t, g)
			g.tokenWorks(t, 1, tc.valid)
			if list, err := g.UserTokens(t.Context(), g.scope); err != nil || (len(list) == 1) != tc.valid {
				t.Errorf("tokens: %v, %v", names(list), err)
			}
		})
	}
}

// Concurrent requests neither exceed the limit nor use a name twice.
func TestUserTokenLimit(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	for n := range tenant.MaxUserTokens - 2 {
		g.token(t, byte(n+1))
	}
	create := func(count int, name func(i int) string) (created int64) {
		var n atomic.Int64
		var wg sync.WaitGroup
		for i := range count {
			wg.Go(func() {
				_, err := g.CreateUserToken(g.signedIn(t), g.scope, tenant.NewUserToken{Name: name(i), Access: tenant.AccessRead, Hash: tenant.Hash{byte(i), 34, byte(len(name(i)))}})
				if err == nil {
					n.Add(1)
				} else if !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Forbidden) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	if n := create(4, func(i int) string { return []string{"Laptop", "laptop"}[i%2] }); n != 1 {
		t.Errorf("%d tokens of one name were created, want 1", n)
	}
	if n := create(4, func(i int) string { return fmt.Sprint("another ", i) }); n != 1 {
		t.Errorf("%d tokens were created, want 1 up to the limit", n)
	}
	exec(t, g.owner, "update user_tokens set expires_at = now() where name = 'token 1'")
	g.token(t, 200, func(in *tenant.NewUserToken) { in.Name = "Token 1" }) // an expired one does not count
}

func TestUserTokenUseIsRecordedOnce(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	g.token(t, 1)
	g.token(t, 2)
	written := func(n byte) (xmin string, used bool) {
		hash := tenant.Hash{n, 33}
		err := g.owner.QueryRow(t.Context(), "select xmin::text, last_used_at is not null from user_tokens where hash = $1", hash[:]).Scan(&xmin, &used)
		if err != nil {
			t.Fatal(err)
		}
		return xmin, used
	}
	g.tokenWorks(t, 1, true)
	first, used := written(1)
	for started := time.Now(); !used; first, used = written(1) {
		<-time.After(10 * time.Millisecond)
		if time.Since(started) > patience {
			t.Fatal("the use of a token was not recorded")
		}
	}
	for range 20 {
		g.tokenWorks(t, 1, true)
	}
	if again, _ := written(1); again != first {
		t.Error("two uses within a minute were recorded twice")
	}
	if _, used := written(2); used {
		t.Error("an unused token is recorded as used")
	}
}

// Every replica learns of a revocation.
func TestUserTokenRevocationIsNotified(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	created := g.token(t, 1)
	cache := make(recorder, 100)
	go func() { _ = g.Listen(t.Context(), cache) }()
	cache.want(t, "bypass false")
	if err := g.RevokeUserToken(t.Context(), g.scope, created.ID); err != nil {
		t.Fatal(err)
	}
	cache.want(t, "token "+created.Fingerprint)
}

// Revoked and expired tokens are kept for 30 days.
func TestExpireUserTokens(t *testing.T) {
	t.Parallel()
	g := newGrant(t)
	for n := range byte(5) {
		g.token(t, n)
	}
	exec(t, g.owner, "update user_tokens set expires_at = now() - interval '31 days' where name = 'token 0'")
	exec(t, g.owner, "update user_tokens set expires_at = now() - interval '29 days' where name = 'token 1'")
	exec(t, g.owner, "update user_tokens set expires_at = now() + interval '29 days' where name = 'token 2'")
	exec(t, g.owner, "update user_tokens set password_hash = 'x' where name = 'token 3'")
	for _, u := range []tenant.Scope{g.users[len(g.users)-1], g.scope} { // of another tenant first
		if err := g.ExpireRecords(t.Context(), u.Tenant); err != nil {
			t.Fatal(err)
		}
		want := 5
		if u == g.scope {
			want = 3
		}
		if n := g.count(t, "select count(*) from user_tokens"); n != want {
			t.Errorf("%d tokens are left, want %d", n, want)
		}
	}
}

// A revocation is repeated in a restored database.
func TestUserTokenIsRevokedAgain(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	g := newGrantIn(t, setupIn(t, d, nil))
	attachLedger(t, g.DB)
	revoked := g.token(t, 1)
	g.token(t, 2)
	dump := postgrestest.Dump(t, d)
	if err := g.RevokeUserToken(t.Context(), g.scope, revoked.ID); err != nil {
		t.Fatal(err)
	}
	restored := &grantEnv{testBundle: restore(t, dump, pendingErasures(t, g.DB)), scope: g.scope, name: g.name}
	restored.tokenWorks(t, 1, false)
	restored.tokenWorks(t, 2, true)
}

// Revoked tokens stay revoked if the clock of the database is set back, for example by a failover to a server whose clock
// is behind.
func TestRevokedTokensStayRevokedAfterClockStep(t *testing.T) {
	t.Parallel()
	removed := func(s tenant.Spec) tenant.Spec { s.Users = nil; return s }
	for name, test := range map[string]struct {
		revoke func(t *testing.T, g *grantEnv, created string) error
		tokens int // the revoked ones
	}{
		"created token": {func(t *testing.T, g *grantEnv, created string) error {
			return g.RevokeUserToken(t.Context(), g.scope, created)
		}, 1},
		"replaced token": {func(t *testing.T, g *grantEnv, _ string) error {
			_, err := g.ReplaceToken(t.Context(), g.scope, tenant.Hash{97})
			return err
		}, 1},
		"old generation": {func(t *testing.T, g *grantEnv, _ string) error {
			g.install(t, 2, tenant.Hash{98, 1})
			return g.RevokeOlder(t.Context(), g.scope.Tenant, g.name, 2, 0)
		}, 1},
		"shorter overlap": {func(t *testing.T, g *grantEnv, _ string) error {
			spec := g.specs[0]
			spec.TokenOverlap = time.Hour
			g.apply(t, spec)
			g.install(t, 2, tenant.Hash{98, 1})
			err := g.RevokeOlder(t.Context(), g.scope.Tenant, g.name, 2, spec.TokenOverlap)
			g.apply(t, g.specs[0])
			return err
		}, 1},
		"removed user": {func(t *testing.T, g *grantEnv, _ string) error {
			g.apply(t, removed(g.specs[0]))
			return nil
		}, 2},
		"tenant": {func(t *testing.T, g *grantEnv, _ string) error {
			_, err := g.Revoke(t.Context(), g.scope.Tenant)
			return err
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrant(t)
			if err := test.revoke(t, g, g.token(t, 1).ID); err != nil {
				t.Fatal(err)
			}
			n := g.count(t, fmt.Sprintf(`select count(*) from (select expires_at from tokens where tenant_id = '%[1]s' and user_id = %[2]d
				union all select expires_at from user_tokens where tenant_id = '%[1]s' and user_id = %[2]d) t
				where expires_at < now() - interval '1 hour'`, g.scope.Tenant, g.scope.User))
			if n != test.tokens {
				t.Errorf("%d tokens are revoked, want %d", n, test.tokens)
			}
		})
	}
}
