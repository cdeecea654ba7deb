package tenanttest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Backend is the implementation under test: the stores and hooks to prepare and
// inspect their data.
type Backend struct {
	Store  tenant.Store
	Tokens tenant.TokenStore
	// Unindexed is Store configured to place tenants in no index.
	Unindexed tenant.PlacementStore
	Access    tenant.AccessStore
	Cells     placement.CellStore
	Records   tenant.RecordStore
	Webhooks  WebhookStore
	// Sessions are used to sign in and to look up sessions.
	Sessions interface {
		SignIn(ctx context.Context, s tenant.SignIn) error
		Session(ctx context.Context, h tenant.Hash) (tenant.Session, error)
	}
	// Fill adds memories and active conversations to a user.
	Fill func(t *testing.T, scope tenant.Scope, memories, conversations int)
	// SetOutgrown sets whether a tenant has outgrown exact scoring. Initially, it has.
	SetOutgrown func(t *testing.T, id tenant.ID, outgrown bool)
	// Work runs all committed jobs to completion.
	Work func(t *testing.T)
	// Version returns a string that changes with every write to the rows of the
	// tenant, its users and its quota (in PostgreSQL: their xmin).
	Version func(t *testing.T, id tenant.ID) string
}

// check is one test of the suite with its own backend.
type check struct {
	t *testing.T
	Backend
}

// exercises are the tests of the contract.
var exercises = map[string]func(check){
	"apply creates":                 applyCreates,
	"apply twice writes nothing":    applyTwice,
	"apply changes":                 applyChanges,
	"apply applications":            applyApplications,
	"a domain has one tenant":       applyDomains,
	"apply keeps users apart":       applyUsers,
	"a taken name is a conflict":    takenName,
	"unknown tenants are not found": unknown,
	"usage counts":                  usageCounts,
	"placements are stable":         placements,
	"set partition id":              setsPartitionID,
	"a lost partition":              marksLost,
	"a lost shared collection":      lostForSome,
	"migration":                     migrates,
	"shared isolation":              assignsShared,
	"no index":                      leavesIndex,
	"an index on demand":            outgrows,
	"cells":                         placesInCells,
	"a full cell":                   refusesCell,
	"install is monotonic":          installMonotonic,
	"install has one winner":        installConcurrent,
	"revoke older":                  revokeOlder,
	"revoke older with overlap":     revokeOverlap,
	"overlap ends":                  overlapEnds,
	"overlap runs from the install": overlapFromInstall,
	"a shorter overlap ends sooner": overlapShortened,
	"identify":                      identify,
	"a removed user has no token":   removedUser,
	"a removed user with Delete":    removedWithDelete,
	"a user issues a token":         userIssues,
	"a user replaces the token":     userReplaces,
	"replace without access":        replaceForbidden,
	"a user replaces the password":  replacesPassword,
	"a replacement has one winner":  replacesPasswordOnce,
	"no password without access":    replacePasswordForbidden,
	"retire and retain":             retireRetain,
	"adoption":                      adopts,
	"adoption policy":               adoptsByPolicy,
	"a name without data is free":   replacesEmpty,
	"a new tenant has a namespace":  requiresNamespace,
	"retire and delete":             retireDelete,
	"retire an unknown tenant":      retireUnknown,
	"records":                       records,
	"orphaned and applied again":    orphaned,
	"orphaned and purged":           orphanedPurge,
	"reassignment":                  reassigns,
	"revoke all of a tenant":        revokeTenant,
	"declared webhooks":             declaresWebhooks,
	"webhooks end with the Tenant":  endsWebhooks,
}

// Exercise checks that the stores implement the contract of package tenant. open
// returns a new backend on each call.
func Exercise(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for name, test := range exercises {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(check{t, open(t)})
		})
	}
}

// NewSpec returns a tenant in a new namespace with the users alice and bob.
func NewSpec() tenant.Spec {
	id := uuid.NewString()
	return tenant.Spec{
		ID:             tenant.ID(id),
		Cluster:        "cluster-1",
		Namespace:      "ns-" + id,
		NamespaceUID:   "uid-" + id,
		Adopt:          true,
		Name:           "acme",
		DisplayName:    "Acme",
		DeletionPolicy: tenant.Retain,
		Isolation:      tenant.Partition,
		Quota:          newQuota(),
		Users:          []tenant.UserSpec{{Name: "bob"}, {Name: "alice", Email: "alice@acme.test"}},
	}
}

// newQuota returns a quota that differs from the defaults, so that a store that loses a value is noticed.
func newQuota() tenant.Quota {
	q := tenant.DefaultQuota()
	for _, r := range tenant.Resources {
		*r.Limit(&q)--
	}
	q.Memories, q.Conversations, q.Storage, q.Users, q.UserMemories = 100, 10, 1<<20, 5, 50
	return q
}

// fixture is an applied tenant.
type fixture struct {
	Backend
	spec tenant.Spec
	got  tenant.Tenant
}

func applyTenant(t *testing.T, b Backend) *fixture {
	t.Helper()
	f := &fixture{Backend: b, spec: NewSpec()}
	f.apply(t)
	return f
}

func (f *fixture) apply(t *testing.T) {
	t.Helper()
	got, err := f.Store.Apply(t.Context(), f.spec)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	f.got = got
}

func (f *fixture) user(t *testing.T, name string) tenant.User {
	t.Helper()
	for _, u := range f.got.Users {
		if u.Name == name {
			return u
		}
	}
	t.Fatalf("user %s is not among %+v", name, f.got.Users)
	return tenant.User{}
}

func (f *fixture) scope(t *testing.T, name string) tenant.Scope {
	t.Helper()
	return tenant.Scope{Tenant: f.got.ID, User: f.user(t, name).ID}
}

// install installs a token of the generation and returns its hash.
func (f *fixture) install(t *testing.T, user string, generation int64) tenant.Hash {
	t.Helper()
	c := credential(generation)
	if err := f.Tokens.Install(t.Context(), f.got.ID, user, c); err != nil {
		t.Fatalf("Install generation %d: %v", generation, err)
	}
	return c.TokenHash
}

func credential(generation int64) tenant.Credential {
	return tenant.Credential{
		Generation:   generation,
		TokenHash:    tenant.HashSecret(uuid.NewString()),
		PasswordHash: tenant.HashSecret(uuid.NewString()),
		Issuer:       tenant.IssuerOperator,
	}
}

func (f *fixture) wantValid(t *testing.T, h tenant.Hash) tenant.Identity {
	t.Helper()
	got, err := f.Tokens.Identify(t.Context(), h)
	if err != nil {
		t.Fatalf("Identify: %v, want a valid token", err)
	}
	return got
}

func (f *fixture) wantRevoked(t *testing.T, h tenant.Hash) {
	t.Helper()
	_, err := f.Tokens.Identify(t.Context(), h)
	wantKind(t, err, fault.Unauthorized)
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if _, typed := errors.AsType[*fault.Error](err); !typed || fault.KindOf(err) != want {
		t.Fatalf("error is %v, want one of kind %v", err, want)
	}
}

// concurrently runs n calls at the same time and returns their errors.
func concurrently(ctx context.Context, n int, call func(ctx context.Context, i int) error) []error {
	errs, done := make([]error, n), make(chan int)
	for i := range n {
		go func() {
			errs[i] = call(ctx, i)
			done <- i
		}()
	}
	for range n {
		<-done
	}
	return errs
}
