package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/tenant/tenanttest"
)

func TestPurgeDeletesRowsAndPartition(t *testing.T) {
	e := openEnv(t, postgrestest.Create(t))
	spec, other := tenanttest.NewSpec(), tenanttest.NewSpec()
	tn := e.apply(t, spec)
	e.apply(t, other)
	e.createMemory(t, tn, "2026-05-01 The spare key is under the stone.")
	e.mnemo(t, "index", "rebuild", "--tenant", string(tn.ID))
	placement := e.placement(t, tn.ID)

	name := spec.Namespace + "/" + spec.Name
	e.expectError(t, "only retained tenants can be purged", "tenants", "purge", name, "--yes")
	e.expectError(t, "not found", "tenants", "purge", "nobody/nothing", "--yes")
	if _, err := e.db.Retire(t.Context(), spec.ID, tenant.Retain); err != nil {
		t.Fatal(err)
	}
	e.expectOutput(t, "purged tenant "+name, "tenants", "purge", name, "--yes")
	e.expectTable(t, []string{"NAMESPACE", "NAME"}, [][]string{{other.Namespace, other.Name}})
	if units, err := openIndex(t).List(t.Context(), tn.ID, placement, 0, 10); err == nil {
		t.Errorf("the partition still exists, with units %v", units)
	}
}

func TestFindRetained(t *testing.T) {
	t.Parallel()
	record := func(name string, state tenant.State) tenant.Record {
		return tenant.Record{ID: tenant.ID(uuid.NewString()), Resource: tenant.ID(uuid.NewString()), Namespace: "ns", Name: name, State: state}
	}
	acme, twice, again, active := record("acme", tenant.Retained), record("twice", tenant.Retained), record("twice", tenant.Retained), record("active", tenant.Active)
	recreated := record("acme", tenant.Active) // a new Tenant with the name of the retained one
	purging, next := record("again", tenant.Purging), record("next", tenant.Retained)
	earlier := record("next", tenant.Purging) // of the same name
	records := []tenant.Record{recreated, acme, twice, again, active, purging, earlier, next}
	for name, tt := range map[string]struct {
		name string
		want tenant.Record
		kind fault.Kind // of the error, if one is expected
	}{
		"by namespace and name":  {name: "ns/acme", want: acme},
		"by UID":                 {name: string(twice.Resource), want: twice},
		"by ID":                  {name: string(again.ID), want: again},
		"ambiguous name":         {name: "ns/twice", kind: fault.Conflict},
		"being purged":           {name: "ns/again", want: purging},
		"retained before purged": {name: "ns/next", want: next},
		"active":                 {name: "ns/active", kind: fault.Conflict},
		"unknown":                {name: "ns/none", kind: fault.NotFound},
		"name without namespace": {name: "acme", kind: fault.NotFound},
		"prefix of an ID":        {name: string(acme.Resource)[:8], kind: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := findRetained(records, tt.name)
			if tt.kind != fault.Kind(0) {
				if !fault.Is(err, tt.kind) {
					t.Fatalf("error %v, want kind %v", err, tt.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("found %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestConfirmAcceptsOnlyTheWord(t *testing.T) {
	t.Parallel()
	for answer, ok := range map[string]bool{"default/acme\n": true, "yes\n": false, "\n": false, "": false} {
		var prompt strings.Builder
		err := confirm(strings.NewReader(answer), &prompt, "Type default/acme: ", "default/acme")
		if (err == nil) != ok {
			t.Errorf("answer %q: error %v, want accepted = %v", answer, err, ok)
		}
		if prompt.String() != "Type default/acme: " {
			t.Errorf("answer %q: prompt %q", answer, prompt.String())
		}
	}
}
