package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Merged memories are deleted with the one that was kept, also indirectly, and each erasure is recorded.
func TestDeletionOfMergedMemories(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		remove  func(b *testBundle, t *testing.T, scope tenant.Scope, ids []string)
		gone    []int // of the memories
		audited bool
	}{
		"kept": {func(b *testBundle, t *testing.T, scope tenant.Scope, ids []string) { b.forget(t, scope, ids[0]) }, []int{0, 1, 2}, true},
		"kept, undoable": {func(b *testBundle, t *testing.T, scope tenant.Scope, ids []string) {
			if _, err := b.Memories().DeleteUndoable(t.Context(), scope, ids[:1]); err != nil {
				t.Fatal(err)
			}
			b.expireDeletions(t)
		}, []int{0, 1, 2}, true},
		"merged": {func(b *testBundle, t *testing.T, scope tenant.Scope, ids []string) { b.forget(t, scope, ids[1]) }, []int{1, 2}, true},
		"merged, undoable": {func(b *testBundle, t *testing.T, scope tenant.Scope, ids []string) {
			if got, err := b.Memories().DeleteUndoable(t.Context(), scope, ids[1:]); err != nil || len(got.IDs) > 0 {
				t.Fatalf("DeleteUndoable = %+v, %v, want nothing", got, err)
			}
			b.forget(t, scope, ids[1])
		}, []int{1, 2}, true},
		"by a release that does not know them": {func(b *testBundle, t *testing.T, scope tenant.Scope, ids []string) {
			exec(t, b.owner, "with gone as (delete from memories where id = $1 returning bucket_id), counted as (update buckets b set memories = memories - 1 from gone where b.id = gone.bucket_id), "+
				"used as (update users set memories = memories - 1 where id = $2) update usage set memories = memories - 1, storage = storage - 1 where tenant_id = $3", ids[0], int64(scope.User), string(scope.Tenant))
		}, []int{0, 1, 2}, false}, // by the owner of the database
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			attachLedger(t, b.DB)
			scope := b.users[0]
			ids := []string{b.remember(t, scope, "a", nil), b.full(t, scope, "b"), b.remember(t, scope, "c", nil)}
			b.merge(t, scope, ids[1], ids[2])
			b.merge(t, scope, ids[0], ids[1])
			theirs := b.remember(t, b.users[1], "a", nil)
			b.merge(t, b.users[1], theirs, b.full(t, b.users[1], "b"))
			tc.remove(b, t, scope, ids)
			var want, got []string
			for _, i := range tc.gone {
				want = append(want, ids[i])
			}
			for _, e := range pendingErasures(t, b.DB) {
				if e.Kind == erasure.Memory {
					got = append(got, e.Objects...)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("recorded erasures (-want +got):\n%s", diff)
			}
			if n := b.count(t, `select count(distinct o.id) from audit_pending p cross join unnest(p.objects) o (id)
				where p.tenant_id = $1 and p.verb = 'memory.delete' and o.id = any($2::text[])`, string(scope.Tenant), want); tc.audited && n != len(want) {
				t.Errorf("%d deletions are in the audit log, want %d", n, len(want))
			}
			if n := b.count(t, "select count(*) from merged_memories where user_id = $1", int64(scope.User)); n != 0 {
				t.Errorf("%d merged memories are left", n)
			}
			if n := b.count(t, "select count(*) from memory_versions where memory_id = any($1)", want); n != 0 {
				t.Errorf("%d versions are left", n)
			}
			if n := b.count(t, "select count(*) from merged_memories"); n != 1 {
				t.Errorf("another user has %d merged memories, want 1", n)
			}
		})
	}
}

// forget deletes a memory.
func (b *testBundle) forget(t *testing.T, scope tenant.Scope, id string) {
	t.Helper()
	if got, err := b.Memories().Delete(t.Context(), scope, []string{id}); err != nil || len(got.IDs) != 1 {
		t.Fatalf("Delete = %+v, %v", got, err)
	}
}

// The undo of a deletion restores what was merged into the memory, and counts it.
func TestUndeleteOfMergedMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories = 5 })
	scope := b.users[0]
	kept, second, third := b.remember(t, scope, "a", nil), b.full(t, scope, "b"), b.remember(t, scope, "c", nil)
	b.merge(t, scope, second, third)
	b.merge(t, scope, kept, second)
	mergedRows := func() []string {
		return append(b.rowsExceptUnits(t), fmt.Sprint(b.mergedInto(t, scope, kept), b.mergedInto(t, scope, second)))
	}
	before := mergedRows()
	deleted, err := b.Memories().DeleteUndoable(t.Context(), scope, []string{kept, second})
	if err != nil || !slices.Equal(deleted.IDs, []string{kept}) {
		t.Fatalf("DeleteUndoable = %+v, %v", deleted, err)
	}
	b.checkCounters(t)
	var used []string
	for i := range 3 {
		used = append(used, b.remember(t, scope, fmt.Sprint("used ", i), nil))
	}
	_, err = b.Memories().Undelete(t.Context(), scope, deleted.Undo)
	wantKind(t, "undo over the quota", err, fault.Forbidden)
	for _, id := range used {
		b.forget(t, scope, id)
	}
	if got, err := b.Memories().Undelete(t.Context(), scope, deleted.Undo); err != nil || !slices.Equal(got, []string{kept}) {
		t.Fatalf("Undelete = %v, %v", got, err)
	}
	exec(t, b.owner, "update users set memory_seq = memory_seq - 3 where id = $1", int64(scope.User)) // those in between
	if diff := cmp.Diff(before, mergedRows()); diff != "" {
		t.Errorf("rows after the undo (-before +after):\n%s", diff)
	}
}

// The deletion of an account includes memories that were merged into one that was stored after it began.
func TestPurgeIncludesMergedMemories(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	old := b.full(t, scope, "a")
	cutoff, err := b.Accounts().BeginPurge(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.remember(t, scope, "b", nil)
	b.merge(t, scope, kept, old)
	b.purgeAll(t, scope, cutoff)
	if n := b.count(t, "select count(*) from merged_memories"); n != 0 {
		t.Errorf("%d merged memories are left", n)
	}
	b.get(t, scope, kept)
}
