package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const seat = "2025-05-09 Prefers the window seat"

// A text that the bucket already contains is not stored again.
func TestExactDuplicateIsNotStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	long := strings.Repeat("x", memory.MaxText)
	first, longest := b.remember(t, scope, seat, nil), b.remember(t, scope, long, nil)
	buckets, err := b.ListBuckets(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	work, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: "Work"})
	if err != nil {
		t.Fatal(err)
	}
	b.jobUnits(t)
	for name, test := range map[string]struct {
		reason    string
		scope     tenant.Scope
		bucket    int64
		text      string
		duplicate string // the id of the existing memory
	}{
		"same text":             {"the default bucket contains it", scope, 0, seat, first},
		"default bucket by id":  {"it is the same bucket", scope, buckets[0].ID, seat, first},
		"longest text":          {"every length is compared", scope, 0, long, longest},
		"another bucket":        {"it is not in this bucket", scope, work, seat, ""},
		"another case":          {"the text differs", scope, 0, strings.ToUpper(seat), ""},
		"more whitespace":       {"the text differs", scope, 0, seat + " ", ""},
		"last character":        {"the text differs", scope, 0, long[1:] + "y", ""},
		"another user":          {"users do not see each other's data", b.users[1], 0, seat, ""},
		"a user of another one": {"tenants do not see each other's data", b.users[2], 0, seat, ""},
	} {
		m := newMemory(test.text)
		m.Bucket = test.bucket
		got, err := b.Memories().Create(t.Context(), test.scope, m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Duplicate != (test.duplicate != "") {
			t.Errorf("%s (%s): Duplicate = %t", name, test.reason, got.Duplicate)
		}
		if test.duplicate != "" && got.ID != test.duplicate {
			t.Errorf("%s (%s): ID = %s, want %s", name, test.reason, got.ID, test.duplicate)
		}
	}
	if list, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 99}); err != nil || len(list) != 6 {
		t.Errorf("the user has %d memories, %v, want 6", len(list), err)
	}
	m := newMemory(seat)
	m.Bucket = 1 << 40
	_, err = b.Memories().Create(t.Context(), scope, m)
	wantKind(t, "Create in no bucket", err, fault.NotFound)
}

// A duplicate needs no quota, writes no audit record and has no index job.
func TestDuplicateChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories, q.Storage = 1, int64(len(seat)) })
	scope := b.users[0]
	first := b.remember(t, scope, seat, nil)
	b.jobUnits(t)
	records := len(b.auditOf(t, scope.Tenant))
	got, err := b.Memories().Create(t.Context(), scope, newMemory(seat))
	if err != nil {
		t.Fatalf("Create with a full quota: %v", err)
	}
	if diff := cmp.Diff(memory.Created{ID: first, Duplicate: true}, got); diff != "" {
		t.Fatalf("Create with a full quota (-want +got):\n%s", diff)
	}
	if n := len(b.auditOf(t, scope.Tenant)); n != records {
		t.Errorf("%d audit records, want %d", n, records)
	}
	if jobs := b.jobUnits(t); len(jobs) != 0 {
		t.Errorf("index jobs for units %v", jobs)
	}
	_, err = b.Memories().Create(t.Context(), scope, newMemory("another"))
	wantKind(t, "Create of another text", err, fault.Forbidden)
}

// An edit or a move may result in two memories with the same text. The oldest is the
// existing one, and a text that was replaced can be stored again.
func TestDuplicatesByEditAndMove(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	first, second := b.remember(t, scope, "one", nil), b.remember(t, scope, "two", nil)
	text := "one"
	if _, err := b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: second, Text: &text}}); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Memories().Create(t.Context(), scope, newMemory("one")); err != nil || got.ID != first {
		t.Errorf("Create of a text stored twice = %+v, %v, want %s", got, err, first)
	}
	b.remember(t, scope, "two", nil)
	work, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: "Work"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memories().Move(t.Context(), scope, memory.MoveInput{IDs: []string{first, second}, Bucket: memory.BucketRef{ID: work}}); err != nil {
		t.Fatal(err)
	}
	again := b.remember(t, scope, "one", nil)
	if _, err := b.Memories().Delete(t.Context(), scope, []string{again}); err != nil {
		t.Fatal(err)
	}
	b.remember(t, scope, "one", nil)
}

// A repeated key returns the first response, also for a duplicate.
func TestDuplicateWithIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	m := newMemory(seat)
	for _, step := range []struct {
		key       string
		duplicate bool
	}{{"a", false}, {"b", true}, {"a", false}, {"b", true}} {
		m.Request = request("memory", step.key, seat)
		got, err := b.Memories().Create(t.Context(), b.users[0], m)
		if err != nil {
			t.Fatal(err)
		}
		if got.Duplicate != step.duplicate {
			t.Errorf("key %s: Duplicate = %t, want %t", step.key, got.Duplicate, step.duplicate)
		}
	}
}

func TestConcurrentDuplicatesAreStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0] // without a default bucket yet
	results := make([]memory.Created, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			m := newMemory(seat)
			if i%2 == 1 {
				m.Request = request("memory", fmt.Sprint(i), seat)
			}
			var err error
			if results[i], err = b.Memories().Create(t.Context(), scope, m); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	stored := 0
	for _, r := range results {
		if r.ID != results[0].ID {
			t.Errorf("ids %s and %s", r.ID, results[0].ID)
		}
		if !r.Duplicate {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("%d of %d requests stored the text, want 1", stored, len(results))
	}
	if list, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Limit: 99}); err != nil || len(list) != 1 {
		t.Errorf("%d memories, %v, want 1", len(list), err)
	}
}

// The search for a duplicate reads a few rows, however many memories there are, under
// row-level security and with a generic plan.
func TestDuplicatesAreFoundWithIndex(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	scope := b.users[0]
	b.remember(t, scope, seat, nil)
	const memories = 20000
	exec(t, b.owner, `insert into memories (tenant_id, user_id, id, seq, bucket_id, text, tokens)
		select tenant_id, user_id, gen_random_uuid(), 1 + n, bucket_id, 'note ' || n, 2 from memories, generate_series(1, $1::int) n`, memories)
	defer exec(t, b.owner, "delete from memories where text like 'note %'") // before the counters are compared
	exec(t, b.owner, "analyze memories, buckets")
	conn := session(t, d, scope)
	exec(t, conn, "prepare find (uuid, bigint, text, bigint, text, text, text[], jsonb, text[], text[], int) as "+namedQuery(t, "memories.sql", "PrepareMemory",
		"tenant_id", "user_id", "text", "bucket_id", "agent_id", "run_id", "tags", "metadata", "repeats", "days", "units"))
	store := namedQuery(t, "memories.sql", "CreateMemory", "tenant_id", "user_id", "text", "bucket_id", "agent_id", "run_id",
		"tags", "metadata", "storage", "embedded", "id", "tokens", "source", "attribute_bytes")
	exec(t, conn, "prepare store as "+strings.Replace(store, "require_created(exists (select from made))", "from made", 1)) // which would fail
	var bucket int64
	if err := conn.QueryRow(t.Context(), "select id from buckets").Scan(&bucket); err != nil {
		t.Fatal(err)
	}
	args := fmt.Sprintf("'%s', %d, '%s', %d, '', '', '{}', '{}'", scope.Tenant, scope.User, seat, bucket)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		exec(t, conn, "set plan_cache_mode = "+mode)
		for name, test := range map[string]struct {
			query, args string
			rows        float64
		}{
			"same text":     {"find", args + ", '{}', '{}', 1", 1},
			"repeated text": {"find", strings.Replace(args, seat, "- "+seat, 1) + ", array['none', '" + seat + "'], array['', ''], 1", 1},
			"stored":        {"store", args + ", 1, 0, gen_random_uuid(), 1, '', 0", 0}, // it is stored already
		} {
			statement := fmt.Sprintf("execute %s (%s)", test.query, test.args)
			plan := explain(t, conn, statement)
			if plan.Rows != test.rows {
				t.Errorf("%s, %s: %v rows, want %v", name, mode, plan.Rows, test.rows)
			}
			if node, rows := plan.most(); rows > 10 {
				t.Errorf("%s, %s: %s of %s reads %v rows", name, mode, node.Type, node.Relation, rows)
			}
			if rows := readRows(t, conn, "memories", statement); rows > 10 {
				t.Errorf("%s, %s: %d memories are read", name, mode, rows)
			}
		}
	}
}

// The function that finds them runs as the owner, and only for its scope.
func TestMemoriesWithTextOnlyInScope(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, u := range b.users {
		b.remember(t, u, seat, nil)
	}
	target := b.users[0]
	for i, u := range b.users {
		for _, user := range []string{fmt.Sprint(u.User), "*", ""} {
			var n int
			err := pgx.BeginFunc(t.Context(), b.owner, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "select set_config('mnemo.tenant', $1, true), set_config('mnemo.user', $2, true)", u.Tenant, user); err != nil {
					return err
				}
				return tx.QueryRow(t.Context(), "select count(*) from memories_with_text($1, $2, $3)", target.Tenant, target.User, seat).Scan(&n)
			})
			want := 0
			if i == 0 && user != "*" && user != "" {
				want = 1
			}
			if err != nil || n != want {
				t.Errorf("as user %q in the tenant of user %d: found %d, want %d, %v", user, i, n, want, err)
			}
		}
	}
}
