package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// TestCopyCommand follows docs/cells.md, "Move a Tenant to another database".
func TestCopyCommand(t *testing.T) {
	source, target := openEnv(t, postgrestest.Create(t)), openEnv(t, postgrestest.CreateInCell(t, 7))
	if _, err := target.db.EnsureGeneration(t.Context(), defaultGeneration, true); err != nil {
		t.Fatal(err)
	}
	spec := tenanttest.NewSpec()
	tn := source.apply(t, spec)
	token := source.issueToken(t, tn.ID, "alice", 1)
	source.createMemory(t, tn, "2026-05-01 The spare key is under the stone.")
	source.rebuildIndex(t, tn.ID, 1)
	name := spec.Namespace + "/" + spec.Name

	source.mnemo(t, "webhooks", "create", "--tenant", name, "--name", "backend", "--url", "https://acme.example.com/mnemo", "--events", "*")
	t.Setenv("MNEMO_TARGET_DATABASE_OWNER_URL", target.OwnerURL)
	source.expectError(t, "accepts writes", "tenants", "copy", name)
	spec.Suspended = true
	source.apply(t, spec)
	var report tenant.CopyReport
	if err := json.Unmarshal([]byte(source.mnemo(t, "tenants", "copy", name, "--format=json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Tenant != tn.ID || report.Name != name || report.TargetCell != 7 || report.Rows() == 0 || len(report.NotCopied) == 0 {
		t.Errorf("the report is %+v", report)
	}
	target.expectTable(t, []string{"NAMESPACE", "NAME", "STATE"}, [][]string{{spec.Namespace, spec.Name, "active"}})
	source.expectError(t, "already contains tenant "+name, "tenants", "copy", name)

	spec.Suspended = false
	moved := target.apply(t, spec)
	target.expectValid(t, "the token of the source", token)
	target.rebuildIndex(t, moved.ID, 1)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	target.mnemo(t, "audit", "export", "--tenant", name, "--output", file)
	target.expectOutput(t, "verified", "audit", "verify", file)

	source.expectOutput(t, "retired tenant "+name, "tenants", "retire", "--tenant", name, "--yes")
	source.expectError(t, "is already retained", "tenants", "retire", "--tenant", name, "--yes")
	source.expectOutput(t, "paused", "webhooks", "list", "--tenant", name)
	target.expectOutput(t, "not connected", "webhooks", "list", "--tenant", name)
	source.expectRevoked(t, "the token in the source", token)
	source.expectOutput(t, "purged tenant "+name, "tenants", "purge", name, "--yes")
	target.expectValid(t, "the token after the purge of the source", token)

	other := openEnv(t, postgrestest.CreateInCell(t, 8))
	if _, err := other.db.EnsureGeneration(t.Context(), defaultGeneration, true); err != nil {
		t.Fatal(err)
	}
	spec.Suspended = true
	target.apply(t, spec)
	t.Setenv("MNEMO_TARGET_DATABASE_OWNER_URL", other.OwnerURL)
	target.expectOutput(t, "copied tenant "+name+" ("+string(tn.ID)+") from cell 7 to cell 8", "tenants", "copy", string(tn.ID))
}
