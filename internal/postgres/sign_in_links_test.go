package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// linkEnv is a user with a password and a sign-in link with the hash {210}.
type linkEnv struct{ *grantEnv }

func newLink(t *testing.T) linkEnv {
	t.Helper()
	e := linkEnv{newGrant(t)}
	if err := e.create(t, time.Minute); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e linkEnv) create(t *testing.T, lifetime time.Duration) error {
	t.Helper()
	return e.CreateSignInLink(t.Context(), tenant.SignInLink{Scope: e.scope, Secret: tenant.Hash{210}, Lifetime: lifetime})
}

func (e linkEnv) use(t *testing.T, session byte) error {
	t.Helper()
	return e.SignInWithLink(t.Context(), tenant.LinkSignIn{Link: tenant.Hash{210}, Address: "192.0.2.9", Session: tenant.Hash{211, session}, Lifetime: time.Hour})
}

// A link signs in its user once, and is no session itself.
func TestSignInLink(t *testing.T) {
	t.Parallel()
	e := newLink(t)
	_, err := e.Session(t.Context(), tenant.Hash{210})
	wantKind(t, "session with the secret of a link", err, fault.Unauthorized)
	if err := e.use(t, 1); err != nil {
		t.Fatal(err)
	}
	who, err := e.Session(t.Context(), tenant.Hash{211, 1})
	if err != nil || who.Scope != e.scope || time.Since(who.AuthenticatedAt) > time.Minute {
		t.Errorf("session = %+v, %v; want one of %+v, authenticated now", who, err, e.scope)
	}
	wantKind(t, "second use", e.use(t, 2), fault.Unauthorized)
	wantKind(t, "a link that never existed", e.SignInWithLink(t.Context(), tenant.LinkSignIn{Link: tenant.Hash{1}, Session: tenant.Hash{2}, Lifetime: time.Hour}), fault.Unauthorized)
}

// Of concurrent uses of a link, one succeeds.
func TestSignInLinkIsUsedOnce(t *testing.T) {
	t.Parallel()
	e := newLink(t)
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() { results[i] = e.use(t, byte(i)) })
	}
	wg.Wait()
	succeeded := 0
	for _, err := range results {
		if err == nil {
			succeeded++
		} else {
			wantKind(t, "concurrent use", err, fault.Unauthorized)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d uses succeeded, want 1", succeeded)
	}
}

// A link ends when it expires, with the password, and with the access of the user or the
// tenant.
func TestSignInLinkEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, linkEnv){
		"expiry": func(t *testing.T, e linkEnv) {
			exec(t, e.owner, "update sessions set expires_at = now() where one_time")
		},
		"new password": func(t *testing.T, e linkEnv) { e.install(t, 2, tenant.Hash{98, 2}) },
		"removed user": func(t *testing.T, e linkEnv) { e.apply(t, func(s *tenant.Spec) { s.Users = s.Users[:1] }) },
		"suspension":   func(t *testing.T, e linkEnv) { e.apply(t, func(s *tenant.Spec) { s.Suspended = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newLink(t)
			end(t, e)
			wantKind(t, "use", e.use(t, 1), fault.Unauthorized)
			if name != "removed user" && name != "suspension" {
				return
			}
			wantKind(t, "new link", e.create(t, time.Minute), fault.Forbidden)
		})
	}
}

func (e linkEnv) apply(t *testing.T, change func(*tenant.Spec)) {
	t.Helper()
	spec := e.specs[0]
	change(&spec)
	if _, err := e.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}
