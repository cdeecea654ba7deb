package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// backedUp is a tenant whose database was restored from a backup. After the backup
// a token was revoked and a second memory was created and indexed, so Milvus is
// ahead of PostgreSQL.
type backedUp struct {
	*env
	spec    tenant.Spec
	ledger  string
	revoked tenant.Hash // of alice
	kept    tenant.Hash // of bob
}

func restoreBackup(t *testing.T) backedUp {
	t.Helper()
	before := openEnv(t, postgrestest.Create(t))
	b := backedUp{spec: tenanttest.NewSpec(), ledger: t.TempDir()}
	tn := before.apply(t, b.spec)
	before.mnemo(t, "erasures", "apply", "--ledger", b.ledger)
	b.revoked = before.issueToken(t, tn.ID, "alice", 1)
	b.kept = before.issueToken(t, tn.ID, "bob", 1)
	before.createMemory(t, tn, "2026-05-01 The spare key is under the stone.")
	before.placement(t, tn.ID)
	dump := postgrestest.Dump(t, before.Database)

	before.issueToken(t, tn.ID, "alice", 2)
	before.expectRevoked(t, "the first token", b.revoked)
	before.createMemory(t, tn, "2026-05-02 The spare key is in the shed.")
	before.rebuildIndex(t, tn.ID, 2)
	before.expectOutput(t, "repeated 0 erasures and recorded 2", "erasures", "apply", "--ledger", b.ledger) // a token and a password
	b.env = openEnv(t, postgrestest.Restore(t, dump))
	b.expectValid(t, "the first token after the restore", b.revoked)
	return b
}

// TestRestoreInSameCluster follows docs/backup.md, "Restore a dump".
func TestRestoreInSameCluster(t *testing.T) {
	e := restoreBackup(t)
	e.mnemo(t, "migrate")
	e.expectError(t, "lacks erasures", "wait", "--erasures", "--timeout=0s")
	e.expectOutput(t, "repeated 2 erasures", "erasures", "apply", "--ledger", e.ledger)
	e.mnemo(t, "wait", "--erasures", "--timeout=0s")
	e.expectRevoked(t, "the token that was revoked after the backup", e.revoked)
	e.expectValid(t, "a token of the backup", e.kept)
	e.rebuildIndex(t, e.spec.ID, 1)

	// The operator's next reconciliation sees that only alice has no valid token.
	tn := e.apply(t, e.spec)
	alice, bob := tn.Users[0].Token, tn.Users[1].Token
	if alice.Fingerprint != "" {
		t.Errorf("the operator sees a valid token %q of alice, want none", alice.Fingerprint)
	}
	if alice.Generation != 1 {
		t.Errorf("the operator sees token generation %d of alice, want 1", alice.Generation)
	}
	if bob.Fingerprint != e.kept.Fingerprint() {
		t.Errorf("the operator sees token %q of bob, want that of the backup", bob.Fingerprint)
	}
	e.expectValid(t, "the next token", e.issueToken(t, tn.ID, "alice", 2))
}

