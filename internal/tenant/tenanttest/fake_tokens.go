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
	ends := time.Now().Add(overlap)
	for _, t := range u.tokens {
		if t.Generation >= generation || t.revoked {
			continue
		}
		if overlap <= 0 {
			t.revoked = true
		} else if t.ends.IsZero() || ends.Before(t.ends) {
			t.ends = ends
		}
		r.version++
	}
	return nil
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
			return tenant.Identity{
				Scope:      tenant.Scope{Tenant: id, User: r.users[t.user].id},
				TenantName: r.spec.Name, UserName: t.user, Suspended: r.spec.Suspended,
				Quota: r.spec.Quota, Placement: r.placement, ExpiresAt: t.ends,
			}, nil
		}
	}
	return tenant.Identity{}, fault.New(fault.Unauthorized, "the token's tenant is gone")
}

// Ensure implements tenant.Partitions.
func (f *Fake) Ensure(_ context.Context, p tenant.Placement) (created bool, err error) {
	defer f.begin("Ensure", &err)()
	if err != nil {
		return false, err
	}
	created = !f.partitions[p]
	f.partitions[p] = true
	return created, nil
}

// Drop implements tenant.Partitions.
func (f *Fake) Drop(_ context.Context, p tenant.Placement) (err error) {
	defer f.begin("Drop", &err)()
	if err != nil {
		return err
	}
	delete(f.partitions, p)
	return nil
}
