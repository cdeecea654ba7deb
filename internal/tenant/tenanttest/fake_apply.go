package tenanttest

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// Apply implements tenant.Store.
func (f *Fake) Apply(_ context.Context, spec tenant.Spec) (got tenant.Tenant, err error) {
	defer f.begin("Apply", &err)()
	if err != nil {
		return tenant.Tenant{}, err
	}
	key, r, err := f.findOrCreate(spec)
	if err != nil {
		return tenant.Tenant{}, err
	}
	f.applyUsers(r, spec)
	for _, u := range r.users {
		u.shorten(spec.TokenOverlap)
	}
	if spec.NamespaceUID == "" {
		spec.NamespaceUID = r.spec.NamespaceUID
	}
	listed := spec
	spec.Users = nil
	spec.OIDC.Domains = slices.Sorted(slices.Values(spec.OIDC.Domains)) // a set
	if !equalSpec(r.spec, spec) {
		r.version++
	}
	r.spec = spec
	got = r.tenant(key)
	got.RefusedUsers = listed.Refused(got.Users)
	got.DomainsTaken = f.applyDomains(key, spec.OIDC)
	return got, nil
}

// applyDomains assigns the free domains of the spec to the tenant and returns
// those that belong to another tenant.
func (f *Fake) applyDomains(key tenant.ID, spec tenant.OIDC) (taken []string) {
	for d, owner := range f.domains {
		if owner == key && (d[0] != spec.Issuer || !slices.Contains(spec.Domains, d[1])) {
			delete(f.domains, d)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(spec.Domains))) {
		d := [2]string{spec.Issuer, name}
		if owner, ok := f.domains[d]; ok && owner != key {
			taken = append(taken, name)
			continue
		}
		f.domains[d] = key
	}
	return taken
}

// findOrCreate returns the row of the spec's resource. If there is none, it adopts
// the retained row of the name or creates one.
func (f *Fake) findOrCreate(spec tenant.Spec) (tenant.ID, *row, error) {
	for id, r := range f.rows {
		if r.uid != spec.ID {
			continue
		}
		if r.purging {
			return "", nil, fault.New(fault.Conflict, "tenant %s is purging", id)
		}
		r.retired, r.retiredAt = false, time.Time{}
		return id, r, nil
	}
	if spec.NamespaceUID == "" {
		return "", nil, tenant.ErrNamespaceUIDRequired
	}
	for id, r := range f.rows {
		if r.spec.Cluster != spec.Cluster || r.spec.Namespace != spec.Namespace || r.spec.Name != spec.Name {
			continue
		}
		if adopted, err := f.adopt(id, r, spec); adopted || err != nil {
			return id, r, err
		}
	}
	r := &row{uid: spec.ID, users: map[string]*user{}, webhooks: map[string]webhook.Webhook{}, outgrown: !f.OnDemand}
	f.rows[spec.ID] = r
	return spec.ID, r, nil
}

// adopt gives the row of the spec's name to the spec's resource. A row without data is
// deleted instead, so that it does not hold the name.
func (f *Fake) adopt(id tenant.ID, r *row, spec tenant.Spec) (adopted bool, err error) {
	switch owned := r.spec.NamespaceUID == spec.NamespaceUID; {
	case r.purging:
		return false, tenant.NameConflict{Reason: tenant.NamePurging, Spec: spec}
	case !r.retired:
		return false, tenant.NameConflict{Reason: tenant.NameInUse, Spec: spec, Owner: r.uid}
	case owned && spec.Adopt:
		r.retired, r.retiredAt, r.uid = false, time.Time{}, spec.ID
		return true, nil
	case !r.hasUnits():
		delete(f.rows, id)
		for _, at := range r.locations() {
			f.drop(at)
		}
		return false, nil
	case !owned:
		return false, tenant.NameConflict{Reason: tenant.AdoptionRefused, Spec: spec}
	default:
		return false, tenant.NameConflict{Reason: tenant.AdoptionRequired, Spec: spec}
	}
}

func equalSpec(a, b tenant.Spec) bool {
	a.Users, b.Users = nil, nil
	return reflect.DeepEqual(a, b)
}

func (f *Fake) applyUsers(r *row, spec tenant.Spec) {
	listed := map[string]bool{}
	free := spec.Quota.Users
	for _, s := range spec.Users {
		listed[s.Name] = true
		if u := r.users[s.Name]; u != nil && u.listed {
			free--
		}
	}
	for _, s := range spec.Users {
		u := r.users[s.Name]
		if u == nil || !u.listed {
			if free--; free < 0 {
				continue
			}
		}
		if u == nil {
			f.users++
			u = &user{id: f.users}
			r.users[s.Name] = u
		}
		if !u.listed || u.email != s.Email {
			u.listed, u.email = true, s.Email
			r.version++
		}
	}
	f.applyApplications(r, spec, listed)
	r.removeOthers(listed, spec.DeletionPolicy)
}

// removeOthers ends the access of users who are not listed, and counts the others.
func (r *row) removeOthers(listed map[string]bool, policy tenant.DeletionPolicy) {
	r.usage.Users = 0
	for name, u := range r.users {
		if u.listed && !listed[name] {
			r.remove(name, policy)
		}
		if _, application := tenant.ApplicationOf(name); u.listed && !application {
			r.usage.Users++
		}
	}
}

// applyApplications creates the holders of the applications' keys and lists them.
func (f *Fake) applyApplications(r *row, spec tenant.Spec, listed map[string]bool) {
	for _, a := range spec.Applications {
		name := tenant.KeyHolder(a.Name)
		listed[name] = true
		if r.users[name] == nil {
			f.users++
			r.users[name] = &user{id: f.users}
		}
		if u := r.users[name]; !u.listed {
			u.listed = true
			r.version++
		}
	}
}

// remove ends a user's access.
func (r *row) remove(name string, policy tenant.DeletionPolicy) {
	u := r.users[name]
	u.listed = false
	u.revoke(u.newest + 1)
	if policy == tenant.Delete {
		delete(r.users, name)
	}
	r.version++
}
