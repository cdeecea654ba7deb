package postgres_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// conversationChanges are random changes of the conversations of a tenant's users.
type conversationChanges struct {
	*testBundle
	random    *rand.Rand
	users     []tenant.Scope
	hard      int64 // the quotas
	perUser   int64
	stored    int        // conversations so far
	deletions []deletion // that can be undone, oldest first
}

type deletion struct {
	scope tenant.Scope
	id    string
	job   int // that makes it final
}

// some returns the ids of up to three conversations of a user, in random order.
func (c *conversationChanges) some(t *testing.T, scope tenant.Scope) (ids []string) {
	t.Helper()
	err := c.owner.QueryRow(t.Context(), `select coalesce(array_agg(id::text order by md5(id::text || $3)), '{}')
		from conversations where tenant_id = $1 and user_id = $2`, scope.Tenant, scope.User, fmt.Sprint(c.random.Uint64())).Scan(&ids)
	if err != nil {
		t.Fatal(err)
	}
	return ids[:min(len(ids), 1+c.random.IntN(3))]
}

// change makes a random change and returns its description.
func (c *conversationChanges) change(t *testing.T) string {
	t.Helper()
	user := c.random.IntN(len(c.users))
	scope := c.users[user]
	name := func(format string, args ...any) string {
		return fmt.Sprintf("user %d, ", user) + fmt.Sprintf(format, args...)
	}
	switch n := c.random.IntN(40); {
	case n < 14:
		c.stored++
		b := c.upsert(t, scope, newConversation(fmt.Sprint(c.stored), c.random.IntN(365), 1))
		return name("a new conversation is %s", b.Conversation.Status)
	case n < 17:
		ids := c.some(t, scope)
		if _, err := c.Conversations().Delete(t.Context(), scope, ids); err != nil {
			t.Fatal(err)
		}
		return name("deletion of %d", len(ids))
	case n < 24:
		ids := c.some(t, scope)
		deleted, err := c.Conversations().DeleteUndoable(t.Context(), scope, ids)
		if err != nil {
			t.Fatal(err)
		}
		if len(deleted.IDs) > 0 {
			exec(t, c.owner, "update deletions set expires_at = 'infinity' where id = $1", deleted.Undo) // however slow the machine is
			c.deletions = append(c.deletions, deletion{scope, deleted.Undo, c.count(t, "select max(id) from river_job where kind = $1", tenant.FinishDeletionsArgs{}.Kind())})
		}
		return name("deletion of %d that can be undone", len(deleted.IDs))
	case n < 26 && len(c.deletions) > 0:
		i := c.random.IntN(len(c.deletions))
		d := c.deletions[i]
		c.deletions = append(c.deletions[:i:i], c.deletions[i+1:]...)
		ids, err := c.Conversations().Undelete(t.Context(), d.scope, d.id)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("user %d, undo of the deletion of %d", d.scope.User, len(ids))
	case n < 34 && len(c.deletions) > 0:
		return c.finishOldest(t)
	case n < 36:
		excluded := c.random.IntN(2) == 0
		ids := c.some(t, scope)
		c.setFlags(t, scope, chat.Flags{Excluded: &excluded}, ids...)
		return name("excluded = %t for %d", excluded, len(ids))
	case n < 37:
		n := c.random.IntN(4)
		c.finishImport(t, c.storeImport(t, scope, n))
		return name("import of %d", n)
	case n < 38:
		c.hard, c.perUser = 2+c.random.Int64N(8), 1+c.random.Int64N(5)
		if c.random.IntN(4) == 0 {
			c.perUser = tenant.NoLimit
		}
		c.specs[0].Quota.Conversations, c.specs[0].Quota.UserConversations = c.hard, c.perUser
		if _, err := c.Apply(t.Context(), c.specs[0]); err != nil {
			t.Fatal(err)
		}
		if err := c.Rebalance(t.Context(), scope.Tenant); err != nil { // as the job does
			t.Fatal(err)
		}
		return fmt.Sprintf("quota %d, per user %d", c.hard, c.perUser)
	default:
		if _, err := c.Memories().DeleteUndoable(t.Context(), scope, []string{c.remember(t, scope, uuid.NewString(), nil)}); err != nil {
			t.Fatal(err)
		}
		return name("deletion of a memory")
	}
}

