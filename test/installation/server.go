package installation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// ModelDimensions is the length of the vectors of the default local model.
const ModelDimensions = 384

// Server is `mnemo serve` on a new database, without Kubernetes.
type Server struct {
	// URL is the address of the API, Metrics that of /metrics.
	URL, Metrics string
	// PID is the process.
	PID int
	// ServedTenant is the first tenant, if ServeLocal started the server.
	ServedTenant
	// DB and Index are the stores, as the server opens them. Owner is the database as the role that sees
	// everything, AppURL that of the server's role.
	DB     *postgres.DB
	Index  *milvus.Index
	Owner  *pgxpool.Pool
	AppURL string

	cmd *exec.Cmd
}

// ServerOptions configure a Server.
type ServerOptions struct {
	// Embeddings is the URL of an embedding endpoint with vectors of ModelDimensions. Default: the local model.
	Embeddings string
	// Unindexed runs the server without Milvus.
	Unindexed bool
}

// ServeLocal starts a Server with the default local model and a tenant with the users, and stops it after the test.
func ServeLocal(tb testing.TB, users ...string) *Server {
	tb.Helper()
	s := Serve(tb, ServerOptions{})
	s.ServedTenant = s.AddTenant(tb, TenantOptions{Users: users, Partition: true})
	return s
}

// Serve starts a Server without tenants, and stops it after the test.
func Serve(tb testing.TB, o ServerOptions) *Server {
	tb.Helper()
	generation, model := o.model(tb)
	d := postgrestest.Create(tb)
	s := &Server{AppURL: d.AppURL}
	s.open(tb, postgres.Config{URL: d.AppURL, Generation: generation, Unindexed: o.Unindexed}, d)
	s.run(tb, append(model, o.index(tb)...))
	return s
}

// Restart ends the process, and starts it again at the same addresses with nothing in its memory.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	s.start(tb, s.cmd.Env, s.cmd.Stdout)
}

// model returns the generation of the vectors and the environment that selects the embedder.
func (o ServerOptions) model(tb testing.TB) (placement.Generation, []string) {
	tb.Helper()
	if o.Embeddings != "" {
		g := placement.Generation{Model: "endpoint", Dimensions: ModelDimensions}
		return g, []string{"MNEMO_EMBEDDER=openai", "MNEMO_EMBEDDINGS_URL=" + o.Embeddings, "MNEMO_EMBEDDINGS_MODEL=" + g.Model,
			fmt.Sprintf("MNEMO_EMBEDDINGS_DIMENSIONS=%d", g.Dimensions)}
	}
	local, err := embed.FindModel(embed.DefaultModel)
	if err != nil {
		tb.Fatal(err)
	}
	return local.Generation(), []string{"MNEMO_MODEL_DIR=" + testkit.ModelDir(tb), "MNEMO_ONNXRUNTIME=" + testkit.ONNXRuntime(tb)}
}

// index returns the environment that selects the index.
func (o ServerOptions) index(tb testing.TB) []string {
	tb.Helper()
	if o.Unindexed {
		return []string{"MNEMO_INDEX=none"}
	}
	at := testkit.Milvus(tb)
	return []string{"MILVUS_ADDRESS=" + at.Addr, "MILVUS_USERNAME=" + at.User, "MILVUS_PASSWORD=" + at.Password}
}

// open opens the stores until the test ends.
func (s *Server) open(tb testing.TB, c postgres.Config, d postgrestest.Database) {
	tb.Helper()
	var err error
	if s.DB, err = postgres.Open(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.DB.Close)
	if s.Owner, err = pgxpool.New(tb.Context(), d.OwnerURL); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Owner.Close)
	at := testkit.Milvus(tb)
	s.Index, err = milvus.Open(tb.Context(), milvus.Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: ModelDimensions})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Index.Close() })
}

// run starts the program, and stops it after the test.
func (s *Server) run(tb testing.TB, env []string) {
	tb.Helper()
	address, metrics, log := testkit.FreeAddress(tb), testkit.FreeAddress(tb), &bytes.Buffer{}
	s.URL, s.Metrics = "http://"+address, "http://"+metrics+"/metrics"
	env = append(append(os.Environ(), env...), "DATABASE_URL="+s.AppURL, "MNEMO_LISTEN="+address, "MNEMO_METRICS_LISTEN="+metrics)
	tb.Cleanup(func() {
		if s.cmd == nil {
			return
		}
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if tb.Failed() {
			tb.Logf("log of the server:\n%.8000s", log)
		}
	})
	s.start(tb, env, log)
}

// start starts the program and waits until it is ready.
func (s *Server) start(tb testing.TB, env []string, log io.Writer) {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), testkit.Program(tb), "serve")
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s.cmd, s.PID = cmd, cmd.Process.Pid
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
