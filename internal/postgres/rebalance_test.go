package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// insertBlocked inserts n blocked conversations of a user, one per minute.
func (b *testBundle) insertBlocked(t *testing.T, scope tenant.Scope, n int) {
	t.Helper()
	for i := range n {
		exec(t, b.owner, `insert into conversations (tenant_id, user_id, id, external_id, platform, status, import_id, created_at, updated_at)
			values ($1, $2, $3::uuid, $3::uuid::text, 'custom', 'blocked', $3::uuid, now(), timestamptz '2024-01-01' + $4 * interval '1 minute')`,
			scope.Tenant, scope.User, uuid.NewString(), i)
	}
	exec(t, b.owner, "update usage set blocked = blocked + $2 where tenant_id = $1", scope.Tenant, n)
}

// balance summarizes the conversations of a user; oldest and newest are minutes.
type balance struct{ active, blocked, oldestActive, newestBlocked int64 }

func (b *testBundle) balance(t *testing.T, scope tenant.Scope) balance {
	t.Helper()
	var out balance
	err := b.owner.QueryRow(t.Context(), `select count(*) filter (where status = 'active'), count(*) filter (where status = 'blocked'),
			coalesce(min(at) filter (where status = 'active'), -1), coalesce(max(at) filter (where status = 'blocked'), -1)
		from (select status, (extract(epoch from updated_at - timestamptz '2024-01-01') / 60)::bigint as at
			from conversations where tenant_id = $1 and user_id = $2) c`, scope.Tenant, scope.User).
		Scan(&out.active, &out.blocked, &out.oldestActive, &out.newestBlocked)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// After every change of the quotas, no quota is exceeded, no usable quota is left,
// and the newest conversations of each user are active.
func TestRebalanceMatchesTheQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 0, tenant.NoLimit })
	one, two, other := b.users[0], b.users[1], b.users[2]
	const each = 160 // more than two batches in total
	for _, scope := range []tenant.Scope{one, two, other} {
		b.insertBlocked(t, scope, each)
	}
	random := rand.New(rand.NewPCG(3, 5))
	for round := range 12 {
		hard, perUser := random.Int64N(2*each+40), random.Int64N(each+40)
		if round%4 == 0 {
			perUser = tenant.NoLimit
		}
		b.setQuota(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = hard, perUser })
		step := fmt.Sprintf("round %d, quota %d, per user %d", round, hard, perUser)
		first, second := b.balance(t, one), b.balance(t, two)
		if n := first.active + second.active; n > hard {
			t.Errorf("%s: %d active conversations exceed the quota", step, n)
		}
		for _, user := range []balance{first, second} {
			if user.active > perUser {
				t.Errorf("%s: %d active conversations exceed the quota per user", step, user.active)
			}
			if user.active+user.blocked != each {
				t.Errorf("%s: %+v, want %d in total", step, user, each)
			}
			if first.active+second.active < hard && user.active < perUser && user.blocked > 0 {
				t.Errorf("%s: %+v, want no blocked conversations below the quota", step, user)
			}
			if user.active > 0 && user.newestBlocked > user.oldestActive {
				t.Errorf("%s: %+v, want the newest conversations active", step, user)
			}
		}
	}
	got := b.balance(t, other)
	if got.active != 0 {
		t.Errorf("active conversations of the other tenant = %d, want 0", got.active)
	}
	if got.blocked != each {
		t.Errorf("blocked conversations of the other tenant = %d, want %d", got.blocked, each)
	}
}

// An undo exceeds neither the quota of the user nor, after that, the tenant's, if others have used both in the meantime.
func TestUndoMatchesBothQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 4, 3 })
	one, two := b.users[0], b.users[1]
	var ids []string
	for i := range 3 {
		ids = append(ids, b.upsert(t, one, newConversation(fmt.Sprint(i), i, 1)).Conversation.ID)
	}
	b.upsert(t, two, newConversation("0", 0, 1))
	deleted, err := b.Conversations().DeleteUndoable(t.Context(), one, ids[:2])
	if err != nil {
		t.Fatal(err)
	}
	b.upsert(t, one, newConversation("3", 3, 1))
	b.upsert(t, two, newConversation("1", 1, 1))
	if _, err := b.Conversations().Undelete(t.Context(), one, deleted.Undo); err != nil {
		t.Fatal(err)
	}
	first, second := b.balance(t, one), b.balance(t, two)
	if first.active > 3 || first.active+second.active != 4 || first.blocked+second.blocked != 2 {
		t.Errorf("conversations after the undo: %+v and %+v, want 4 active ones, at most 3 of the first user, and 2 blocked ones", first, second)
	}
}

// If a deletion frees the tenant's quota, conversations of other users become active in its place as soon as it is final, even if other changes or an
// erasure of the user follow it.
func TestDeletionFreesTheTenantsQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 2 })
	one, two := b.users[0], b.users[1]
	var ids []string
	for i := range 2 {
		ids = append(ids, b.upsert(t, one, newConversation(fmt.Sprint(i), i, 1)).Conversation.ID)
	}
	for i := range 2 {
		b.upsert(t, two, newConversation(fmt.Sprint(i), i, 1))
	}
	if _, err := b.Conversations().DeleteUndoable(t.Context(), one, ids[:1]); err != nil {
		t.Fatal(err)
	}
	if got := b.statuses(t, two); got != "bb" {
		t.Errorf("while the deletion can be undone: %s, want bb", got)
	}
	if _, err := b.Conversations().Delete(t.Context(), one, ids[1:]); err != nil {
		t.Fatal(err)
	}
	if err := b.EraseJobs(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	b.expireDeletions(t)
	if got := b.statuses(t, two); got != "aa" {
		t.Errorf("after the end of the deletion: %s, want aa", got)
	}
}

