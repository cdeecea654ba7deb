package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var start = time.Date(2025, 5, 9, 12, 0, 0, 0, time.UTC)

// talk returns a conversation of n messages that ends day days after start.
func talk(external string, day, n int) chat.Upsert {
	at := start.AddDate(0, 0, day)
	u := chat.Upsert{ExternalID: external, Platform: "custom", PlatformName: "Custom", Title: "Talk " + external, CreatedAt: at}
	for i := range n {
		text := fmt.Sprintf("%s says number %d", external, i)
		u.Messages = append(u.Messages, chat.Message{
			ExternalID: fmt.Sprint("m", i), Sender: []chat.Sender{chat.Human, chat.Assistant}[i%2], Text: text,
			Tokens: len(strings.Fields(text)), CreatedAt: at.Add(time.Duration(i) * time.Minute),
		})
	}
	return u
}

func (b *testBundle) upsert(t testing.TB, scope tenant.Scope, u chat.Upsert) chat.Outcome {
	t.Helper()
	out, err := b.Conversations().Upsert(t.Context(), scope, u, chat.Units)
	if err != nil {
		t.Fatalf("Upsert(%s): %v", u.ExternalID, err)
	}
	return out
}

// statuses returns the first letters of the users' conversations' states, in
// order of their external ids.
func (b *testBundle) statuses(t testing.TB, scopes ...tenant.Scope) string {
	t.Helper()
	var list []chat.Conversation
	for _, s := range scopes {
		part, total, err := b.Conversations().List(t.Context(), s, chat.ConversationFilter{Limit: 1000})
		if err != nil || total != len(part) {
			t.Fatalf("List: %d of %d, %v", len(part), total, err)
		}
		list = append(list, part...)
	}
	slices.SortFunc(list, func(a, b chat.Conversation) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	out := ""
	for _, c := range list {
		out += string(c.Status[0])
	}
	return out
}

func TestConversationIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	in := talk("a", 0, 2500)
	out := b.upsert(t, b.users[0], in)
	want := chat.Conversation{
		ID: out.Conversation.ID, ExternalID: "a", Platform: "custom", PlatformName: "Custom", Title: "Talk a", Status: chat.Active,
		MessageCount: 2500, TokenCount: 2500 * 4, CreatedAt: start, UpdatedAt: start.Add(2499 * time.Minute),
	}
	if diff := cmp.Diff(chat.Outcome{ImportID: out.ImportID, Conversation: want, Added: 2500}, out); diff != "" {
		t.Errorf("Upsert (-want +got):\n%s", diff)
	}
	got, messages, err := b.Conversations().Get(t.Context(), b.users[0], out.Conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range in.Messages {
		in.Messages[i].Index = i
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(in.Messages, messages); diff != "" {
		t.Errorf("Get (-want +got):\n%s", diff)
	}
	units, jobs := b.unitsOf(t, got.ID), b.jobUnits(t)
	if len(units) != 2500 || len(jobs) != 2500 {
		t.Errorf("%d units, %d in jobs, want 2500", len(units), len(jobs))
	}
}

func TestConversationSentAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	first := b.upsert(t, scope, talk("a", 0, 12))
	id := first.Conversation.ID
	before := b.unitsOf(t, id)
	b.jobUnits(t)

	same := b.upsert(t, scope, talk("a", 0, 12))
	if diff := cmp.Diff(first, same, cmpopts.IgnoreFields(chat.Outcome{}, "ImportID", "Added")); diff != "" || same.Added != 0 {
		t.Errorf("sent again unchanged (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(before, b.unitsOf(t, id)); diff != "" || len(b.jobUnits(t)) > 0 {
		t.Errorf("an unchanged conversation was written again:\n%s", diff)
	}
	if n := b.count(t, "select count(*) from conversations where import_id = $1", first.ImportID); n != 1 {
		t.Error("the import that last changed the conversation is not the first")
	}

	// Message 5 changes, 12 is new, all but 5 and 12 are missing.
	next := talk("a", 0, 13)
	next.Messages = []chat.Message{next.Messages[12], next.Messages[5]}
	next.Messages[1].Text = "Zebras instead"
	next.Messages[1].Tokens = 2
	out := b.upsert(t, scope, next)
	if out.Added != 1 || out.Replaced != 1 || out.Conversation.MessageCount != 13 || out.Conversation.ID != id {
		t.Errorf("sent again with changes: %+v", out)
	}
	_, messages, err := b.Conversations().Get(t.Context(), scope, id)
	if err != nil || len(messages) != 13 || messages[5].Text != "Zebras instead" || messages[12].ExternalID != "m12" {
		t.Fatalf("messages: %+v, %v", messages, err)
	}
	// Units of 3 to 7, and of 10 to 12, are new ones.
	after, jobs := b.unitsOf(t, id), b.jobUnits(t)
	kept, gone := 0, 0
	for _, u := range before {
		switch {
		case slices.Contains(after, u):
			kept++
		case jobs[u]:
			gone++
		}
	}
	if kept != 5 || gone != 7 || len(after) != 13 || len(jobs) != 7+8 {
		t.Errorf("%d units kept, %d gone with a job, %d in all, %d in jobs; want 5, 7, 13, 15", kept, gone, len(after), len(jobs))
	}
	if n := b.count(t, "select count(*) from imports where status = 'done' and imported + updated + skipped = 1"); n != 3 {
		t.Errorf("%d imports are recorded, want 3", n)
	}
}

func (b *testBundle) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := b.owner.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func TestConversationDetailsChange(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	in := talk("a", 0, 1)
	first := b.upsert(t, b.users[0], in)
	b.jobUnits(t)
	in.Title, in.UpdatedAt = "Renamed", start.AddDate(1, 0, 0)
	out := b.upsert(t, b.users[0], in)
	want := first.Conversation
	want.Title, want.UpdatedAt = in.Title, in.UpdatedAt
	if diff := cmp.Diff(want, out.Conversation); diff != "" || out.Added+out.Replaced != 0 {
		t.Errorf("Upsert (-want +got):\n%s", diff)
	}
	if jobs := b.jobUnits(t); len(jobs) != 0 {
		t.Errorf("a new title made jobs for %v", jobs)
	}
	out = b.upsert(t, b.users[0], chat.Upsert{ExternalID: "a", Platform: "other", Title: "Elsewhere", CreatedAt: start})
	if out.Conversation.ID == first.Conversation.ID || out.Conversation.UpdatedAt != start {
		t.Errorf("another platform's conversation: %+v", out.Conversation)
	}
}

func TestConversationsOfOthersAreUnseen(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	store := b.Conversations()
	var ids []string
	for i, u := range b.users {
		ids = append(ids, b.upsert(t, u, talk("same", i, 3)).Conversation.ID)
	}
	for i, u := range b.users {
		others := slices.Delete(slices.Clone(ids), i, i+1)
		for _, id := range append(others, uuid.NewString(), "", "no-uuid") {
			_, _, err := store.Get(t.Context(), u, id)
			wantKind(t, "Get", err, fault.NotFound)
		}
		list, total, err := store.List(t.Context(), u, chat.ConversationFilter{Limit: 10})
		if err != nil || total != 1 || len(list) != 1 || list[0].ID != ids[i] {
			t.Errorf("user %d lists %v (%d), %v", i, list, total, err)
		}
		var places []chat.Place
		for _, id := range append(ids, "no-uuid") {
			places = append(places, chat.Place{Conversation: id, Index: 1})
		}
		passages, err := b.Passages(t.Context(), u, places, 1)
		if err != nil || len(passages) != 1 || passages[0].Conversation.ID != ids[i] {
			t.Errorf("user %d reads %v, %v", i, passages, err)
		}
		if n, err := b.Count(t.Context(), u); n != 1 || err != nil {
			t.Errorf("Count = %d, %v", n, err)
		}
		gone, err := store.Delete(t.Context(), u, others)
		if err != nil || len(gone.IDs)+len(gone.Units) != 0 {
			t.Errorf("user %d deleted %v, %v", i, gone, err)
		}
	}
}

func TestConversationsAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	var imports []string
	for i, platform := range []string{"custom", "claude", "custom"} {
		u := talk(fmt.Sprint(i), i, 1)
		u.Platform = platform
		imports = append(imports, b.upsert(t, scope, u).ImportID)
	}
	exec(t, b.owner, "update conversations set pinned = true where external_id = '1'")
	exec(t, b.owner, "update conversations set title = '100% _done_' where external_id = '0'")
	for name, test := range map[string]struct {
		filter chat.ConversationFilter
		want   string
		total  int
	}{
		"all":         {chat.ConversationFilter{Limit: 9}, "210", 3},
		"page":        {chat.ConversationFilter{Limit: 1, Offset: 1}, "1", 3},
		"past end":    {chat.ConversationFilter{Limit: 1, Offset: 7}, "", 3},
		"platform":    {chat.ConversationFilter{Limit: 9, Platform: "custom"}, "20", 2},
		"title":       {chat.ConversationFilter{Limit: 9, Title: "TALK"}, "21", 2},
		"wild cards":  {chat.ConversationFilter{Limit: 9, Title: "0% _D"}, "0", 1},
		"no wild":     {chat.ConversationFilter{Limit: 9, Title: "T_lk"}, "", 0},
		"from":        {chat.ConversationFilter{Limit: 9, From: start.AddDate(0, 0, 1)}, "21", 2},
		"to":          {chat.ConversationFilter{Limit: 9, To: start.AddDate(0, 0, 1)}, "0", 1},
		"pinned":      {chat.ConversationFilter{Limit: 9, PinnedOnly: true}, "1", 1},
		"import":      {chat.ConversationFilter{Limit: 9, ImportID: imports[2]}, "2", 1},
		"no import":   {chat.ConversationFilter{Limit: 9, ImportID: "x"}, "", 0},
		"active":      {chat.ConversationFilter{Limit: 9, Status: chat.Active}, "210", 3},
		"blocked":     {chat.ConversationFilter{Limit: 9, Status: chat.Blocked}, "", 0},
		"all at once": {chat.ConversationFilter{Limit: 9, Platform: "claude", Title: "k 1", PinnedOnly: true, Status: chat.Active}, "1", 1},
	} {
		list, total, err := b.Conversations().List(t.Context(), scope, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range list {
			got += c.ExternalID
		}
		if got != test.want || total != test.total || list == nil {
			t.Errorf("%s: %q of %d, want %q of %d", name, got, total, test.want, test.total)
		}
	}
}

func TestConversationQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 3, 2 })
	alice, bob := b.users[0], b.users[1]
	for i, u := range []tenant.Scope{alice, alice, alice, bob, bob} {
		b.upsert(t, u, talk(fmt.Sprint(i), i, 4))
	}
	check := func(reason, want string) {
		t.Helper()
		if got := b.statuses(t, alice, bob); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
		b.checkCounters(t)
	}
	check("room goes in order of import", "aabab")
	b.jobUnits(t)
	b.requota(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 2, 9 })
	check("a lowered quota blocks the oldest", "babab")
	if jobs := b.jobUnits(t); len(jobs) != 4 {
		t.Errorf("blocking made jobs for %d units, want 4", len(jobs))
	}
	b.requota(t, func(q *tenant.Quota) { q.Conversations = 4 })
	check("a raised quota lets the newest in", "baaaa")
	if n, err := b.Count(t.Context(), alice); n != 2 || err != nil {
		t.Errorf("Count = %d, %v", n, err)
	}
	list, _, err := b.Conversations().List(t.Context(), bob, chat.ConversationFilter{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	b.jobUnits(t)
	gone, err := b.Conversations().Delete(t.Context(), bob, []string{list[0].ID, "x", uuid.NewString()})
	if err != nil || len(gone.IDs) != 1 || len(gone.Units) != 4 {
		t.Errorf("Delete = %v, %v", gone, err)
	}
	check("a deletion makes room", "aaaa")
	if jobs := b.jobUnits(t); len(jobs) != 8 {
		t.Errorf("deleting one and letting one in made jobs for %d units, want 8", len(jobs))
	}
	again := b.upsert(t, bob, talk("4", 4, 4))
	if again.Conversation.ID == gone.IDs[0] || again.Conversation.Status != chat.Blocked {
		t.Errorf("a deleted one sent again: %+v", again.Conversation)
	}
	check("it comes back as new", "aaaab")
}

func TestExcludedConversationStaysExcluded(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	out := b.upsert(t, b.users[0], talk("a", 0, 3))
	exec(t, b.owner, "update conversations set status = 'excluded'")
	exec(t, b.owner, "update units set active = false")
	exec(t, b.owner, "update usage set conversations = 0")
	exec(t, b.owner, "update users set conversations = 0")
	b.jobUnits(t)
	again := b.upsert(t, b.users[0], talk("a", 0, 6))
	if again.Conversation.Status != chat.Excluded || again.Added != 3 {
		t.Errorf("sent again: %+v", again)
	}
	// The old units of messages 1 and 2 are told to the index, no new one is.
	if jobs := b.jobUnits(t); len(jobs) != 2 {
		t.Errorf("jobs for %v", jobs)
	}
	if n := b.count(t, "select count(*) from units where not active"); n != 6 {
		t.Errorf("%d units are inactive, want 6", n)
	}
	passages, err := b.Passages(t.Context(), b.users[0], []chat.Place{{Conversation: out.Conversation.ID}}, 1)
	if err != nil || len(passages) != 0 {
		t.Errorf("passages of an excluded conversation: %v, %v", passages, err)
	}
	gone, err := b.Conversations().Delete(t.Context(), b.users[0], []string{out.Conversation.ID})
	if err != nil || len(gone.IDs) != 1 {
		t.Errorf("Delete = %v, %v", gone, err)
	}
}

func TestConversationStorage(t *testing.T) {
	t.Parallel()
	in := talk("a", 0, 2)
	size := int64(len(in.Messages[0].Text) + len(in.Messages[1].Text))
	b := setup(t, func(q *tenant.Quota) { q.Storage = size })
	b.upsert(t, b.users[0], in)
	in.Messages[0].Text += "x"
	_, err := b.Conversations().Upsert(t.Context(), b.users[0], in, chat.Units)
	wantKind(t, "Upsert beyond the storage", err, fault.Forbidden)
	b.checkCounters(t)
	if n := b.count(t, "select count(*) from imports"); n != 1 {
		t.Errorf("%d imports, want that of the first only", n)
	}
	in.Messages[0].Text = ""
	b.upsert(t, b.users[0], in)
	usage, err := b.Usage(t.Context(), b.users[0].Tenant)
	if want := int64(len(in.Messages[1].Text)); err != nil || usage.Storage != want {
		t.Errorf("storage is %d, want %d: %v", usage.Storage, want, err)
	}
}

func TestFailedImport(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	in := talk("a", 0, 2)
	out, err := b.Conversations().RecordFailure(t.Context(), b.users[0], in, `too "long"`)
	if err != nil || out.ImportID == "" || out.Conversation.ID == "" || out.Conversation.Title != in.Title {
		t.Errorf("RecordFailure = %+v, %v", out, err)
	}
	_, _, err = b.Conversations().Get(t.Context(), b.users[0], out.Conversation.ID)
	wantKind(t, "Get of a failed one", err, fault.NotFound)
	n := b.count(t, `select count(*) from imports where id = $1 and status = 'failed' and failed = 1
		and errors = '[{"conversation": "a", "error": "too \"long\""}]' and finished_at is not null`, out.ImportID)
	if n != 1 {
		t.Error("the failure is not recorded")
	}
	stored := b.upsert(t, b.users[0], in)
	out, err = b.Conversations().RecordFailure(t.Context(), b.users[0], in, "too long")
	if err != nil || out.Conversation.ID != stored.Conversation.ID {
		t.Errorf("RecordFailure of a stored one = %+v, %v", out, err)
	}
}

func TestPassages(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upsert(t, b.users[0], talk("a", 0, 10)).Conversation.ID
	var places []chat.Place
	for _, index := range []int{9, 0, 50, 4, 4} {
		places = append(places, chat.Place{Conversation: id, Index: index})
	}
	got, err := b.Passages(t.Context(), b.users[0], places, 2)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range got {
		line := fmt.Sprint(p.Message.Index, ":")
		for _, m := range p.Context {
			line += fmt.Sprint(" ", m.Index)
		}
		order = append(order, line)
	}
	if diff := cmp.Diff([]string{"9: 7 8", "0: 1 2", "4: 2 3 5 6", "4: 2 3 5 6"}, order); diff != "" {
		t.Errorf("passages (-want +got):\n%s", diff)
	}
}

func TestConcurrentWritersOfConversations(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 5 })
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			scope := b.users[w%3]
			for i := range 4 {
				// Two writers send each conversation, one more of it than the other.
				b.upsertOr(t, scope, talk(fmt.Sprint(w/6, i), w, 3+w%2))
				if w%5 == 0 {
					b.deleteNewest(t, scope)
				}
			}
		})
	}
	wg.Wait()
	b.checkCounters(t)
	usage, err := b.Usage(t.Context(), b.users[0].Tenant)
	if err != nil || usage.Conversations > 5 || usage.Conversations < min(5, usage.Conversations+usage.Blocked) {
		t.Errorf("usage is %+v, %v", usage, err)
	}
}

func (b *testBundle) upsertOr(t *testing.T, scope tenant.Scope, u chat.Upsert) {
	if _, err := b.Conversations().Upsert(context.WithoutCancel(t.Context()), scope, u, chat.Units); err != nil {
		t.Errorf("Upsert: %v", err)
	}
}

func (b *testBundle) deleteNewest(t *testing.T, scope tenant.Scope) {
	list, _, err := b.Conversations().List(t.Context(), scope, chat.ConversationFilter{Limit: 1})
	if err != nil || len(list) == 0 {
		t.Errorf("List: %v, %v", list, err)
		return
	}
	if _, err := b.Conversations().Delete(t.Context(), scope, []string{list[0].ID}); err != nil {
		t.Errorf("Delete: %v", err)
	}
}