// finishOldest makes the oldest deletion final.
func (c *conversationChanges) finishOldest(t *testing.T) string {
	t.Helper()
	d := c.deletions[0]
	c.deletions = c.deletions[1:]
	exec(t, c.owner, "update deletions set expires_at = now() where id = $1", d.id)
	var raw []byte
	if err := c.owner.QueryRow(t.Context(), "delete from river_job where id = $1 returning args", d.job).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var args tenant.FinishDeletionsArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		t.Fatal(err)
	}
	if err := c.FinishDeletions(t.Context(), tenant.Scope(args)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("user %d, end of a deletion", d.scope.User)
}

// storeImport stores n conversations of a file, whose import has not ended.
func (b *testBundle) storeImport(t *testing.T, scope tenant.Scope, n int) importer.Run {
	t.Helper()
	run := importer.Run{Scope: scope, ID: uuid.NewString(), Worker: uuid.NewString()}
	exec(t, b.owner, `insert into imports (tenant_id, user_id, id, kind, platform, status, stored, worker, leased_until)
		values ($1, $2, $3, 'file', 'custom', 'running', false, $4, now() + interval '1 hour')`, scope.Tenant, scope.User, run.ID, run.Worker)
	exec(t, b.owner, `with added as (
			insert into conversations (tenant_id, user_id, id, external_id, platform, status, import_id, created_at, updated_at)
			select $1, $2, i, 'imported ' || i, 'custom', 'blocked', $3, now(), now() from (select gen_random_uuid() as i from generate_series(1, $4)) ids returning 1)
		update usage set blocked = blocked + (select count(*) from added) where tenant_id = $1`, scope.Tenant, scope.User, run.ID, n)
	return run
}

func (b *testBundle) finishImport(t *testing.T, run importer.Run) {
	t.Helper()
	if err := b.Imports().Finish(t.Context(), run, "", nil); err != nil {
		t.Fatal(err)
	}
}

// check fails the test if a quota is exceeded or, unless a deletion can be undone, if there is room for a blocked conversation.
func (c *conversationChanges) check(t *testing.T, step string) {
	t.Helper()
	var total int64
	users := make([]balance, len(c.users))
	for i, u := range c.users {
		users[i] = c.balance(t, u)
		total += users[i].active
	}
	if total > c.hard {
		t.Errorf("%s: %d active conversations exceed the quota of %d", step, total, c.hard)
	}
	for i, u := range users {
		if u.active > c.perUser {
			t.Errorf("%s: %d active conversations of user %d exceed the quota per user of %d", step, u.active, i, c.perUser)
		}
		if len(c.deletions) == 0 && u.blocked > 0 && total < c.hard && u.active < c.perUser {
			t.Errorf("%s: %d conversations of user %d are blocked below the quotas %d and %d: %+v", step, u.blocked, i, c.hard, c.perUser, users)
		}
	}
}

// After each change, no quota is exceeded, and no conversation is blocked that the quotas allow.
func TestChangesMatchTheQuota(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := &conversationChanges{testBundle: setup(t, nil), random: rand.New(rand.NewPCG(seed, 11)), hard: 1e6, perUser: tenant.NoLimit}
			c.specs[0].Users = append(c.specs[0].Users, tenant.UserSpec{Name: "carol"})
			got, err := c.Apply(t.Context(), c.specs[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range got.Users {
				c.users = append(c.users, tenant.Scope{Tenant: got.ID, User: u.ID})
			}
			exec(t, c.owner, "delete from river_job")
			for step := range 250 {
				c.check(t, fmt.Sprintf("step %d, %s", step, c.change(t)))
				if t.Failed() {
					return
				}
			}
			for len(c.deletions) > 0 {
				c.finishOldest(t)
			}
			c.check(t, "in the end")
			if n := c.count(t, "select count(*) from conversations where tenant_id <> $1", c.users[0].Tenant); n > 0 {
				t.Errorf("the other tenant has %d conversations", n)
			}
		})
	}
}
