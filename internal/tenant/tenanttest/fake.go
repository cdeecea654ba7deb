package tenanttest

import (
	"cmp"
	"context"
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
	// OnDemand creates tenants that have not outgrown exact scoring. By default, they
	// have, so that each is placed in an index.
	OnDemand bool
	// PurgeFailure is that of every purge.
	PurgeFailure tenant.PurgeFailure

	mu              sync.Mutex
	rows            map[tenant.ID]*row
	hashes          map[tenant.Hash]*token
	sessions        map[tenant.Hash]*session
	cells           map[string]placement.Cell
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
	_ placement.CellStore   = (*Fake)(nil)
)

type row struct {
	spec      tenant.Spec
	uid       tenant.ID // of the resource; differs from the row's key after an adoption
	users     map[string]*user
	placement placement.State
	lost      bool // the partition was lost and not created again yet
	outgrown  bool // has outgrown exact scoring
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
		cells: map[string]placement.Cell{}, partitions: map[placement.Location]bool{}, partitionIDs: map[placement.Location]int64{}, reindexed: map[tenant.ID]int{},
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
			Memories: r.usage.Memories, Conversations: r.usage.Conversations, Record: true, Locations: r.locations(), Failure: f.PurgeFailure,
		}
	}
	return remaining, nil
}
