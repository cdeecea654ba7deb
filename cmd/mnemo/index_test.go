package main

import (
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

func TestIndexRepair(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	tn := e.apply(t, spec)
	e.createMemory(t, tn, "2026-05-01 The spare key is under the stone.")
	e.rebuildIndex(t, tn.ID, 1)
	e.createMemory(t, tn, "2026-05-02 The spare key is in the shed.") // no worker indexes it

	repair := []string{"index", "repair", "--tenant", string(tn.ID)}
	dryRun := append(repair, "--dry-run")
	for range 2 { // a dry run repeats the same report
		e.expectOutput(t, "1 missing, 0 orphaned: not repaired (dry run)", dryRun...)
	}
	e.expectIndexed(t, tn.ID, 1)
	e.expectOutput(t, "1 missing, 0 orphaned: repaired", repair...)
	e.expectIndexed(t, tn.ID, 2)
	e.expectOutput(t, "0 missing, 0 orphaned: nothing to repair", dryRun...)

	e.expectOutput(t, "0 missing, 0 orphaned: nothing to repair", "index", "repair", "--all")
	e.expectError(t, "--tenant", "index", "repair")
	e.expectOutput(t, "0 missing, 0 orphaned: nothing to repair", "index", "repair", "--tenant", spec.Namespace+"/"+spec.Name)
	e.expectError(t, "tenant nobody/nothing not found", "index", "repair", "--tenant", "nobody/nothing")
}
