package main

import (
	"log/slog"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

// withoutMilvus are the flags of an installation without an index.
var withoutMilvus = []string{"--index=none", "--milvus-address="}

func TestOpenIndex(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		flags             milvusFlags
		connected, failed bool
	}{
		"the default":                            {flags: milvusFlags{Index: "milvus", MilvusAddress: "milvus:19530"}, connected: true},
		"Milvus without an address":              {flags: milvusFlags{Index: "milvus"}, failed: true},
		"no index":                               {flags: milvusFlags{Index: "none"}},
		"no index, and partitions to be dropped": {flags: milvusFlags{Index: "none", MilvusAddress: "milvus:19530"}, connected: true},
	} {
		index, err := tc.flags.open(t.Context(), 8, slog.New(slog.DiscardHandler))
		if (err != nil) != tc.failed {
			t.Errorf("%s: %v", reason, err)
		}
		if err != nil {
			continue
		}
		if connected := (&stores{index: index}).milvus() != nil; connected != tc.connected {
			t.Errorf("%s: connected %t, want %t", reason, connected, tc.connected)
		}
		if err := index.Close(); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestCommandsWithoutIndex: nothing waits for Milvus, and a receipt contains no vectors, because
// PostgreSQL has the only copy.
func TestCommandsWithoutIndex(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec := tenanttest.NewSpec()
	spec.DeletionPolicy = tenant.Retain
	tn := e.apply(t, spec)
	e.createMemory(t, tn, "The ladder is behind the shed.")
	all := append([]string{"--all"}, withoutMilvus...)
	e.expectOutput(t, "rebuilt the index of 1 tenants", append([]string{"index", "rebuild"}, all...)...)
	if at := e.placement(t, tn.ID); at.Indexed() {
		t.Errorf("the tenant is placed at %+v, want no index", at)
	}
	e.expectOutput(t, "0 missing, 0 orphaned", append([]string{"index", "repair"}, all...)...)
	e.createMemory(t, tn, "The hose is in the cellar.")
	e.expectOutput(t, "1 missing, 0 orphaned: repaired", append([]string{"index", "repair"}, all...)...)

	user := append([]string{"--tenant", string(tn.ID), "--user", "alice"}, withoutMilvus...)
	r, stores := e.receipt(t, user...)
	if _, found := stores["vectors"]; found || r.Remaining() != 0 {
		t.Errorf("the receipt has %d remaining objects and stores %+v, want no vectors", r.Remaining(), stores)
	}
	if _, err := e.db.Retire(t.Context(), tn.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	purge := append([]string{"tenants", "purge", "--yes", tn.Namespace + "/" + tn.Name}, withoutMilvus...)
	e.expectOutput(t, "purged tenant", purge...)
}

// A receipt needs Milvus as long as the tenant has not left it.
func TestEraseBeforeTheIndexIsLeft(t *testing.T) {
	e, tn := erasable(t)
	erase := append([]string{"erase", "--yes", "--tenant", string(tn.ID), "--user", "alice"}, withoutMilvus...)
	e.expectError(t, "which is not configured", erase...)
	e.expectIndexed(t, tn.ID, len(tn.Users))
}
