package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// env runs commands against a test database and the real Milvus.
type env struct {
	postgrestest.Database
	db *postgres.DB
}

func openEnv(t *testing.T, d postgrestest.Database) *env {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL, Generation: defaultGeneration})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return &env{d, db}
}

// tryMnemo runs a command and returns its standard output.
func (e *env) tryMnemo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	addr := testkit.Milvus(t)
	app, err := url.Parse(e.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"DATABASE_URL": e.AppURL, "DATABASE_OWNER_URL": e.OwnerURL, "DATABASE_APP_ROLE": app.User.Username(), "MNEMO_MODEL_DIR": testkit.ModelDir(t), "MNEMO_ONNXRUNTIME": testkit.ONNXRuntime(t),
		"MILVUS_ADDRESS": addr.Addr, "MILVUS_USERNAME": addr.User, "MILVUS_PASSWORD": addr.Password,
	} {
		t.Setenv(name, value)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	output := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, r)
		output <- b.String()
	}()
	err = run(t.Context(), args)
	os.Stdout = stdout
	_ = w.Close()
	return <-output, err
}

// mnemo runs a command that must succeed.
func (e *env) mnemo(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.tryMnemo(t, args...)
	if err != nil {
		t.Fatalf("mnemo %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// expectOutput runs a command that must succeed and print want.
func (e *env) expectOutput(t *testing.T, want string, args ...string) {
	t.Helper()
	if out := e.mnemo(t, args...); !strings.Contains(out, want) {
		t.Errorf("mnemo %s printed %q, want %q", strings.Join(args, " "), out, want)
	}
}

// expectError runs a command that must fail with an error that contains want.
func (e *env) expectError(t *testing.T, want string, args ...string) {
	t.Helper()
	if _, err := e.tryMnemo(t, args...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("mnemo %s: error %v, want %q", strings.Join(args, " "), err, want)
	}
}

func (e *env) apply(t *testing.T, spec tenant.Spec) tenant.Tenant {
	t.Helper()
	got, err := e.db.Apply(t.Context(), spec)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return got
}

// issueToken issues a token as the operator does and returns its hash.
func (e *env) issueToken(t *testing.T, id tenant.ID, user string, generation int64) tenant.Hash {
	t.Helper()
	hash := tenant.HashSecret(uuid.NewString())
	c := tenant.Credential{Generation: generation, TokenHash: hash, PasswordHash: tenant.HashSecret(fmt.Sprint("password", generation)), Issuer: tenant.IssuerOperator}
	if err := e.db.Install(t.Context(), id, user, c); err != nil {
		t.Fatalf("Install: %v", err)
	}
	if err := e.db.RevokeOlder(t.Context(), id, user, generation, 0); err != nil {
		t.Fatalf("RevokeOlder: %v", err)
	}
	return hash
}

func (e *env) expectValid(t *testing.T, token string, hash tenant.Hash) {
	t.Helper()
	if _, err := e.db.Identify(t.Context(), hash); err != nil {
		t.Errorf("%s: %v, want it valid", token, err)
	}
}

func (e *env) expectRevoked(t *testing.T, token string, hash tenant.Hash) {
	t.Helper()
	if _, err := e.db.Identify(t.Context(), hash); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("%s: %v, want Unauthorized", token, err)
	}
}

// createMemory stores a memory of the tenant's first user.
func (e *env) createMemory(t *testing.T, tn tenant.Tenant, text string) {
	t.Helper()
	_, err := e.db.Memories().Create(t.Context(), tenant.Scope{Tenant: tn.ID, User: tn.Users[0].ID}, memory.NewMemory{
		CreateInput: memory.CreateInput{Text: text}, Tokens: 9, Units: retrieve.MemoryUnits(text),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// placement returns where the tenant's units are indexed.
func (e *env) placement(t *testing.T, id tenant.ID) placement.Location {
	t.Helper()
	p, err := e.db.EnsurePlacement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// expectIndexed fails unless the index holds n units of the tenant.
func (e *env) expectIndexed(t *testing.T, id tenant.ID, n int) {
	t.Helper()
	units, err := openIndex(t).List(t.Context(), id, e.placement(t, id), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(units) != n {
		t.Errorf("the index holds %d units, want %d", len(units), n)
	}
}

// rebuildIndex rebuilds the index of all tenants, of which there is one, and
// expects n units in it.
func (e *env) rebuildIndex(t *testing.T, id tenant.ID, n int) {
	t.Helper()
	e.expectOutput(t, "rebuilt the index of 1 tenants", "index", "rebuild", "--all")
	e.expectIndexed(t, id, n)
}

func openIndex(t *testing.T) *milvus.Index {
	t.Helper()
	addr := testkit.Milvus(t)
	index, err := milvusFlags{MilvusAddress: addr.Addr, MilvusUsername: addr.User, MilvusPassword: addr.Password}.
		connect(context.WithoutCancel(t.Context()), defaultGeneration.Dimensions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return index
}

// expectTable fails unless `mnemo tenants list` prints the rows, of which only
// the named columns are compared.
func (e *env) expectTable(t *testing.T, columns []string, want [][]string, args ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(e.mnemo(t, append([]string{"tenants", "list"}, args...)...)), "\n")
	header := lines[0]
	var got [][]string
	for _, line := range lines[1:] {
		var row []string
		for _, column := range columns {
			row = append(row, cell(header, line, column))
		}
		got = append(got, row)
	}
	slices.SortFunc(got, slices.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tenants list: -want +got\n%s", diff)
	}
}

// cell returns the text below a column of the header.
func cell(header, line, column string) string {
	for at := 0; at < len(header); {
		name := strings.Fields(header[at:])[0]
		if name == column {
			return strings.SplitN(line[at:], " ", 2)[0]
		}
		at += len(name)
		for at < len(header) && header[at] == ' ' {
			at++
		}
	}
	return ""
}
