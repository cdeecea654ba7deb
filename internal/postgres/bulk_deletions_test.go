package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Deleting many rows runs no query for each of them, and deletes their parts only.
func TestBulkDeletions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	const count = 10
	for _, scope := range b.users {
		for i := range count {
			b.remember(t, scope, fmt.Sprintf("note %d", i), nil)
			b.upsert(t, scope, newConversation(fmt.Sprint(i), i, 1))
		}
	}
	tests := map[string]struct {
		most          int // deletions of a trigger
		memoryParts   int // of each user: a version and a unit of each memory
		conversations int // units
	}{
		"memories": {1, 0, count},
		// Messages are deleted by a foreign key.
		"conversations": {count, 2 * count, 0},
	}
	for table, test := range tests {
		tx, err := b.owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		calls := deleteRows(t, tx, table, b.users[0])
		for name, n := range calls {
			if n > test.most {
				t.Errorf("%s: %s ran %d times for %d rows, want at most %d", table, name, n, count, test.most)
			}
		}
		if n := calls["delete_parts"]; n != 1 {
			t.Errorf("%s: delete_parts ran %d times, want once", table, n)
		}
		for i, scope := range b.users {
			memoryParts, conversations := partsOf(t, tx, scope)
			if i > 0 {
				test.memoryParts, test.conversations = 2*count, count
			}
			if memoryParts != test.memoryParts || conversations != test.conversations {
				t.Errorf("%s: user %d has %d parts of memories and %d of conversations, want %d and %d",
					table, i, memoryParts, conversations, test.memoryParts, test.conversations)
			}
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A statement that deletes the parts of memories itself tells the trigger so. That counts for one statement.
func TestDeletionOfParts(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	b.remember(t, scope, "note", nil)
	tx, err := b.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	const nothing = "delete from memories where id = '00000000-0000-0000-0000-000000000000'"
	for _, sql := range []string{"select set_config('mnemo.parts', 'deleted', true)", "delete from conversations", "delete from merged_memories", nothing} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var parts string
	if err := tx.QueryRow(t.Context(), "select current_setting('mnemo.parts')").Scan(&parts); err != nil || parts != "" {
		t.Errorf("mnemo.parts is %q, %v after a deletion of memories, want nothing", parts, err)
	}
	if _, err := tx.Exec(t.Context(), "delete from memories"); err != nil {
		t.Fatal(err)
	}
	if parts, _ := partsOf(t, tx, scope); parts > 0 {
		t.Errorf("a later statement left %d parts of memories", parts)
	}
}

// deleteRows deletes a user's rows and returns how many times each trigger ran.
func deleteRows(t *testing.T, tx pgx.Tx, table string, scope tenant.Scope) map[string]int {
	t.Helper()
	var raw []byte
	sql := fmt.Sprintf("explain (analyze, format json) delete from %s where tenant_id = '%s' and user_id = %d", table, scope.Tenant, scope.User)
	if err := tx.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Triggers []struct {
			Name       string `json:"Trigger Name"`
			Constraint string `json:"Constraint Name"`
			Calls      int
		}
	}
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, r := range plans[0].Triggers {
		calls[r.Name+r.Constraint] += r.Calls
	}
	return calls
}

// partsOf counts the versions and units of a user's memories, and the units of the conversations.
func partsOf(t *testing.T, tx pgx.Tx, scope tenant.Scope) (memories, conversations int) {
	t.Helper()
	err := tx.QueryRow(t.Context(), `select count(*) filter (where kind = 1) + (select count(*) from memory_versions where tenant_id = $1 and user_id = $2),
		count(*) filter (where kind = 2) from units where tenant_id = $1 and user_id = $2`,
		string(scope.Tenant), int64(scope.User)).Scan(&memories, &conversations)
	if err != nil {
		t.Fatal(err)
	}
	return memories, conversations
}
