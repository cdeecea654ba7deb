package installation

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// ServedTenant is a tenant of a Server, with ample quotas.
type ServedTenant struct {
	// Tenant is its id, and Placement the location of its vectors.
	Tenant    tenant.ID
	Placement placement.Location
	// Tokens are those of the users by name, and Users their ids.
	Tokens map[string]string
	Users  map[string]tenant.UserID
	// Key is that of the application, if it has one.
	Key string
}

// TenantOptions describe a tenant.
type TenantOptions struct {
	Users []string
	// Application adds an application, which may act for up to ten million users.
	Application bool
	// Partition creates the partition of the vectors. Searches do not need it for users whose units are all
	// scored in PostgreSQL.
	Partition bool
}

// application is the name of the application.
const application = "backend"

// AddTenant creates a tenant, as the operator does. It may be called concurrently.
func (s *Server) AddTenant(tb testing.TB, o TenantOptions) ServedTenant {
	tb.Helper()
	spec := tenanttest.NewSpec()
	spec.Quota = tenant.Unlimited()
	spec.Users = nil
	for _, name := range o.Users {
		spec.Users = append(spec.Users, tenant.UserSpec{Name: name})
	}
	if o.Application {
		spec.Applications = []tenant.ApplicationSpec{{Name: application, Scopes: []string{"read", "write"}, RequestsPerMinute: tenant.NoLimit}}
	}
	applied, err := s.DB.Apply(tb.Context(), spec)
	if err != nil {
		tb.Fatal(err)
	}
	t := ServedTenant{Tenant: applied.ID, Tokens: map[string]string{}, Users: map[string]tenant.UserID{}}
	if t.Placement, err = s.DB.EnsurePlacement(tb.Context(), spec.ID); err != nil {
		tb.Fatal(err)
	}
	if o.Partition && t.Placement.Indexed() {
		ensurePartition(tb, s.Index, t.Placement)
	}
	for _, u := range applied.Users {
		t.Tokens[u.Name], t.Users[u.Name] = s.install(tb, spec.ID, u.Name), u.ID
	}
	if o.Application {
		t.Key = s.install(tb, spec.ID, tenant.KeyHolder(application))
	}
	return t
}

// install issues a token.
func (s *Server) install(tb testing.TB, id tenant.ID, user string) string {
	tb.Helper()
	token, err := tenant.NewToken(0, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}
	if err := s.DB.Install(tb.Context(), id, user, credential); err != nil {
		tb.Fatal(err)
	}
	return token
}

// EnsurePartition creates the partition of a placement for vectors of the default
// local model. It is dropped after the test.
func EnsurePartition(tb testing.TB, location placement.Location) {
	tb.Helper()
	at := testkit.Milvus(tb)
	index, err := milvus.Open(tb.Context(), milvus.Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: ModelDimensions})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = index.Close() })
	ensurePartition(tb, index, location)
}

func ensurePartition(tb testing.TB, index *milvus.Index, location placement.Location) {
	tb.Helper()
	Eventually(tb, Patience, func() string {
		if _, err := placement.WaitLoaded(index).Ensure(tb.Context(), placement.Placement{Location: location}); err != nil {
			return err.Error()
		}
		return ""
	})
	tb.Cleanup(func() {
		if err := index.Drop(context.WithoutCancel(tb.Context()), location); err != nil {
			tb.Errorf("drop partition: %v", err)
		}
	})
}
