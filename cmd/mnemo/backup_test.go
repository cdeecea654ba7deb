package main

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/milvus"
	"github.com/mnemo-dev/mnemo/internal/postgres"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// house is a database with the commands of docs/backup.md run on it.
type house struct {
	postgrestest.Database
	db *postgres.DB
}

func open(t *testing.T, d postgrestest.Database) *house {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: d.AppURL, Generation: localGeneration})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return &house{d, db}
}

// mnemo runs a command line and returns what it printed.
func (h *house) mnemo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	addr := testkit.Milvus(t)
	app, err := url.Parse(h.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"DATABASE_URL": h.AppURL, "DATABASE_OWNER_URL": h.OwnerURL, "DATABASE_APP_ROLE": app.User.Username(), "MNEMO_MODEL_DIR": testkit.ModelDir(t),
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
	printed := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, r)
		printed <- b.String()
	}()
	err = run(t.Context(), args)
	os.Stdout = stdout
	_ = w.Close()
	return <-printed, err
}

func (h *house) mustMnemo(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.mnemo(t, args...)
	if err != nil {
		t.Fatalf("mnemo %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (h *house) apply(t *testing.T, spec tenant.Spec) tenant.Tenant {
	t.Helper()
	got, err := h.db.Apply(t.Context(), spec)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return got
}

// install issues a token as the operator does and returns its hash.
func (h *house) install(t *testing.T, id tenant.ID, generation int64) tenant.Hash {
	t.Helper()
	hash := tenant.HashSecret(uuid.NewString())
	c := tenant.Credential{Generation: generation, TokenHash: hash, PasswordHash: tenant.HashSecret("password"), Issuer: tenant.IssuerOperator}
	if err := h.db.Install(t.Context(), id, "alice", c); err != nil {
		t.Fatalf("Install: %v", err)
	}
	if err := h.db.RevokeOlder(t.Context(), id, "alice", generation, 0); err != nil {
		t.Fatalf("RevokeOlder: %v", err)
	}
	return hash
}

func (h *house) wantValid(t *testing.T, what string, hash tenant.Hash, valid bool) {
	t.Helper()
	_, err := h.db.Identify(t.Context(), hash)
	if (err == nil) != valid || err != nil && !fault.Is(err, fault.Unauthorized) {
		t.Errorf("%s: %v, want it valid: %v", what, err, valid)
	}
}

func (h *house) remember(t *testing.T, tn tenant.Tenant, text string) {
	t.Helper()
	_, err := h.db.Memories().Create(t.Context(), tenant.Scope{Tenant: tn.ID, User: tn.Users[0].ID}, memory.NewMemory{
		CreateInput: memory.CreateInput{Text: text}, Tokens: 9, Units: retrieve.MemoryUnits(text),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reindex does so, of one tenant, and expects as many units in its place then.
func (h *house) reindex(t *testing.T, id tenant.ID, want int) {
	t.Helper()
	if out := h.mustMnemo(t, "reindex", "--all"); !strings.Contains(out, "reindexed 1 tenants") {
		t.Errorf("it printed %q", out)
	}
	place, err := h.db.Place(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := openIndex(t).List(t.Context(), id, place, 0, 10); err != nil || len(held) != want {
		t.Errorf("the index holds %v, %v, want %d units", held, err, want)
	}
}

// lived is a tenant with a memory, a backup of its database, and what came after
// the backup: a token was revoked, and Milvus knows of one more memory.
func lived(t *testing.T) (spec tenant.Spec, stolen tenant.Hash, restored *house) {
	t.Helper()
	d := postgrestest.Create(t)
	before := open(t, d)
	spec = tenanttest.NewSpec()
	got := before.apply(t, spec)
	stolen = before.install(t, got.ID, 1)
	before.remember(t, got, "2026-05-01 The spare key is under the stone.")
	if _, err := before.db.Place(t.Context(), got.ID); err != nil {
		t.Fatal(err)
	}
	before.db.Close()
	backup := postgrestest.Copy(t, d)

	after := open(t, d)
	after.install(t, got.ID, 2)
	after.wantValid(t, "the token revoked after the backup", stolen, false)
	after.remember(t, got, "2026-05-02 The spare key is in the shed.")
	after.reindex(t, got.ID, 2)
	restored = open(t, backup)
	restored.wantValid(t, "in the restored database it", stolen, true) // which is the danger
	return spec, stolen, restored
}

// TestRestoredInPlace is docs/backup.md, "The same cluster".
func TestRestoredInPlace(t *testing.T) {
	spec, stolen, h := lived(t)
	h.mustMnemo(t, "migrate")
	if out := h.mustMnemo(t, "rotate", "--all"); !strings.Contains(out, "revoked 1 tokens of 1 tenants") {
		t.Errorf("it printed %q", out)
	}
	h.wantValid(t, "after mnemo rotate --all the token", stolen, false)
	h.reindex(t, spec.ID, 1)
	// The operator's next pass sees that alice needs another one.
	got := h.apply(t, spec)
	if token := got.Users[0].Token; token.Fingerprint != "" || token.Generation != 1 {
		t.Errorf("the operator sees token %+v, want a revoked one of generation 1", token)
	}
	h.wantValid(t, "the next token", h.install(t, got.ID, 2), true)

	out, err := h.mnemo(t, "rotate", "--tenant", uuid.NewString())
	if err == nil || !strings.Contains(err.Error(), "there is no tenant") {
		t.Errorf("rotate of no tenant = %q, %v", out, err)
	}
}

// TestMovedHouse is docs/backup.md, "Another cluster".
func TestMovedHouse(t *testing.T) {
	spec, stolen, h := lived(t)
	h.mustMnemo(t, "migrate")
	h.mustMnemo(t, "rotate", "--all")
	columns := strings.Fields(strings.Split(h.mustMnemo(t, "tenants"), "\n")[1])
	cluster := columns[len(columns)-1]
	claiming := spec
	claiming.ID, claiming.Cluster, claiming.Claim = tenant.ID(uuid.NewString()), "new-cluster", spec.ID
	if _, err := h.db.Apply(t.Context(), claiming); err == nil || !strings.Contains(err.Error(), "mnemo tenants retire --cluster "+spec.Cluster) {
		t.Errorf("a claim before the old cluster was given up: %v, want what to run", err)
	}
	if out := h.mustMnemo(t, "tenants", "retire", "--cluster", cluster, "--yes"); !strings.Contains(out, "retired 1 tenants") {
		t.Errorf("it printed %q", out)
	}
	listed := strings.Fields(strings.Split(h.mustMnemo(t, "tenants", "--retained", "--cluster", cluster), "\n")[1])
	if listed[0] != spec.Namespace || listed[1] != "acme" || listed[2] != "retained" || listed[len(listed)-2] != string(spec.ID) || cluster != spec.Cluster {
		t.Errorf("listed is %q, want namespace, name, state, uid and cluster", listed)
	}
	got := h.apply(t, claiming)
	h.wantValid(t, "after the move the stolen token", stolen, false)
	h.wantValid(t, "the new token", h.install(t, got.ID, 2), true)

	h.reindex(t, got.ID, 1)

	// And out of the house for good.
	place, err := h.db.Place(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := h.mnemo(t, "tenants", "--purge", string(claiming.ID), "--yes"); err == nil {
		t.Errorf("purge of an active tenant printed %q, want it refused", out)
	}
	if _, err := h.db.Retire(t.Context(), claiming.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	h.mustMnemo(t, "tenants", "--purge", string(claiming.ID), "--yes")
	if out := h.mustMnemo(t, "tenants"); len(strings.Split(strings.TrimSpace(out), "\n")) != 1 {
		t.Errorf("after the purge there is\n%s", out)
	}
	if held, err := openIndex(t).List(t.Context(), got.ID, place, 0, 10); err == nil {
		t.Errorf("the partition is still there, with %v", held)
	}
}

func openIndex(t *testing.T) *milvus.Index {
	t.Helper()
	addr := testkit.Milvus(t)
	index, err := milvusFlags{MilvusAddress: addr.Addr, MilvusUsername: addr.User, MilvusPassword: addr.Password}.
		open(context.WithoutCancel(t.Context()), localGeneration.Dimensions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })
	return index
}

func TestPurgeIsConfirmed(t *testing.T) {
	t.Parallel()
	for answer, refused := range map[string]bool{"default/acme\n": false, "yes\n": true, "\n": true, "": true} {
		var asked strings.Builder
		err := confirm(strings.NewReader(answer), &asked, "Type default/acme: ", "default/acme")
		if (err != nil) != refused || asked.String() == "" {
			t.Errorf("the answer %q: %v, want it refused: %v", answer, err, refused)
		}
	}
}
