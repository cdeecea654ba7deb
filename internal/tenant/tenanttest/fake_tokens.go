package tenanttest

import (
	"context"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Install implements tenant.TokenStore.
func (f *Fake) Install(_ context.Context, id tenant.ID, name string, c tenant.Credential) (err error) {
	defer f.begin("Install", &err)()
	if err != nil {
		return err
	}
	r, err := f.row(id)
	if err != nil {
		return err
	}
	u := r.users[name]
	if u == nil || !u.listed {
		return fault.New(fault.NotFound, "tenant %s has no user %s", id, name)
	}
	if c.Generation <= u.newest || f.hashes[c.TokenHash] != nil {
		return fault.New(fault.Conflict, "generation %d is not above %d", c.Generation, u.newest)
	}
	t := &token{Credential: c, row: r, user: name, created: time.Now()}
	u.tokens, u.newest = append(u.tokens, t), c.Generation
	f.hashes[c.TokenHash] = t
	if c.PasswordHash != (tenant.Hash{}) {
		u.password, u.passwordReplaced = c.PasswordHash, false
	}
	r.version++
	return nil
}

// RevokeOlder implements tenant.TokenStore.
func (f *Fake) RevokeOlder(_ context.Context, id tenant.ID, name string, generation int64, overlap time.Duration) (err error) {
	defer f.begin("RevokeOlder", &err)()
	if err != nil {
		return err
	}
	r, err := f.row(id)
	if err != nil {
		return err
	}
	u := r.users[name]
	if u == nil {
		return fault.New(fault.NotFound, "tenant %s has no user %s", id, name)
	}
	if u.revokeAfter(generation, overlap) {
		r.version++
	}
	return nil
}

// revokeAfter expires the tokens below a generation, an overlap after that
// generation was created, and reports whether any expiry changed.
func (u *user) revokeAfter(generation int64, overlap time.Duration) (changed bool) {
	since := time.Now()
	for _, t := range u.tokens {
		if t.Generation == generation {
			since = t.created
		}
	}
	ends := since.Add(overlap)
	for _, t := range u.tokens {
		switch {
		case t.Generation >= generation || t.revoked:
			continue
		case overlap <= 0 || !ends.After(time.Now()):
			t.revoked = true
		case t.ends.IsZero() || ends.Before(t.ends):
			t.ends = ends
		default:
			continue
		}
		changed = true
	}
	return changed
}

// shorten expires old tokens that would stay valid for longer than the overlap
// after the next one was created.
func (u *user) shorten(overlap time.Duration) {
	for i, t := range u.tokens {
		if t.ends.IsZero() || i+1 == len(u.tokens) {
			continue
		}
		if ends := u.tokens[i+1].created.Add(overlap); ends.Before(t.ends) {
			t.ends = ends
		}
	}
}

// ReplaceToken implements tenant.AccessStore.
func (f *Fake) ReplaceToken(_ context.Context, scope tenant.Scope, h tenant.Hash) (info tenant.TokenInfo, err error) {
	defer f.begin("ReplaceToken", &err)()
	if err != nil {
		return tenant.TokenInfo{}, err
	}
	r, name, u := f.active(scope)
	if u == nil || r.spec.Suspended {
		return tenant.TokenInfo{}, fault.New(fault.Forbidden, "this user no longer has access")
	}
	t := &token{
		Credential: tenant.Credential{Generation: u.newest + 1, TokenHash: h, Issuer: tenant.IssuerUser},
		row:        r, user: name, created: time.Now(),
	}
	u.tokens, u.newest = append(u.tokens, t), t.Generation
	u.revoke(t.Generation)
	f.hashes[h] = t
	r.version++
	return t.info(), nil
}

// Token implements tenant.AccessStore.
func (f *Fake) Token(_ context.Context, scope tenant.Scope) (info *tenant.TokenInfo, err error) {
	defer f.begin("Token", &err)()
	if err != nil {
		return nil, err
	}
	_, _, u := f.active(scope)
	if u == nil || len(u.tokens) == 0 {
		return nil, nil
	}
	t := u.tokens[len(u.tokens)-1]
	out := t.info()
	if !t.valid() {
		out.Fingerprint = ""
	}
	return &out, nil
}

// active returns a listed user of a tenant that is not retired.
func (f *Fake) active(scope tenant.Scope) (*row, string, *user) {
	r, err := f.row(scope.Tenant)
	if err != nil {
		return nil, "", nil
	}
	for name, u := range r.users {
		if u.id == scope.User && u.listed {
			return r, name, u
		}
	}
	return nil, "", nil
}

func (t *token) info() tenant.TokenInfo {
	return tenant.TokenInfo{
		Generation: t.Generation, Fingerprint: t.TokenHash.Fingerprint(), Issuer: t.Issuer, CreatedAt: t.created,
	}
}

func (t *token) valid() bool {
	return !t.revoked && (t.ends.IsZero() || time.Now().Before(t.ends))
}

// Identify implements tenant.TokenStore.
func (f *Fake) Identify(_ context.Context, h tenant.Hash) (got tenant.Identity, err error) {
	defer f.begin("Identify", &err)()
	if err != nil {
		return tenant.Identity{}, err
	}
	t := f.hashes[h]
	if t == nil || !t.valid() {
		return tenant.Identity{}, fault.New(fault.Unauthorized, "the token is not valid")
	}
	for id, r := range f.rows {
		if r == t.row {
			who := tenant.Identity{
				Actor: tenant.TokenActor(h), Access: tenant.FullAccess, Scope: tenant.Scope{Tenant: id, User: r.users[t.user].id},
				TenantName: r.spec.Name, UserName: t.user, Suspended: r.spec.Suspended,
				Quota: r.spec.Quota, Placement: r.placement.Current.Location, Generation: 1, ExpiresAt: t.ends,
			}
			r.setApplication(&who, h)
			return who, nil
		}
	}
	return tenant.Identity{}, fault.New(fault.Unauthorized, "the tenant of the token does not exist")
}

// setApplication makes the identity of a key that of its application.
func (r *row) setApplication(who *tenant.Identity, h tenant.Hash) {
	for _, a := range r.spec.Applications {
		if tenant.KeyHolder(a.Name) == who.UserName {
			who.Actor, who.Access = tenant.KeyActor(h, a.Name), tenant.KeyAccess(a.Scopes)
			who.Application = &tenant.Application{ID: who.User, Name: a.Name, Origins: a.Origins, RequestsPerMinute: a.RequestsPerMinute}
		}
	}
}
