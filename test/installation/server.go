package installation

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// ModelDimensions is the length of the vectors of the default local model.
const ModelDimensions = 384

// Server is `mnemo serve` with the default local model on a new database, without
// Kubernetes. Its tenant has ample quotas.
type Server struct {
	// URL is the address of the API, Metrics that of /metrics.
	URL, Metrics string
	// PID is the process.
	PID int
	// Tokens are those of the users by name.
	Tokens map[string]string
	// Users are the ids of the users by name.
	Users map[string]tenant.UserID
	// Tenant is the tenant of the users, and Placement the location of its vectors.
	Tenant    tenant.ID
	Placement placement.Location
	// Owner is the database as the role that sees everything, AppURL that of the server's role.
	Owner  *pgxpool.Pool
	AppURL string
}

// ServeLocal starts a Server with the users, and stops it after the test.
func ServeLocal(tb testing.TB, users ...string) *Server {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "mnemo")
	if err := Build(tb.Context(), path); err != nil {
		tb.Fatal(err)
	}
	d := postgrestest.Create(tb)
	s := &Server{Tokens: map[string]string{}, Users: map[string]tenant.UserID{}, AppURL: d.AppURL}
	s.makeTenant(tb, d, users)
	var err error
	if s.Owner, err = pgxpool.New(tb.Context(), d.OwnerURL); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Owner.Close)
	s.run(tb, path, d)
	return s
}

// run starts the program and waits until it is ready.
func (s *Server) run(tb testing.TB, path string, d postgrestest.Database) {
	tb.Helper()
	at, address, metrics, log := testkit.Milvus(tb), testkit.FreeAddress(tb), testkit.FreeAddress(tb), &bytes.Buffer{}
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), path, "serve")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+d.AppURL, "MILVUS_ADDRESS="+at.Addr, "MILVUS_USERNAME="+at.User, "MILVUS_PASSWORD="+at.Password,
		"MNEMO_MODEL_DIR="+testkit.ModelDir(tb), "MNEMO_ONNXRUNTIME="+testkit.ONNXRuntime(tb), "MNEMO_LISTEN="+address, "MNEMO_METRICS_LISTEN="+metrics)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if tb.Failed() {
			tb.Logf("log of the server:\n%.8000s", log)
		}
	})
	s.URL, s.Metrics, s.PID = "http://"+address, "http://"+metrics+"/metrics", cmd.Process.Pid
	Eventually(tb, Patience, func() string {
		response, err := http.Get(s.URL + "/readyz") //nolint:noctx // it ends with the test
		if err != nil {
			return err.Error()
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return response.Status
		}
		return ""
	})
}

// makeTenant creates a tenant with users, as the operator does.
func (s *Server) makeTenant(tb testing.TB, d postgrestest.Database, users []string) {
	tb.Helper()
	local, err := embed.FindModel(embed.DefaultModel)
	if err != nil {
		tb.Fatal(err)
	}
	db, err := postgres.Open(tb.Context(), postgres.Config{URL: d.AppURL, Generation: local.Generation()})
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	spec := tenanttest.NewSpec()
	spec.Quota = tenant.Quota{Memories: 100_000_000, Conversations: 1_000_000, Storage: 100 << 30, Users: 1000, RequestsPerMinute: 10_000_000,
		ListTokens: 10_000_000, UserMemories: tenant.NoLimit, UserConversations: tenant.NoLimit}
	spec.Users = nil
	for _, name := range users {
		spec.Users = append(spec.Users, tenant.UserSpec{Name: name})
	}
	applied, err := db.Apply(tb.Context(), spec)
	if err != nil {
		tb.Fatal(err)
	}
	s.Tenant = applied.ID
	if s.Placement, err = db.EnsurePlacement(tb.Context(), spec.ID); err != nil {
		tb.Fatal(err)
	}
	EnsurePartition(tb, s.Placement)
	for _, u := range applied.Users {
		token, err := tenant.NewToken(rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		s.Tokens[u.Name], s.Users[u.Name] = token, u.ID
		credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}
		if err := db.Install(tb.Context(), spec.ID, u.Name, credential); err != nil {
			tb.Fatal(err)
		}
	}
}

// EnsurePartition creates the partition of a placement for vectors of the default
// local model. It is dropped after the test.
func EnsurePartition(tb testing.TB, place placement.Location) {
	tb.Helper()
	at := testkit.Milvus(tb)
	index, err := milvus.Open(tb.Context(), milvus.Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: ModelDimensions})
	if err != nil {
		tb.Fatal(err)
	}
	Eventually(tb, Patience, func() string {
		if _, err := placement.WaitLoaded(index).Ensure(tb.Context(), placement.Placement{Location: place}); err != nil {
			return err.Error()
		}
		return ""
	})
	tb.Cleanup(func() {
		if err := index.Drop(context.WithoutCancel(tb.Context()), place); err != nil {
			tb.Errorf("drop partition: %v", err)
		}
		_ = index.Close()
	})
}
