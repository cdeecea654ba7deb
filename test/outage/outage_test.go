package outage_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/hack/devenv"
	"github.com/mnemo-dev/mnemo/hack/devenv/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// outageTime is how long PostgreSQL is stopped: three readiness probes of the
// chart, after which Kubernetes would have removed a pod that fails them.
const outageTime = 16 * time.Second

// TestPostgreSQLStopped checks that clients receive Mnemo's 503 with Retry-After
// while PostgreSQL is stopped: the server stays ready, so the ingress still
// forwards requests. A server that starts meanwhile does not become ready.
func TestPostgreSQLStopped(t *testing.T) {
	database := startPostgres(t)
	token, unknown := postgrestest.ApplyTenant(t, database.Database), postgrestest.NewToken(t)
	s := start(t, database.Database)
	s.wantReady(t)
	s.want(t, token, "GET", "/api/buckets", "", http.StatusOK) // the token is cached from here on

	database.stop(t)
	late := start(t, database.Database)
	var probes int
	for until := time.Now().Add(outageTime); time.Now().Before(until); probes++ {
		s.want(t, "", "GET", "/readyz", "", http.StatusOK)
		s.want(t, "", "GET", "/healthz", "", http.StatusOK)
		s.want(t, token, "GET", "/api/buckets", "", http.StatusServiceUnavailable)
		s.want(t, token, "POST", "/api/memory", `{"text":"The kettle is on."}`, http.StatusServiceUnavailable)
		s.want(t, token, "GET", "/api/v2/memory?query=kettle", "", http.StatusServiceUnavailable)
		s.want(t, unknown, "GET", "/api/buckets", "", http.StatusServiceUnavailable)
		if _, err := late.get(t, "/readyz"); err == nil {
			t.Error("a server that has not seen the schema answers /readyz")
		}
		<-time.After(500 * time.Millisecond)
	}
	if probes < 3 {
		t.Errorf("%d rounds of requests in %s, want at least 3", probes, outageTime)
	}
	select {
	case <-late.ended:
	default:
		t.Error("a server that cannot read the schema is still running")
	}
	if log := late.log.String(); !strings.Contains(log, "the database is unavailable") {
		t.Errorf("its log does not give the reason: %s", log)
	}

	database.start(t)
	s.wantReady(t)
	eventually(t, 30*time.Second, func() error { return s.call(t, token, "GET", "/api/buckets", "", http.StatusOK) })
}

// ownPostgres is a PostgreSQL that a test may stop, with a database.
type ownPostgres struct {
	postgrestest.Database
	options devenv.Options
	server  *postgres.Server
}

func startPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	cache, err := devenv.OpenCache(devenv.NewProgress(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o711); err != nil { // for root, PostgreSQL runs as another user
		t.Fatal(err)
	}
	p := &ownPostgres{options: devenv.Options{Dir: dir, Cache: cache}}
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	t.Setenv("MNEMO_TEST_POSTGRES", p.server.URL)
	p.Database = postgrestest.Create(t)
	return p
}

func (p *ownPostgres) start(t *testing.T) {
	t.Helper()
	server, err := postgres.Start(t.Context(), p.options)
	if err != nil {
		t.Fatal(err)
	}
	p.server = server
}

func (p *ownPostgres) stop(t *testing.T) {
	t.Helper()
	if err := p.server.Stop(); err != nil {
		t.Error(err)
	}
}

// server is a running `mnemo serve`.
type server struct {
	url   string
	ended chan struct{}
	log   *output
}

// output is the output of a process; it is safe for concurrent use.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func start(t *testing.T, d postgrestest.Database) *server {
	t.Helper()
	milvus, address := testkit.Milvus(t), testkit.FreeAddress(t)
	s := &server{url: "http://" + address, ended: make(chan struct{}), log: &output{}}
	cmd := exec.Command(testkit.Program(t), "serve")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+d.AppURL, "MILVUS_ADDRESS="+milvus.Addr, "MILVUS_USERNAME="+milvus.User,
		"MILVUS_PASSWORD="+milvus.Password, "MNEMO_MODEL_DIR="+testkit.ModelDir(t), "MNEMO_ONNXRUNTIME="+testkit.ONNXRuntime(t), "MNEMO_LISTEN="+address, "MNEMO_METRICS_LISTEN=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("log of %s:\n%.8000s", s.url, s.log)
		}
	})
	return s
}

func (s *server) wantReady(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, func() error { return s.call(t, "", "GET", "/readyz", "", http.StatusOK) })
}

func (s *server) get(t *testing.T, path string) (status int, err error) {
	t.Helper()
	res, err := http.Get(s.url + path)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}

// want fails the test if the status is another one.
func (s *server) want(t *testing.T, token, method, path, body string, status int) {
	t.Helper()
	if err := s.call(t, token, method, path, body, status); err != nil {
		t.Error(err)
	}
}

// call sends a request and checks the status, and that a 503 is Mnemo's own.
func (s *server) call(t *testing.T, token, method, path, body string, status int) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != status {
		return fmt.Errorf("%s %s: %s %s, want %d", method, path, res.Status, raw, status)
	}
	if status == http.StatusServiceUnavailable && (res.Header.Get("Retry-After") == "" || !bytes.HasPrefix(raw, []byte(`{"error":`))) {
		return fmt.Errorf("%s %s: Retry-After %q, body %s; want Mnemo's error with Retry-After", method, path, res.Header.Get("Retry-After"), raw)
	}
	return nil
}

// eventually polls until check returns nil, and fails with its last error.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(within); ; <-time.After(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in %s: %v", within, err)
		}
	}
}
