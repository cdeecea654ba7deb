package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// An administrator exports a tenant's audit log and verifies it offline.
func TestAuditCommands(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	tn := e.apply(t, tenanttest.NewSpec())
	e.createMemory(t, tn, "a text that is in no record")
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	e.mnemo(t, "audit", "export", "--tenant", tn.Namespace+"/"+tn.Name, "--output", file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range []string{`"actor":"administrator","via":"audit export","verb":"audit.export"`, `"verb":"memory.create"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the export lacks %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "a text that") {
		t.Error("the export contains the text of a memory")
	}
	out := e.mnemo(t, "audit", "verify", file)
	anchor := regexp.MustCompile(`anchor: (\d+:[0-9a-f]{64})`).FindStringSubmatch(out)
	if anchor == nil {
		t.Fatalf("verify printed %q, want an anchor", out)
	}

	tampered := filepath.Join(t.TempDir(), "tampered.jsonl")
	if err := os.WriteFile(tampered, []byte(strings.Replace(text, "memory.create", "memory.delete", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	e.expectError(t, "was edited", "audit", "verify", tampered)

	// A deleted tenant is found by its ID, and its chain continues.
	if _, err := e.db.Retire(t.Context(), tn.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	e.mnemo(t, "tenants", "purge", "--yes", string(tn.ID))
	later := filepath.Join(t.TempDir(), "later.jsonl")
	e.mnemo(t, "audit", "export", "--tenant", string(tn.ID), "--output", later)
	e.expectOutput(t, "verified", "audit", "verify", later, "--anchor", anchor[1])
	e.expectError(t, "does not contain record", "audit", "verify", file, "--anchor", "99"+strings.TrimLeft(anchor[1], "0123456789"))
	e.expectError(t, "SEQUENCE:HASH", "audit", "verify", file, "--anchor", "x")
	raw, err = os.ReadFile(later)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"actor":"administrator","via":"tenants purge","verb":"tenant.erase"`; !strings.Contains(string(raw), want) {
		t.Errorf("the export lacks %s:\n%s", want, raw)
	}
	e.mnemo(t, "erasures", "stop")
	e.expectOutput(t, `"verb":"erasures.stop"`, "audit", "export")
	e.expectError(t, "not found", "audit", "export", "--tenant", "default/nobody")
	unknown := uuid.NewString()
	for range 2 { // the first attempt creates no chain
		e.expectError(t, "tenant "+unknown+" not found", "audit", "export", "--tenant", unknown)
	}
}
