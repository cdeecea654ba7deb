package postgres_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/filter"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Groups counts the memories of each user, app, agent and run of one user of the tenant.
func TestMemoryGroups(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	for text, a := range map[string]memory.Attributes{
		"one":   {AgentID: "a", Metadata: []byte(`{"user_id":"u","app_id":"p"}`)},
		"two":   {RunID: "r", Metadata: []byte(`{"user_id":"u"}`)},
		"three": {Metadata: []byte(`{"user_id":5,"app_id":["p"]}`)}, // not of this form
		"four":  {},
	} {
		if _, err := b.Memories().Create(t.Context(), scope, withAttributes(text, a)); err != nil {
			t.Fatal(err)
		}
	}
	want := []memory.Group{{Kind: "agent", Name: "a", Memories: 1}, {Kind: "app", Name: "p", Memories: 1}, {Kind: "run", Name: "r", Memories: 1}, {Kind: "user", Name: "u", Memories: 2}}
	times := cmpopts.IgnoreFields(memory.Group{}, "CreatedAt", "UpdatedAt")
	for _, page := range []struct{ skip, limit int }{{0, 10}, {1, 2}, {4, 1}} {
		got, all, err := b.Memories().Groups(t.Context(), scope, page.skip, page.limit)
		if err != nil || all != 4 {
			t.Fatalf("Groups: %d, %v, want 4", all, err)
		}
		if diff := cmp.Diff(want[page.skip:min(page.skip+page.limit, 4)], got, times, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("groups %v (-want +got):\n%s", page, diff)
		}
		for _, g := range got {
			if g.CreatedAt.IsZero() || g.UpdatedAt.Before(g.CreatedAt) {
				t.Errorf("times of %+v", g)
			}
		}
	}
	for _, other := range b.users[1:] {
		if got, all, err := b.Memories().Groups(t.Context(), other, 0, 10); err != nil || all != 0 || len(got) != 0 {
			t.Errorf("user %v has %d groups %v, %v", other, all, got, err)
		}
	}
}

func TestCountMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, text := range []string{"one", "two", "three"} {
		if _, err := b.Memories().Create(t.Context(), b.users[0], withAttributes(text, memory.Attributes{AgentID: text[:1]})); err != nil {
			t.Fatal(err)
		}
	}
	var problems fault.Fields
	where := filter.Parse(&problems, "filter", []byte(`{"agentId":"t"}`))
	for _, tc := range []struct {
		scope tenant.Scope
		where filter.Filter
		want  int
	}{{b.users[0], filter.Filter{}, 3}, {b.users[0], where, 2}, {b.users[1], filter.Filter{}, 0}, {b.users[2], where, 0}} {
		if got, err := b.Memories().Count(t.Context(), tc.scope, tc.where); err != nil || got != tc.want {
			t.Errorf("Count of %v with %v: %d, %v, want %d", tc.scope, tc.where.Op, got, err, tc.want)
		}
	}
}

// MemoryOwners finds the memories of the users of the tenant's applications, and no others.
func TestMemoryOwners(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Users = 50 })
	one, two := b.application(t, 0, webApplication()), b.application(t, 1, webApplication())
	store := func(scope tenant.Scope) string {
		t.Helper()
		created, err := b.Memories().Create(t.Context(), scope, newMemory("one"))
		if err != nil {
			t.Fatal(err)
		}
		return created.ID
	}
	ann, ben := store(b.actFor(t, one, "ann", true)), store(b.actFor(t, one, "ben", true))
	foreign, listed := store(b.actFor(t, two, "ann", true)), store(b.users[0])
	ids := []string{ann, ben, foreign, listed, "x", "0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07"}
	for name, tc := range map[string]struct {
		who  tenant.Identity
		want map[string]string
	}{"its users": {one, map[string]string{ann: "ann", ben: "ben"}}, "another tenant's": {two, map[string]string{foreign: "ann"}}} {
		got, err := b.MemoryOwners(t.Context(), tc.who, ids)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := b.EraseApplicationUser(t.Context(), one, "ann"); err != nil {
		t.Fatal(err)
	}
	got, err := b.MemoryOwners(t.Context(), one, slices.Clone(ids))
	if diff := cmp.Diff(map[string]string{ben: "ben"}, got); err != nil || diff != "" {
		t.Errorf("after an erasure: %v (-want +got):\n%s", err, diff)
	}
}

// A restore keeps the ids of an export, so an id may have several owners. None of them is preferred.
func TestMemoryOwnersOfASharedID(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Users = 50 })
	one := b.application(t, 0, webApplication())
	var ids []string
	for _, name := range []string{"ann", "ben"} {
		ids = append(ids, b.remember(t, b.actFor(t, one, name, true), "one", nil))
	}
	exec(t, b.owner, "update units set memory_id = $1 where memory_id = $2", ids[0], ids[1])
	exec(t, b.owner, "update memory_versions set memory_id = $1 where memory_id = $2", ids[0], ids[1])
	exec(t, b.owner, "update memories set id = $1 where id = $2", ids[0], ids[1])
	_, err := b.MemoryOwners(t.Context(), one, ids[:1])
	wantKind(t, "an id with two owners", err, fault.Conflict)
	if err := b.EraseApplicationUser(t.Context(), one, "ann"); err != nil {
		t.Fatal(err)
	}
	got, err := b.MemoryOwners(t.Context(), one, ids[:1])
	if diff := cmp.Diff(map[string]string{ids[0]: "ben"}, got); err != nil || diff != "" {
		t.Errorf("after the erasure of the other owner: %v (-want +got):\n%s", err, diff)
	}
}