// TestRestoreAfterLostErasures follows docs/backup.md, "The ledger was lost", with an old copy of the ledger. A later restore
// of the same backup, which was made with the lost entries, repeats what was erased since.
func TestRestoreAfterLostErasures(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	tn, dir := e.apply(t, tenanttest.NewSpec()), t.TempDir()
	apply := []string{"erasures", "apply", "--ledger", dir}
	e.mnemo(t, apply...)
	scope := tenant.Scope{Tenant: tn.ID, User: tn.Users[0].ID}
	var ids []string
	for _, text := range []string{"The pipe leaks.", "The roof leaks.", "The gate squeaks.", "The lamp flickers."} {
		m, err := e.db.Memories().Create(t.Context(), scope, newTestMemory(text))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	erase := func(e *env, id string) {
		t.Helper()
		if _, err := e.db.Memories().Delete(t.Context(), scope, []string{id}); err != nil {
			t.Fatal(err)
		}
		e.expectOutput(t, "repeated 0 erasures and recorded 1", apply...)
	}
	ledger := filepath.Join(dir, erasure.FileName)
	erase(e, ids[0])
	old, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	erase(e, ids[1])
	dump := postgrestest.Dump(t, e.Database)

	if err := os.WriteFile(ledger, old, 0o600); err != nil {
		t.Fatal(err)
	}
	restored := openEnv(t, postgrestest.Restore(t, dump))
	restored.expectError(t, "the ledger is an old copy", apply...)
	restored.expectOutput(t, "repeated 0 erasures", append(apply, "--accept-loss")...)
	erase(restored, ids[2])

	again := openEnv(t, postgrestest.Restore(t, dump))
	again.expectError(t, "accept with --accept-loss", apply...)
	again.expectOutput(t, "repeated 1 erasures", append(apply, "--accept-loss")...)
	if n := again.number(t, "select count(*) from memories where id = any($1)", ids[:3]); n != 0 {
		t.Errorf("%d erased memories are in the restored database, want none", n)
	}
	if n := again.number(t, "select count(*) from memories where id = $1", ids[3]); n != 1 {
		t.Errorf("%d memories that were kept are in the restored database, want 1", n)
	}
}

func TestRotate(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	tn := e.apply(t, spec)
	token := e.issueToken(t, tn.ID, "alice", 1)
	e.expectOutput(t, "revoked 1 tokens of 1 tenants", "rotate", "--tenant", spec.Namespace+"/"+spec.Name)
	e.expectRevoked(t, "the token after mnemo rotate --tenant", token)
	token = e.issueToken(t, tn.ID, "alice", 2)
	e.expectOutput(t, "revoked 1 tokens of 1 tenants", "rotate", "--all")
	e.expectRevoked(t, "the token after mnemo rotate --all", token)
	e.expectError(t, "not found", "rotate", "--tenant", uuid.NewString())
}

// TestReassignRejectsMistakes covers a uid that kubectl did not print, and a namespace
// that exists in two clusters on the same database.
func TestReassignRejectsMistakes(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	other := spec
	other.ID, other.Cluster, other.NamespaceUID = tenant.ID(uuid.NewString()), "other-cluster", uuid.NewString()
	for _, s := range []tenant.Spec{spec, other} {
		e.apply(t, s)
		if _, err := e.db.Retire(t.Context(), s.ID, tenant.Retain); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []string{"", spec.Namespace} {
		e.expectError(t, "must be the UID of a namespace", "tenants", "reassign", spec.Namespace, "--namespace-uid", uid)
	}
	reassign := []string{"tenants", "reassign", spec.Namespace, "--namespace-uid", uuid.NewString()}
	e.expectError(t, "--from-cluster: "+strings.Join(slices.Sorted(slices.Values([]string{spec.Cluster, other.Cluster})), ", "), reassign...)
	e.expectOutput(t, "reassigned tenant "+spec.Namespace+"/"+spec.Name, append(reassign, "--from-cluster", spec.Cluster)...)
	if _, err := e.db.Apply(t.Context(), other); err != nil {
		t.Errorf("the tenant of the other cluster was reassigned: %v", err)
	}
}

// TestMigrateToAnotherCluster follows docs/backup.md, "Migrate to another
// cluster".
func TestMigrateToAnotherCluster(t *testing.T) {
	e := restoreBackup(t)
	spec := e.spec
	e.mnemo(t, "migrate")
	e.mnemo(t, "erasures", "apply", "--ledger", e.ledger)
	e.expectTable(t, []string{"CLUSTER"}, [][]string{{spec.Cluster}})

	moved := spec
	moved.ID, moved.Cluster, moved.NamespaceUID = tenant.ID(uuid.NewString()), "new-cluster", uuid.NewString()
	reassign := []string{"tenants", "reassign", spec.Namespace, "--cluster", moved.Cluster, "--namespace-uid", moved.NamespaceUID}
	e.expectError(t, "no retained tenant", reassign...)
	e.expectOutput(t, "retired 1 tenants", "tenants", "retire", "--cluster", spec.Cluster, "--yes")
	e.expectTable(t, []string{"NAMESPACE", "NAME", "STATE", "UID", "CLUSTER"},
		[][]string{{spec.Namespace, spec.Name, "retained", string(spec.ID), spec.Cluster}}, "--retained", "--cluster", spec.Cluster)

	e.expectOutput(t, "reassigned tenant "+spec.Namespace+"/"+spec.Name, reassign...)
	tn := e.apply(t, moved)
	if tn.ID != spec.ID {
		t.Errorf("the tenant is %s, want the data of %s", tn.ID, spec.ID)
	}
	e.expectRevoked(t, "the first token after the migration", e.revoked)
	e.expectValid(t, "the new token", e.issueToken(t, tn.ID, "alice", 2))
	e.rebuildIndex(t, tn.ID, 1)
}
