package postgres_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// chained stores a memory with a chain of merged ones, deeper than a merge can make it, and returns all ids, the kept one first.
func (b *testBundle) chained(t *testing.T, scope tenant.Scope, depth int) []string {
	t.Helper()
	ids := []string{b.remember(t, scope, "kept", nil)}
	for range depth {
		ids = append(ids, uuid.NewString())
	}
	exec(t, b.owner, `insert into merged_memories (tenant_id, user_id, id, seq, bucket_id, text, tokens, source, version, created_at, updated_at,
			agent_id, run_id, tags, metadata, attribute_bytes, merged_into, merged_at)
		select m.tenant_id, m.user_id, ($2::uuid[])[i + 1], m.seq, m.bucket_id, m.text, m.tokens, m.source, m.version, m.created_at, m.updated_at,
			m.agent_id, m.run_id, m.tags, m.metadata, m.attribute_bytes, ($2::uuid[])[i], now()
		from memories m cross join generate_series(1, $3) i where m.id = $1`, ids[0], ids, depth)
	exec(t, b.owner, `insert into memory_versions (tenant_id, user_id, memory_id, version, text)
		select tenant_id, user_id, id, 1, text from merged_memories where user_id = $1`, int64(scope.User))
	exec(t, b.owner, `update usage set memories = memories + $2, storage = storage + $2 * octet_length('kept') where tenant_id = $1`, string(scope.Tenant), depth)
	exec(t, b.owner, `update users set memories = memories + $2 where id = $1`, int64(scope.User), depth)
	return ids
}

// A chain of merges of any depth is deleted with its memory, its account, its user and its tenant.
func TestDeletionOfDeepMerges(t *testing.T) {
	t.Parallel()
	const depth = 5000
	for name, remove := range map[string]func(t *testing.T, b *testBundle, scope tenant.Scope, ids []string){
		"the memory": func(t *testing.T, b *testBundle, scope tenant.Scope, ids []string) {
			got, err := b.Memories().Delete(t.Context(), scope, ids[:1])
			if err != nil || len(got.IDs)+len(got.Merged) != len(ids) {
				t.Fatalf("Delete = %d and %d memories, %v, want %d", len(got.IDs), len(got.Merged), err, len(ids))
			}
		},
		"a merged memory": func(t *testing.T, b *testBundle, scope tenant.Scope, ids []string) {
			got, err := b.Memories().Delete(t.Context(), scope, ids[1:2])
			if err != nil || !slices.Equal(got.IDs, ids[1:2]) || len(got.Merged) != depth-1 {
				t.Fatalf("Delete = %v and %d memories, %v, want %s and %d", got.IDs, len(got.Merged), err, ids[1], depth-1)
			}
		},
		"the memory, undone and deleted again": func(t *testing.T, b *testBundle, scope tenant.Scope, ids []string) {
			got, err := b.Memories().DeleteUndoable(t.Context(), scope, ids[:1])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Memories().Undelete(t.Context(), scope, got.Undo); err != nil {
				t.Fatal(err)
			}
			b.forget(t, scope, ids[0])
		},
		"the account": func(t *testing.T, b *testBundle, scope tenant.Scope, ids []string) {
			if n := b.purgeAccount(t, scope); n != len(ids) {
				t.Errorf("the purge reports %d memories, want %d", n, len(ids))
			}
		},
		"the tenant": func(t *testing.T, b *testBundle, scope tenant.Scope, _ []string) {
			exec(t, b.owner, "update tenants set state = 'purging' where id = $1", string(scope.Tenant))
			if _, err := b.PurgeRows(t.Context(), scope.Tenant); err != nil {
				t.Fatal(err)
			}
		},
		"the user": func(t *testing.T, b *testBundle, scope tenant.Scope, _ []string) {
			exec(t, b.owner, "update users set purging = true, active = false where id = $1", int64(scope.User))
			if err := b.PurgeUser(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			scope := b.users[0]
			ids := b.chained(t, scope, depth)
			theirs := b.chained(t, b.users[2], 2)
			remove(t, b, scope, ids)
			if n := b.count(t, "select count(*) from merged_memories where user_id = $1", int64(scope.User)); n != 0 {
				t.Errorf("%d merged memories are left", n)
			}
			if n := b.count(t, "select count(*) from memory_versions where memory_id = any($1)", ids[1:]); n != 0 {
				t.Errorf("%d versions are left", n)
			}
			if got := b.mergedInto(t, b.users[2], theirs[0]); !slices.Equal(got, theirs[1:2]) {
				t.Errorf("%v are merged into the memory of another user, want %s", got, theirs[1])
			}
		})
	}
}

// purgeAccount deletes the data of an account and returns the number of memories.
func (b *testBundle) purgeAccount(t *testing.T, scope tenant.Scope) int {
	t.Helper()
	cutoff, err := b.Accounts().BeginPurge(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return b.purgeAll(t, scope, cutoff)
}

// purgeAll runs the batches of a purge and returns the number of memories.
func (b *testBundle) purgeAll(t *testing.T, scope tenant.Scope, cutoff account.PurgeCutoff) (memories int) {
	t.Helper()
	for done := false; !done; {
		got, err := b.Accounts().Purge(t.Context(), scope, cutoff)
		if err != nil {
			t.Fatal(err)
		}
		done = got.Done
		memories += got.Memories
	}
	return memories
}

// The deletion of a chain reads each merged memory once.
func TestDeletionOfDeepMergesIsLinear(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	ids := b.chained(t, scope, 2000)
	var plan []byte
	err := b.owner.QueryRow(t.Context(), fmt.Sprintf("explain (analyze, timing off, buffers, format json) select merged_tree('%s', %d, '{%s}')",
		scope.Tenant, scope.User, ids[0])).Scan(&plan)
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(plan, &plans); err != nil {
		t.Fatal(err)
	}
	const perMemory = 10 // pages
	pages := plans[0].Plan.Hit + plans[0].Plan.Read
	if pages > perMemory*len(ids) {
		t.Errorf("the tree of %d memories reads %d pages, want at most %d", len(ids), pages, perMemory*len(ids))
	}
}

// A merge is refused that would make a tree of merges deeper than MaxMergeDepth, so a deletion is bounded.
func TestMergesAreAtMostSoDeep(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	kept := b.remember(t, scope, "memory 0", nil)
	for i := range memory.MaxMergeDepth {
		next := b.remember(t, scope, fmt.Sprint("memory ", i+1), nil)
		b.merge(t, scope, next, kept)
		kept = next
	}
	next := b.remember(t, scope, "one too many", nil)
	_, err := b.Memories().Merge(t.Context(), scope, memory.MergeInput{Kept: next, IDs: []string{kept}})
	wantKind(t, "one level too many", err, fault.Conflict)
	b.merge(t, scope, kept, next) // a level that exists
}
