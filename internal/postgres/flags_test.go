package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

// setFlags sets flags and returns the existing ids.
func (b *testBundle) setFlags(t testing.TB, scope tenant.Scope, m chat.Flags, ids ...string) []string {
	t.Helper()
	out, err := b.Conversations().SetFlags(t.Context(), scope, ids, m)
	if err != nil {
		t.Fatalf("SetFlags: %v", err)
	}
	return out
}

func TestConversationsAreExcludedAndIncluded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 3, 2 })
	alice, bob := b.users[0], b.users[1]
	var ids []string
	for i, u := range []tenant.Scope{alice, alice, alice, bob, bob} {
		ids = append(ids, b.upsert(t, u, newConversation(fmt.Sprint(i), i, 4)).Conversation.ID)
	}
	check := func(reason, want string, jobs int) {
		t.Helper()
		if got := b.statuses(t, alice, bob); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
		if got := b.jobUnits(t); len(got) != jobs {
			t.Errorf("%s: jobs for %d units, want %d", reason, len(got), jobs)
		}
		b.checkCounters(t)
	}
	check("quota is assigned in the order of import", "aabab", 12)

	b.setFlags(t, alice, chat.Flags{Excluded: yes()}, ids[0])
	check("excluding frees quota for the newest blocked conversation within its user's quota", "eabaa", 8)
	b.setFlags(t, alice, chat.Flags{Excluded: yes()}, ids[0], ids[2])
	check("excluded stays excluded; blocked frees no quota", "eaeaa", 0)
	b.setFlags(t, alice, chat.Flags{Excluded: no()}, ids[0])
	check("over quota, an included conversation is blocked", "baeaa", 0)
	b.setFlags(t, bob, chat.Flags{Excluded: yes()}, ids[3], ids[4])
	check("quota freed by another user activates it", "aaeee", 12)
	b.setFlags(t, bob, chat.Flags{Excluded: no()}, ids[3], ids[4])
	check("the newest of two included conversations is activated", "aaeba", 4)
	b.setFlags(t, alice, chat.Flags{Excluded: no()}, ids[1])
	check("including an active conversation changes nothing", "aaeba", 0)
	b.setQuota(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 9, 9 })
	check("an excluded conversation is never activated", "aaeaa", 4)
	b.setFlags(t, alice, chat.Flags{Excluded: no()}, ids[2])
	check("within quota, an included conversation is active", "aaaaa", 4)

	passages, err := b.Passages(t.Context(), alice, []chat.Position{{Conversation: ids[2], Index: 1, End: 1}}, 0)
	if err != nil || len(passages) != 1 {
		t.Errorf("passages of an included conversation: %v, %v", passages, err)
	}
}

func TestConversationsArePinned(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	first := b.upsert(t, alice, newConversation("a", 0, 1)).Conversation
	second := b.upsert(t, alice, newConversation("b", 1, 1)).Conversation
	b.jobUnits(t)
	if diff := cmp.Diff([]string{first.ID}, b.setFlags(t, alice, chat.Flags{Pinned: yes()}, first.ID, uuid.NewString(), "x", "")); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	b.setFlags(t, alice, chat.Flags{Pinned: yes()}, first.ID) // again
	list, total, err := b.Conversations().List(t.Context(), alice, chat.ConversationFilter{Limit: 9, PinnedOnly: true})
	first.Pinned = true
	if diff := cmp.Diff([]chat.Conversation{first}, list); diff != "" || total != 1 || err != nil {
		t.Errorf("pinned, %d, %v (-want +got):\n%s", total, err, diff)
	}
	b.setFlags(t, alice, chat.Flags{Pinned: no(), Excluded: yes()}, first.ID, second.ID)
	if got := b.statuses(t, alice); got != "ee" {
		t.Errorf("both flags at once: %s, want ee", got)
	}
	if n := b.count(t, "select count(*) from conversations where pinned"); n != 0 {
		t.Errorf("%d are pinned, want none", n)
	}
	// A conversation that is sent again keeps its flags.
	b.setFlags(t, alice, chat.Flags{Pinned: yes()}, first.ID)
	again := b.upsert(t, alice, newConversation("a", 0, 2)).Conversation
	if again.Status != chat.Excluded || !again.Pinned {
		t.Errorf("sent again: %+v", again)
	}
}

func TestFlagsAreIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upsert(t, b.users[0], newConversation("a", 0, 2)).Conversation.ID
	for i, u := range b.users[1:] {
		for _, m := range []chat.Flags{{Excluded: yes()}, {Pinned: yes()}, {Excluded: no()}} {
			if got := b.setFlags(t, u, m, id); len(got) != 0 {
				t.Errorf("user %d set flags of %v", i+1, got)
			}
		}
	}
	if n := b.count(t, "select count(*) from conversations where status = 'active' and not pinned"); n != 1 {
		t.Error("another user changed the conversation")
	}
}

// One call sets the flags of many conversations, and a job activates those beyond
// the first batch.
func TestFlagsOfManyConversations(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var ids []string
	for i := range 130 {
		ids = append(ids, b.upsert(t, b.users[0], newConversation(fmt.Sprintf("%03d", i), i, 1)).Conversation.ID)
	}
	if got := b.setFlags(t, b.users[0], chat.Flags{Excluded: yes()}, ids...); len(got) != 130 {
		t.Errorf("%d ids, want 130", len(got))
	}
	b.checkCounters(t)
	b.setFlags(t, b.users[0], chat.Flags{Excluded: no()}, ids...)
	if n := b.count(t, "select count(*) from conversations where status = 'active'"); n != 100 {
		t.Errorf("%d are active before the job, want 100", n)
	}
	workJobs(t, b.DB, b.owner)
	if n := b.count(t, "select count(*) from conversations where status = 'active'"); n != 130 {
		t.Errorf("%d are active after the job, want 130", n)
	}
}

func TestConcurrentFlags(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 4 })
	ids := map[tenant.Scope][]string{}
	for i := range 12 {
		u := b.users[i%2]
		ids[u] = append(ids[u], b.upsert(t, u, newConversation(fmt.Sprint(i), i, 2)).Conversation.ID)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			u := b.users[w%2]
			for i := range 6 {
				m := chat.Flags{Excluded: []*bool{yes(), no()}[(w/2+i)%2]}
				if _, err := b.Conversations().SetFlags(contextWithoutCancel(t), u, ids[u][i%3:i%3+3], m); err != nil {
					t.Errorf("SetFlags: %v", err)
				}
			}
		})
	}
	wg.Wait()
	b.checkCounters(t)
	usage, err := b.Usage(t.Context(), b.users[0].Tenant)
	if err != nil || usage.Conversations > 4 || usage.Conversations < min(4, usage.Conversations+usage.Blocked) {
		t.Errorf("usage is %+v, %v", usage, err)
	}
}
