package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/audit"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var someAttributes = memory.Attributes{AgentID: "planner", RunID: "r1", Tags: []string{"a", "b"}, Metadata: []byte(`{"long":{"z":1},"n":1.50}`)}

func withAttributes(text string, a memory.Attributes) memory.NewMemory {
	m := newMemory(text)
	m.Attributes = a
	return m
}

// Attributes are stored with the memory and read as they were given.
func TestAttributesAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	created, err := b.Memories().Create(t.Context(), scope, withAttributes(seat, someAttributes))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someAttributes, b.get(t, scope, created.ID).Attributes); diff != "" {
		t.Errorf("ByID (-want +got):\n%s", diff)
	}
	listed, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 9})
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	if diff := cmp.Diff(someAttributes, listed[0].Attributes); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	if got, err := b.Memories().ByID(t.Context(), b.users[1], []string{created.ID}, time.Time{}); err != nil || len(got) != 0 {
		t.Errorf("another user reads %v, %v", got, err)
	}
}

// The same text is a duplicate only with the same attributes.
func TestDuplicatesHaveTheSameAttributes(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	first, err := b.Memories().Create(t.Context(), scope, withAttributes(seat, someAttributes))
	if err != nil {
		t.Fatal(err)
	}
	equal := someAttributes
	equal.Metadata = []byte(`{"n":1.5,"long":{"z":1.0}}`)
	for name, a := range map[string]memory.Attributes{"the same": someAttributes, "equal numbers": equal} {
		if got, err := b.Memories().Create(t.Context(), scope, withAttributes(seat, a)); err != nil || !cmp.Equal(got, memory.Created{ID: first.ID, Duplicate: true}) {
			t.Errorf("%s: %+v, %v, want a duplicate", name, got, err)
		}
	}
	for name, change := range map[string]func(*memory.Attributes){
		"another agent": func(a *memory.Attributes) { a.AgentID = "other" },
		"another run":   func(a *memory.Attributes) { a.RunID = "" },
		"other tags":    func(a *memory.Attributes) { a.Tags = []string{"a"} },
		"other value":   func(a *memory.Attributes) { a.Metadata = []byte(`{"long":{"z":2},"n":1.50}`) },
		"none":          func(a *memory.Attributes) { *a = memory.Attributes{} },
	} {
		a := someAttributes
		change(&a)
		if got, err := b.Memories().Create(t.Context(), scope, withAttributes(seat, a)); err != nil || got.Duplicate {
			t.Errorf("%s: %+v, %v, want a new memory", name, got, err)
		}
	}
}

// A change of attributes alone creates no version and no index job. It is audited and
// charged; the same attributes again change nothing.
func TestAttributesAreUpdated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.remember(t, scope, seat, nil)
	b.jobUnits(t)
	before := b.get(t, scope, id)
	update := func(c memory.AttributeChanges) error {
		version, err := b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: id, AttributeChanges: c}})
		if err == nil && version != 1 {
			t.Errorf("version %d, want 1", version)
		}
		return err
	}
	agent, run, none, tags := "planner", "r1", "", []string{"a", "b"}
	metadata := someAttributes.Metadata
	records := len(b.auditOf(t, scope.Tenant))
	for range 2 {
		if err := update(memory.AttributeChanges{AgentID: &agent, RunID: &run, Tags: &tags, Metadata: &metadata}); err != nil {
			t.Fatal(err)
		}
	}
	got := b.get(t, scope, id)
	if diff := cmp.Diff(someAttributes, got.Attributes); diff != "" || !got.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("updated at %v, attributes (-want +got):\n%s", got.UpdatedAt, diff)
	}
	list := b.auditOf(t, scope.Tenant)[records:]
	if len(list) != 1 || list[0].Verb != audit.MemoryUpdate {
		t.Errorf("audit records %+v, want one update", list)
	}
	if jobs := b.jobUnits(t); len(jobs) != 0 {
		t.Errorf("index jobs for units %v", jobs)
	}
	if err := update(memory.AttributeChanges{RunID: &none}); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, scope, id); got.RunID != "" || got.AgentID != agent {
		t.Errorf("after removing the run: %+v", got.Attributes)
	}
	_, err := b.Memories().Update(t.Context(), b.users[1], memory.Edit{UpdateInput: memory.UpdateInput{ID: id, AttributeChanges: memory.AttributeChanges{AgentID: &none}}})
	wantKind(t, "Update by another user", err, fault.NotFound)
	if _, err := b.Memories().Delete(t.Context(), scope, []string{id}); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select storage from usage where tenant_id = $1", scope.Tenant); n != 0 {
		t.Errorf("%d bytes of storage are used after the deletion", n)
	}
}

// Attributes count toward the storage quota.
func TestAttributesNeedStorage(t *testing.T) {
	t.Parallel()
	size := len(seat) + someAttributes.Size()
	b := setup(t, func(q *tenant.Quota) { q.Storage = int64(size) })
	scope := b.users[0]
	large := someAttributes
	large.AgentID += "x"
	_, err := b.Memories().Create(t.Context(), scope, withAttributes(seat, large))
	wantKind(t, "Create over the quota", err, fault.Forbidden)
	created, err := b.Memories().Create(t.Context(), scope, withAttributes(seat, someAttributes))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: created.ID,
		AttributeChanges: memory.AttributeChanges{AgentID: &large.AgentID}}})
	wantKind(t, "Update over the quota", err, fault.Forbidden)
	if n := b.count(t, "select storage from usage where tenant_id = $1", scope.Tenant); n != size {
		t.Errorf("%d bytes of storage are used, want %d", n, size)
	}
}
