package tenanttest

import (
	"context"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// session is valid while the password of its user is that with which it began.
type session struct {
	scope    tenant.Scope
	password tenant.Hash
}

// SignIn implements tenant.SessionStore, without limits of attempts.
func (f *Fake) SignIn(_ context.Context, s tenant.SignIn) (err error) {
	defer f.begin("SignIn", &err)()
	if err != nil {
		return err
	}
	for id, r := range f.rows {
		u := r.users[s.Name.User]
		if r.retired || !r.named(s.Name) || u == nil || !u.listed || u.password != s.Password {
			continue
		}
		f.sessions[s.Session] = &session{tenant.Scope{Tenant: id, User: u.id}, s.Password}
		return nil
	}
	return fault.New(fault.Unauthorized, "incorrect name or password")
}

// named reports whether a user of the tenant may sign in with the name.
func (r *row) named(n tenant.SignInName) bool {
	return r.spec.Name == n.Tenant && (n.Namespace == "" || n.Namespace == r.spec.Namespace)
}

// Session implements tenant.SessionStore.
func (f *Fake) Session(_ context.Context, h tenant.Hash) (got tenant.Session, err error) {
	defer f.begin("Session", &err)()
	if err != nil {
		return tenant.Session{}, err
	}
	if s := f.sessions[h]; s != nil {
		if r, name, u := f.active(s.scope); u != nil && u.password == s.password {
			return tenant.Session{Namespace: r.spec.Namespace, Identity: tenant.Identity{
				Scope: s.scope, TenantName: r.spec.Name, UserName: name,
			}}, nil
		}
	}
	return tenant.Session{}, tenant.ErrSessionEnded
}

// ReplacePassword implements tenant.AccessStore.
func (f *Fake) ReplacePassword(_ context.Context, scope tenant.Scope, h, password tenant.Hash) (err error) {
	defer f.begin("ReplacePassword", &err)()
	if err != nil {
		return err
	}
	r, _, u := f.active(scope)
	if u == nil || r.spec.Suspended {
		return fault.New(fault.Forbidden, "this user no longer has access")
	}
	s := f.sessions[h]
	if s == nil || s.scope != scope || s.password != u.password {
		return tenant.ErrSessionEnded
	}
	s.password, u.password, u.passwordReplaced = password, password, true
	r.version++
	return nil
}
