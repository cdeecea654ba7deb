package apiserver

import (
	"context"
	"slices"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fakeUsers are the users of applications. Their ids begin at 1000.
type fakeUsers struct{ *fakeStores }

var _ tenant.ApplicationUserStore = fakeUsers{}

func (f fakeUsers) ActFor(_ context.Context, key tenant.Identity, name string, create bool) (tenant.ActingUser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.acting, name)
	if i < 0 && create {
		i, f.acting = len(f.acting), append(f.acting, name)
	}
	acting := tenant.ActingUser{Scope: tenant.Scope{Tenant: key.Tenant}, Placement: key.Placement, Generation: key.Generation}
	if i >= 0 {
		acting.User = tenant.UserID(1000 + i)
	}
	return acting, f.fails
}

func (f fakeUsers) ApplicationUsers(_ context.Context, _ tenant.Identity, after string, limit int) ([]tenant.ApplicationUser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []tenant.ApplicationUser
	for _, name := range slices.Sorted(slices.Values(f.acting)) {
		if strings.Compare(name, after) > 0 && len(out) < limit {
			out = append(out, tenant.ApplicationUser{Name: name, Memories: 2, Conversations: 1, CreatedAt: noon})
		}
	}
	return out, f.fails
}

func (f fakeUsers) ApplicationUser(_ context.Context, _ tenant.Identity, name string) (tenant.ApplicationUser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.acting, name) {
		return tenant.ApplicationUser{}, fault.New(fault.NotFound, "user not found")
	}
	return tenant.ApplicationUser{Name: name, Memories: 2, Conversations: 1, CreatedAt: noon}, f.fails
}

func (f fakeUsers) EraseApplicationUser(_ context.Context, _ tenant.Identity, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.acting, name)
	if i < 0 {
		return fault.New(fault.NotFound, "user not found")
	}
	f.acting[i] = "" // ids are not assigned twice
	return f.fails
}

func (f fakeUsers) MemoryOwners(_ context.Context, key tenant.Identity, ids []string) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	owners := map[string]string{}
	for i, name := range f.acting {
		u := f.users[tenant.Scope{Tenant: key.Tenant, User: tenant.UserID(1000 + i)}]
		if u == nil || name == "" {
			continue
		}
		for _, m := range u.memories {
			if slices.Contains(ids, m.ID) {
				if owners[m.ID] != "" {
					return nil, tenant.AmbiguousOwner(m.ID)
				}
				owners[m.ID] = name
			}
		}
	}
	return owners, f.fails
}

func (f fakeUsers) AllowedOrigins(context.Context) (origins []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, who := range f.known {
		if who.Application != nil {
			origins = append(origins, who.Application.Origins...)
		}
	}
	return origins, f.fails
}