// Changing a user's conversations reads no other users of the tenant, and none of their conversations, even if some of these are blocked by the
// quota of their user.
func TestChangesReadNoConversationsOfOthers(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, func(q *tenant.Quota) { q.UserConversations, q.Users = 3, tenant.NoLimit })
	const others, most = 2000, 50
	b.fillUsers(t, b.application(t, 0, webApplication()), others)
	exec(t, b.owner, `with added as (
			insert into conversations (tenant_id, user_id, id, external_id, platform, status, import_id, created_at, updated_at)
			select tenant_id, id, gen_random_uuid(), 'one', 'custom', 'active', gen_random_uuid(), now(), now() from users where kind = 'application_user'
			returning tenant_id, user_id), counted as (
			update users u set conversations = 1 from added a where u.tenant_id = a.tenant_id and u.id = a.user_id)
		update usage set conversations = conversations + $2 where tenant_id = $1`, b.users[0].Tenant, others)
	for i := range 3 {
		b.upsert(t, b.users[1], newConversation(fmt.Sprint(i), i, 1))
	}
	b.insertBlocked(t, b.users[1], others)
	exec(t, b.owner, "analyze users, conversations")
	b.Close()
	scope := b.users[0]
	var ids []string
	var undo string
	deleteUndoable := func(b *testBundle, id string) {
		deleted, err := b.Conversations().DeleteUndoable(t.Context(), scope, []string{id})
		if err != nil {
			t.Fatal(err)
		}
		undo = deleted.Undo
	}
	for _, step := range []struct {
		name string
		do   func(*testBundle)
		want string
	}{
		{"three new conversations", func(b *testBundle) {
			for i := range 3 {
				ids = append(ids, b.upsert(t, scope, newConversation(fmt.Sprint(i), i, 2)).Conversation.ID)
			}
		}, "aaa"},
		{"new messages", func(b *testBundle) { b.upsert(t, scope, newConversation("0", 0, 3)) }, "aaa"},
		{"exclusion", func(b *testBundle) { b.setFlags(t, scope, chat.Flags{Excluded: yes()}, ids[0]) }, "eaa"},
		{"a new conversation in its place", func(b *testBundle) { b.upsert(t, scope, newConversation("3", 3, 1)) }, "eaaa"},
		{"inclusion over the quota", func(b *testBundle) { b.setFlags(t, scope, chat.Flags{Excluded: no()}, ids[0]) }, "baaa"},
		{"deletion of a blocked conversation", func(b *testBundle) {
			if _, err := b.Conversations().Delete(t.Context(), scope, ids[:1]); err != nil {
				t.Fatal(err)
			}
		}, "aaa"},
		{"new conversations over the quota", func(b *testBundle) {
			b.upsert(t, scope, newConversation("4", 4, 1))
			b.upsert(t, scope, newConversation("5", 5, 1))
		}, "aaabb"},
		{"deletion of an active conversation", func(b *testBundle) {
			if _, err := b.Conversations().Delete(t.Context(), scope, ids[1:2]); err != nil {
				t.Fatal(err)
			}
		}, "aaba"},
		{"deletion that can be undone", func(b *testBundle) { deleteUndoable(b, ids[2]) }, "aba"},
		{"its undo", func(b *testBundle) {
			if _, err := b.Conversations().Undelete(t.Context(), scope, undo); err != nil {
				t.Fatal(err)
			}
		}, "aaba"},
		{"another deletion that can be undone", func(b *testBundle) { deleteUndoable(b, ids[2]) }, "aba"},
		{"the ends of the deletions", func(b *testBundle) { b.expireDeletions(t) }, "aaa"},
		{"deletion of a memory", func(b *testBundle) {
			if _, err := b.Memories().DeleteUndoable(t.Context(), scope, []string{b.remember(t, scope, "text", nil)}); err != nil {
				t.Fatal(err)
			}
			b.expireDeletions(t)
		}, "aaa"},
		{"import", func(b *testBundle) { b.finishImport(t, b.storeImport(t, scope, 1)) }, "aaab"},
		{"deletion of the account", func(b *testBundle) { b.purge(t, scope) }, ""},
	} {
		var got string
		rows := b.rowsRead(t, d, func(own *testBundle) { step.do(own); got = own.statuses(t, scope) })
		if rows == 0 || rows > most {
			t.Errorf("%s: %d rows of users and conversations are read, want 1 to %d", step.name, rows, most)
		}
		if got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

// rowsRead returns the number of rows of users and conversations that do reads with connections of its own. PostgreSQL
// reports them when a connection ends.
func (b *testBundle) rowsRead(t *testing.T, d postgrestest.Database, do func(*testBundle)) int {
	t.Helper()
	exec(t, b.owner, "select pg_stat_force_next_flush()") // of what the owner has read
	await := func() {
		exec(t, b.owner, `do $$ begin while exists (select from pg_stat_activity where datname = current_database() and usename <> current_user) loop
			perform pg_sleep(0.005), pg_stat_clear_snapshot(); end loop; end $$`)
	}
	count := func() int {
		return b.count(t, "select sum(seq_tup_read + idx_tup_fetch) from pg_stat_user_tables where relname in ('users', 'conversations')")
	}
	await()
	before := count()
	own := *b
	own.DB = postgrestest.Open(t, d)
	do(&own)
	own.Close()
	await()
	return count() - before
}
