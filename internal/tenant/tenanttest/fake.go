package tenanttest

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// Fake implements the stores of package tenant that the operator uses, and
// placement.Partitions, in memory. It is safe for concurrent use.
type Fake struct {
	// Before is called with the method name at the start of each call. If it
	// returns an error, the call returns that error and does nothing. May be nil.
	Before func(method string) error
	// After is called at the end of each successful call. If it returns an error,
	// the call returns that error although it succeeded, like a connection that is
	// lost after a commit. May be nil.
	After func(method string) error

	mu              sync.Mutex
	rows            map[tenant.ID]*row
	hashes          map[tenant.Hash]*token
	sessions        map[tenant.Hash]*session
	partitions      map[placement.Location]bool
	partitionIDs    map[placement.Location]int64 // by idKey
	lastPartitionID int64
	users           tenant.UserID           // last assigned id
	locations       int                     // number of locations assigned
	domains         map[[2]string]tenant.ID // by issuer and domain
	calls           map[string]int
	reindexed       map[tenant.ID]int
	unindexed       bool // tenants are placed in no index
}

var (
	_ tenant.Store          = (*Fake)(nil)
	_ tenant.TokenStore     = (*Fake)(nil)
	_ tenant.AccessStore    = (*Fake)(nil)
	_ tenant.RecordStore    = (*Fake)(nil)
	_ webhook.DeclaredStore = (*Fake)(nil)
	_ placement.Partitions  = (*Fake)(nil)
)

type row struct {
	spec      tenant.Spec
	uid       tenant.ID // of the resource; differs from the row's key after an adoption
	users     map[string]*user
	placement placement.State
	lost      bool // the partition was lost and not created again yet
	usage     tenant.Usage
	webhooks  map[string]webhook.Webhook
	retired   bool
	retiredAt time.Time
	purging   bool
	version   int
}

type user struct {
	id     tenant.UserID
	email  string
	listed bool
	tokens []*token // by generation
	newest int64    // generation

	password         tenant.Hash
	passwordReplaced bool // by the user
}

type token struct {
	tenant.Credential
	row     *row
	user    string
	created time.Time
	ends    time.Time // zero: never
	revoked bool
}

// NewFake returns an empty Fake.
func NewFake() *Fake {
	return &Fake{
		rows: map[tenant.ID]*row{}, hashes: map[tenant.Hash]*token{}, sessions: map[tenant.Hash]*session{}, calls: map[string]int{},
		partitions: map[placement.Location]bool{}, partitionIDs: map[placement.Location]int64{}, reindexed: map[tenant.ID]int{},
		domains: map[[2]string]tenant.ID{},
	}
}

// begin locks, counts the call and calls Before. The caller must defer end.
func (f *Fake) begin(method string, err *error) (end func()) {
	f.mu.Lock()
	f.calls[method]++
	if f.Before != nil {
		*err = f.Before(method)
	}
	return func() {
		if *err == nil && f.After != nil {
			*err = f.After(method)
		}
		f.mu.Unlock()
	}
}

func (f *Fake) row(id tenant.ID) (*row, error) {
	if r := f.rows[id]; r != nil && !r.retired {
		return r, nil
	}
	return nil, fault.New(fault.NotFound, "tenant %s not found", id)
}

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
	r := &row{uid: spec.ID, users: map[string]*user{}, webhooks: map[string]webhook.Webhook{}}
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

func (u *user) revoke(below int64) {
	for _, t := range u.tokens {
		if t.Generation < below {
			t.revoked = true
		}
	}
}

func (r *row) tenant(id tenant.ID) tenant.Tenant {
	got := tenant.Tenant{
		ID: id, Namespace: r.spec.Namespace, Name: r.spec.Name, Suspended: r.spec.Suspended,
		Quota: r.spec.Quota, Placement: r.placement,
	}
	for name, u := range r.users {
		if !u.listed {
			continue
		}
		stored := tenant.User{ID: u.id, Name: name, Email: u.email, PasswordReplaced: u.passwordReplaced}
		if n := len(u.tokens); n > 0 {
			t := u.tokens[n-1]
			stored.Token = &tenant.TokenInfo{Generation: t.Generation, Issuer: t.Issuer, CreatedAt: t.created}
			stored.Unrevoked = slices.ContainsFunc(u.tokens[:n-1], func(t *token) bool { return !t.revoked && t.ends.IsZero() })
			if !t.revoked {
				stored.Token.Fingerprint = t.TokenHash.Fingerprint()
			}
		}
		if _, application := tenant.ApplicationOf(name); application {
			got.Applications = append(got.Applications, stored)
		} else {
			got.Users = append(got.Users, stored)
		}
	}
	byName := func(a, b tenant.User) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(got.Users, byName)
	slices.SortFunc(got.Applications, byName)
	return got
}

// Usage implements tenant.Store.
func (f *Fake) Usage(_ context.Context, id tenant.ID) (got tenant.Usage, err error) {
	defer f.begin("Usage", &err)()
	if err != nil {
		return tenant.Usage{}, err
	}
	r, err := f.row(id)
	if err != nil {
		return tenant.Usage{}, err
	}
	return r.usage, nil
}

// Retire implements tenant.Store.
func (f *Fake) Retire(_ context.Context, id tenant.ID, policy tenant.DeletionPolicy) (remaining tenant.Remaining, err error) {
	defer f.begin("Retire", &err)()
	if err != nil {
		return tenant.Remaining{}, err
	}
	for key, r := range f.rows {
		if r.uid != id {
			continue
		}
		if r.retired = true; r.retiredAt.IsZero() {
			r.retiredAt = time.Now()
		}
		if !r.purging {
			r.spec.DeletionPolicy = policy
		}
		for _, u := range r.users {
			u.revoke(u.newest + 1)
		}
		f.applyDomains(key, tenant.OIDC{})
		r.endDeclaredWebhooks()
		if policy == tenant.Retain {
			return tenant.Remaining{}, nil
		}
		r.purging = true
		remaining = tenant.Remaining{
			Memories: r.usage.Memories, Conversations: r.usage.Conversations, Record: true, Locations: r.locations(),
		}
	}
	return remaining, nil
}
