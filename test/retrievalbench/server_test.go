package retrievalbench

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/api/client"
	"github.com/mnemo-dev/mnemo/internal/embed"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

const (
	model      = embed.DefaultModel
	dimensions = 384
)

// connect returns a user of a server.
func connect(t *testing.T, url, token string) user {
	t.Helper()
	c, err := client.New(url, token, client.WithHTTPClient(&http.Client{Timeout: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	return user{c}
}

// serve starts `mnemo serve` on a new database and returns its address and the token
// of a user with ample quotas.
func serve(t *testing.T) (url, token string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mnemo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/mnemo").CombinedOutput(); err != nil {
		t.Fatalf("build mnemo: %v\n%s", err, out)
	}
	d := postgrestest.Create(t)
	token = makeTenant(t, d)
	at, address, log := testkit.Milvus(t), testkit.FreeAddress(t), &bytes.Buffer{}
	cmd := exec.Command(program, "serve")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+d.AppURL, "MILVUS_ADDRESS="+at.Addr, "MILVUS_USERNAME="+at.User, "MILVUS_PASSWORD="+at.Password,
		"MNEMO_MODEL_DIR="+testkit.ModelDir(t), "MNEMO_ONNXRUNTIME="+testkit.ONNXRuntime(t), "MNEMO_LISTEN="+address, "MNEMO_METRICS_LISTEN=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the server:\n%.8000s", log)
		}
	})
	url = "http://" + address
	eventually(t, func() bool {
		response, err := http.Get(url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return url, token
}

// makeTenant creates a tenant with one user, as the operator does.
func makeTenant(t *testing.T, d postgrestest.Database) (token string) {
	t.Helper()
	local, err := embed.FindModel(model)
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL, Generation: local.Generation()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	spec := tenanttest.NewSpec()
	spec.Quota.Conversations, spec.Quota.Storage, spec.Quota.RequestsPerMinute = 1_000_000, 10<<30, 1_000_000
	if _, err := db.Apply(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	place, err := db.EnsurePlacement(t.Context(), spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	ensurePartition(t, place)
	if token, err = tenant.NewToken(rand.Reader); err != nil {
		t.Fatal(err)
	}
	credential := tenant.Credential{Generation: 1, TokenHash: tenant.HashSecret(token), Issuer: tenant.IssuerOperator}
	if err := db.Install(t.Context(), spec.ID, spec.Users[0].Name, credential); err != nil {
		t.Fatal(err)
	}
	return token
}

func ensurePartition(t testing.TB, place placement.Location) {
	t.Helper()
	at := testkit.Milvus(t)
	index, err := milvus.Open(t.Context(), milvus.Config{Address: at.Addr, Username: at.User, Password: at.Password, Dimensions: dimensions})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		_, err := placement.WaitLoaded(index).Ensure(t.Context(), placement.Placement{Location: place})
		return err == nil
	})
	t.Cleanup(func() {
		if err := index.Drop(context.WithoutCancel(t.Context()), place); err != nil {
			t.Errorf("drop partition: %v", err)
		}
		_ = index.Close()
	})
}

// eventually polls until check succeeds.
func eventually(t testing.TB, check func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !check(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the server is not ready after two minutes")
		}
	}
}
