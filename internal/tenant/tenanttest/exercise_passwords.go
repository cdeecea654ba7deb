package tenanttest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// installPassword installs a token and a password of the generation, and returns the
// password's hash.
func (f *fixture) installPassword(t *testing.T, user string, generation int64) tenant.Hash {
	t.Helper()
	c := credential(generation)
	if err := f.Tokens.Install(t.Context(), f.got.ID, user, c); err != nil {
		t.Fatalf("Install generation %d: %v", generation, err)
	}
	return c.PasswordHash
}

// signIn returns the hash of a new session.
func (f *fixture) signIn(t *testing.T, user string, password tenant.Hash) tenant.Hash {
	t.Helper()
	session := tenant.HashSecret(uuid.NewString())
	err := f.Sessions.SignIn(t.Context(), tenant.SignIn{
		Name:     tenant.SignInName{Namespace: f.got.Namespace, Tenant: f.got.Name, User: user},
		Password: password, Session: session, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatalf("sign in as %s: %v", user, err)
	}
	return session
}

func (f *fixture) wantSession(t *testing.T, session tenant.Hash) {
	t.Helper()
	if _, err := f.Sessions.Session(t.Context(), session); err != nil {
		t.Errorf("Session: %v, want a valid session", err)
	}
}

func (f *fixture) wantNoSession(t *testing.T, session tenant.Hash) {
	t.Helper()
	_, err := f.Sessions.Session(t.Context(), session)
	wantKind(t, err, fault.Unauthorized)
}

func replacesPassword(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first, bobs := f.installPassword(t, "alice", 1), f.installPassword(t, "bob", 1)
	here, elsewhere, bob := f.signIn(t, "alice", first), f.signIn(t, "alice", first), f.signIn(t, "bob", bobs)
	if f.apply(t); f.user(t, "alice").PasswordReplaced {
		t.Error("an installed password is reported as replaced")
	}
	token := f.user(t, "alice").Token.Fingerprint
	mine := tenant.HashSecret("mine")
	if err := b.Access.ReplacePassword(t.Context(), f.scope(t, "alice"), here, mine); err != nil {
		t.Fatalf("ReplacePassword: %v", err)
	}
	f.wantSession(t, here)
	f.wantNoSession(t, elsewhere)
	f.wantSession(t, bob)
	f.wantSession(t, f.signIn(t, "alice", mine))
	f.apply(t)
	if alice := f.user(t, "alice"); !alice.PasswordReplaced || alice.Token.Fingerprint != token {
		t.Errorf("alice is %+v, want a replaced password and token %s", alice, token)
	}
	if f.user(t, "bob").PasswordReplaced {
		t.Error("bob's password is reported as replaced")
	}
	again := tenant.HashSecret("mine again")
	if err := b.Access.ReplacePassword(t.Context(), f.scope(t, "alice"), here, again); err != nil {
		t.Fatalf("ReplacePassword again: %v", err)
	}
	f.wantSession(t, here)

	keeps := credential(2)
	keeps.PasswordHash = tenant.Hash{}
	if err := b.Tokens.Install(t.Context(), f.got.ID, "alice", keeps); err != nil {
		t.Fatalf("Install without a password: %v", err)
	}
	if f.apply(t); !f.user(t, "alice").PasswordReplaced {
		t.Error("after a token was installed without a password, the password is not reported as replaced")
	}
	f.wantSession(t, here)
	third := f.installPassword(t, "alice", 3)
	if f.apply(t); f.user(t, "alice").PasswordReplaced {
		t.Error("a newly installed password is reported as replaced")
	}
	f.wantNoSession(t, here)
	f.signIn(t, "alice", third)
}

// replacesPasswordOnce replaces the password in several sessions at once: the session of
// every other ends before it gets its turn, so the password that a user is shown is valid.
func replacesPasswordOnce(c check) {
	t, b := c.t, c.Backend
	f := applyTenant(t, b)
	first := f.installPassword(t, "alice", 1)
	sessions, passwords := make([]tenant.Hash, 4), make([]tenant.Hash, 4)
	for i := range sessions {
		sessions[i], passwords[i] = f.signIn(t, "alice", first), tenant.HashSecret(uuid.NewString())
	}
	scope := f.scope(t, "alice")
	errs := concurrently(t.Context(), len(sessions), func(ctx context.Context, i int) error {
		return b.Access.ReplacePassword(ctx, scope, sessions[i], passwords[i])
	})
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			f.wantSession(t, sessions[i])
			f.signIn(t, "alice", passwords[i])
			continue
		}
		wantKind(t, err, fault.Unauthorized)
		f.wantNoSession(t, sessions[i])
	}
	if winners != 1 {
		t.Errorf("the password was replaced %d times, want once", winners)
	}
}

func replacePasswordForbidden(c check) {
	t, b := c.t, c.Backend
	f, other := applyTenant(t, b), applyTenant(t, b)
	alice, bob := f.scope(t, "alice"), f.scope(t, "bob")
	session, bobs := f.signIn(t, "alice", f.installPassword(t, "alice", 1)), f.signIn(t, "bob", f.installPassword(t, "bob", 1))
	refused := func(scope tenant.Scope, session tenant.Hash, want fault.Kind) {
		t.Helper()
		wantKind(t, b.Access.ReplacePassword(t.Context(), scope, session, tenant.HashSecret("stranger")), want)
	}
	refused(alice, bobs, fault.Unauthorized)
	refused(alice, tenant.HashSecret("nobody"), fault.Unauthorized)
	refused(tenant.Scope{Tenant: other.got.ID, User: alice.User}, session, fault.Forbidden)
	f.wantSession(t, session)
	f.wantSession(t, bobs)
	f.spec.Users = []tenant.UserSpec{{Name: "bob"}}
	f.apply(t)
	refused(alice, session, fault.Forbidden)
	f.retire(t, tenant.Retain)
	refused(bob, bobs, fault.Forbidden)
}
