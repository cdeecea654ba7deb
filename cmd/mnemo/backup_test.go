package main

import (
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// restoredBackup returns a tenant whose database was restored from a backup.
// After the backup a token was revoked and a second memory was created and
// indexed, so the token is valid again and Milvus is ahead of PostgreSQL.
func restoredBackup(t *testing.T) (spec tenant.Spec, revoked tenant.Hash, restored *env) {
	t.Helper()
	d := postgrestest.Create(t)
	before := openEnv(t, d)
	spec = tenanttest.NewSpec()
	tn := before.apply(t, spec)
	revoked = before.issueToken(t, tn.ID, 1)
	before.createMemory(t, tn, "2026-05-01 The spare key is under the stone.")
	before.placement(t, tn.ID)
	before.db.Close()
	backup := postgrestest.Copy(t, d)

	after := openEnv(t, d)
	after.issueToken(t, tn.ID, 2)
	after.expectRevoked(t, "the first token", revoked)
	after.createMemory(t, tn, "2026-05-02 The spare key is in the shed.")
	after.rebuildIndex(t, tn.ID, 2)
	restored = openEnv(t, backup)
	restored.expectValid(t, "the first token after the restore", revoked)
	return spec, revoked, restored
}

// TestRestoreInSameCluster follows docs/backup.md, "Restore in the same cluster".
func TestRestoreInSameCluster(t *testing.T) {
	spec, revoked, e := restoredBackup(t)
	e.mnemo(t, "migrate")
	e.expectOutput(t, "revoked 1 tokens of 1 tenants", "rotate", "--all")
	e.expectRevoked(t, "the first token after mnemo rotate --all", revoked)
	e.rebuildIndex(t, spec.ID, 1)

	// The operator's next reconciliation sees that alice has no valid token.
	tn := e.apply(t, spec)
	token := tn.Users[0].Token
	if token.Fingerprint != "" {
		t.Errorf("the operator sees a valid token %q, want none", token.Fingerprint)
	}
	if token.Generation != 1 {
		t.Errorf("the operator sees token generation %d, want 1", token.Generation)
	}
	e.expectValid(t, "the next token", e.issueToken(t, tn.ID, 2))
	e.expectError(t, "not found", "rotate", "--tenant", uuid.NewString())
}

// TestMigrateToAnotherCluster follows docs/backup.md, "Migrate to another
// cluster".
func TestMigrateToAnotherCluster(t *testing.T) {
	spec, revoked, e := restoredBackup(t)
	e.mnemo(t, "migrate")
	e.mnemo(t, "rotate", "--all")
	e.expectTable(t, []string{"CLUSTER"}, [][]string{{spec.Cluster}})

	claiming := spec
	claiming.ID, claiming.Cluster, claiming.Claim = tenant.ID(uuid.NewString()), "new-cluster", spec.ID
	if _, err := e.db.Apply(t.Context(), claiming); !fault.Is(err, fault.Conflict) {
		t.Errorf("claim before the old cluster is retired: %v, want Conflict", err)
	}
	e.expectOutput(t, "retired 1 tenants", "tenants", "retire", "--cluster", spec.Cluster, "--yes")
	e.expectTable(t, []string{"NAMESPACE", "NAME", "STATE", "UID", "CLUSTER"},
		[][]string{{spec.Namespace, spec.Name, "retained", string(spec.ID), spec.Cluster}}, "--retained", "--cluster", spec.Cluster)

	tn := e.apply(t, claiming)
	e.expectRevoked(t, "the first token after the migration", revoked)
	e.expectValid(t, "the new token", e.issueToken(t, tn.ID, 2))
	e.rebuildIndex(t, tn.ID, 1)
}
