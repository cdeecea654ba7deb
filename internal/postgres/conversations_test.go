package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

var start = time.Date(2025, 5, 9, 12, 0, 0, 0, time.UTC)

// newConversation returns a conversation of n messages that starts day days
// after start.
func newConversation(external string, day, n int) chat.Upsert {
	at := start.AddDate(0, 0, day)
	u := chat.Upsert{ExternalID: external, Platform: "custom", PlatformName: "Custom", Title: "Conversation " + external, CreatedAt: at}
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
	out, err := b.Conversations().Upsert(t.Context(), scope, u)
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
	in := newConversation("a", 0, 2500)
	out := b.upsert(t, b.users[0], in)
	bytes := int64(0)
	for _, m := range in.Messages {
		bytes += int64(len(m.Text))
	}
	want := chat.Conversation{
		ID: out.Conversation.ID, ExternalID: "a", Platform: "custom", PlatformName: "Custom", Title: "Conversation a", Status: chat.Active,
		MessageCount: 2500, TokenCount: 2500 * 4, Bytes: bytes, CreatedAt: start, UpdatedAt: start.Add(2499 * time.Minute),
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
	if got, messages, err = b.Conversations().Find(t.Context(), b.users[0], in.Key()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(in.Messages, messages); diff != "" {
		t.Errorf("Find (-want +got):\n%s", diff)
	}
	units, jobs := b.unitsOf(t, got.ID), b.jobUnits(t)
	if len(units) != 2500 {
		t.Errorf("len(units) = %d, want 2500", len(units))
	}
	if len(jobs) != 2500 {
		t.Errorf("len(jobs) = %d, want 2500", len(jobs))
	}
}

func (b *testBundle) count(t testing.TB, sql string, args ...any) (n int) {
	t.Helper()
	if err := b.owner.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func TestHasPlatform(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for i, platform := range []string{"TypingMind", "chatgpt", "zzz"} {
		in := newConversation("a", 0, 1)
		in.Platform = platform
		out := b.upsert(t, b.users[min(i, 1)], in) // the second has two
		if platform == "zzz" {
			if _, err := b.Conversations().SetFlags(t.Context(), b.users[1], []string{out.Conversation.ID}, chat.Flags{Excluded: new(true)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		reason string
		user   int
		names  []string
		want   bool
	}{
		{"case does not matter", 0, []string{"typingmind"}, true},
		{"another user's platform", 0, []string{"chatgpt"}, false},
		{"any of several", 1, []string{"claude", "chatgpt"}, true},
		{"only excluded conversations", 1, []string{"zzz"}, false},
		{"another tenant's platform", len(b.users) - 1, []string{"typingmind", "chatgpt"}, false},
	} {
		got, err := b.HasPlatform(t.Context(), b.users[test.user], test.names)
		if err != nil || got != test.want {
			t.Errorf("%s: HasPlatform = %v, %v, want %v", test.reason, got, err, test.want)
		}
	}
	for _, name := range []string{"typingMIND", "TypingMind"} {
		if _, total, err := b.Conversations().List(t.Context(), b.users[0], chat.ConversationFilter{Platform: name, Limit: 9}); err != nil || total != 1 {
			t.Errorf("List of %s = %d conversations, %v, want 1", name, total, err)
		}
	}
}

func TestConversationsAreIsolated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	store := b.Conversations()
	var ids []string
	for i, u := range b.users {
		ids = append(ids, b.upsert(t, u, newConversation("same", i, 3)).Conversation.ID)
	}
	for i, u := range b.users {
		others := slices.Delete(slices.Clone(ids), i, i+1)
		for _, id := range append(others, uuid.NewString(), "", "no-uuid") {
			_, _, err := store.Get(t.Context(), u, id)
			wantKind(t, "Get", err, fault.NotFound)
		}
		if found, messages, err := store.Find(t.Context(), u, newConversation("same", i, 3).Key()); err != nil || found.ID != ids[i] || len(messages) != 3 {
			t.Errorf("user %d finds conversation %q with %d messages, %v", i, found.ID, len(messages), err)
		}
		for _, key := range []chat.Key{{Platform: "other", ExternalID: "same"}, {Platform: "custom", ExternalID: "other"}} {
			if found, messages, err := store.Find(t.Context(), u, key); err != nil || found.ID != "" || len(messages) != 0 {
				t.Errorf("user %d finds %v for %v, %v", i, found, key, err)
			}
		}
		list, total, err := store.List(t.Context(), u, chat.ConversationFilter{Limit: 10})
		if err != nil {
			t.Fatalf("user %d: %v", i, err)
		}
		if total != 1 {
			t.Errorf("user %d: total = %d, want 1", i, total)
		}
		if len(list) != 1 {
			t.Fatalf("user %d: len(list) = %d, want 1", i, len(list))
		}
		if list[0].ID != ids[i] {
			t.Errorf("user %d: list[0].ID = %v, want %v", i, list[0].ID, ids[i])
		}
		var places []chat.Position
		for _, id := range append(ids, "no-uuid") {
			places = append(places, chat.Position{Conversation: id, Index: 1, End: 1})
		}
		passages, err := b.Passages(t.Context(), u, places, 1)
		if err != nil {
			t.Fatalf("user %d: %v", i, err)
		}
		if len(passages) != 1 {
			t.Fatalf("user %d: len(passages) = %d, want 1", i, len(passages))
		}
		if passages[0].Conversation.ID != ids[i] {
			t.Errorf("user %d: passages[0].Conversation.ID = %v, want %v", i, passages[0].Conversation.ID, ids[i])
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
		u := newConversation(fmt.Sprint(i), i, 1)
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
		"all":                          {chat.ConversationFilter{Limit: 9}, "210", 3},
		"page":                         {chat.ConversationFilter{Limit: 1, Offset: 1}, "1", 3},
		"offset past the end":          {chat.ConversationFilter{Limit: 1, Offset: 7}, "", 3},
		"platform":                     {chat.ConversationFilter{Limit: 9, Platform: "custom"}, "20", 2},
		"title":                        {chat.ConversationFilter{Limit: 9, Title: "CONVERSATION"}, "21", 2},
		"wildcards are escaped":        {chat.ConversationFilter{Limit: 9, Title: "0% _D"}, "0", 1},
		"underscore is not a wildcard": {chat.ConversationFilter{Limit: 9, Title: "C_nversation"}, "", 0},
		"from":                         {chat.ConversationFilter{Limit: 9, From: start.AddDate(0, 0, 1)}, "21", 2},
		"to":                           {chat.ConversationFilter{Limit: 9, To: start.AddDate(0, 0, 1)}, "0", 1},
		"pinned":                       {chat.ConversationFilter{Limit: 9, PinnedOnly: true}, "1", 1},
		"import":                       {chat.ConversationFilter{Limit: 9, ImportID: imports[2]}, "2", 1},
		"unknown import":               {chat.ConversationFilter{Limit: 9, ImportID: "x"}, "", 0},
		"active":                       {chat.ConversationFilter{Limit: 9, Status: chat.Active}, "210", 3},
		"blocked":                      {chat.ConversationFilter{Limit: 9, Status: chat.Blocked}, "", 0},
		"all filters":                  {chat.ConversationFilter{Limit: 9, Platform: "claude", Title: "n 1", PinnedOnly: true, Status: chat.Active}, "1", 1},
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
		b.upsert(t, u, newConversation(fmt.Sprint(i), i, 4))
	}
	check := func(reason, want string) {
		t.Helper()
		if got := b.statuses(t, alice, bob); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
		b.checkCounters(t)
	}
	check("quota is assigned in the order of import", "aabab")
	b.jobUnits(t)
	b.setQuota(t, func(q *tenant.Quota) { q.Conversations, q.UserConversations = 2, 9 })
	check("a lowered quota blocks the oldest", "babab")
	if jobs := b.jobUnits(t); len(jobs) != 4 {
		t.Errorf("jobs for %d units after blocking, want 4", len(jobs))
	}
	b.setQuota(t, func(q *tenant.Quota) { q.Conversations = 4 })
	check("a raised quota activates the newest", "baaaa")
	if n, err := b.Count(t.Context(), alice); n != 2 || err != nil {
		t.Errorf("Count = %d, %v", n, err)
	}
	list, _, err := b.Conversations().List(t.Context(), bob, chat.ConversationFilter{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	b.jobUnits(t)
	gone, err := b.Conversations().Delete(t.Context(), bob, []string{list[0].ID, "x", uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	if len(gone.IDs) != 1 {
		t.Errorf("len(gone.IDs) = %d, want 1", len(gone.IDs))
	}
	if len(gone.Units) != 4 {
		t.Errorf("len(gone.Units) = %d, want 4", len(gone.Units))
	}
	check("a deletion frees quota", "aaaa")
	if jobs := b.jobUnits(t); len(jobs) != 8 {
		t.Errorf("jobs for %d units, want 8: one conversation was deleted and one activated", len(jobs))
	}
	again := b.upsert(t, bob, newConversation("4", 4, 4))
	if again.Conversation.ID == gone.IDs[0] || again.Conversation.Status != chat.Blocked {
		t.Errorf("deleted conversation sent again: %+v", again.Conversation)
	}
	check("a deleted conversation that is sent again is new", "aaaab")
}

func TestPassages(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upsert(t, b.users[0], newConversation("a", 0, 10)).Conversation.ID
	var places []chat.Position
	for _, index := range []int{9, 0, 50, 4, 4} {
		places = append(places, chat.Position{Conversation: id, Index: index, End: 1})
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

// A passage has only the piece of its message, and the nearest messages up to a number of bytes, because messages may have
// megabytes. A piece of a message that was replaced in the meantime is still valid text, or is omitted.
func TestPassagesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	c := newConversation("a", 0, 7)
	for i, length := range []int{1, 200 << 10, 100 << 10, 1 << 20, 100 << 10, 60 << 10, 1} {
		c.Messages[i].Text = "piece of grün " + strings.Repeat(".", length)
	}
	id := b.upsert(t, b.users[0], c).Conversation.ID
	at := func(start, end int) chat.Position {
		return chat.Position{Conversation: id, Index: 3, Start: start, End: end}
	}
	got, err := b.Passages(t.Context(), b.users[0], []chat.Position{
		at(0, 5), at(9, 14), at(9, 12), at(2<<20, 2<<20+4), at(4, 4), at(-1, 4), at(1<<20, 2<<20), {Conversation: id, Index: 0, Start: 0, End: 5},
	}, 3)
	if err != nil {
		t.Fatal(err)
	}
	type passage struct {
		Text    string
		Length  int
		Context []int
	}
	var passages []passage
	for _, p := range got {
		x := passage{Text: p.Message.Text, Length: p.Length}
		for _, m := range p.Context {
			if x.Context = append(x.Context, m.Index); m.Text != c.Messages[m.Index].Text {
				t.Errorf("the context has %d bytes of message %d, want %d", len(m.Text), m.Index, len(c.Messages[m.Index].Text))
			}
		}
		passages = append(passages, x)
	}
	length := len(c.Messages[3].Text)
	want := []passage{
		{"piece", length, []int{2, 4}},
		{"grün", length, []int{2, 4}},
		{"gr", length, []int{2, 4}}, // the range divides a character
		{strings.Repeat(".", length-1<<20), length, []int{2, 4}},
		{"piece", len(c.Messages[0].Text), []int{1}}, // the next one would be beyond the bound
	}
	if diff := cmp.Diff(want, passages); diff != "" {
		t.Errorf("passages (-want +got):\n%s", diff)
	}
}

// TestOpenings: a conversation begins with the user's first message, also if it is not
// searchable, and nobody else can read it.
func TestOpenings(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var ids []string
	for i, u := range b.users {
		c := newConversation(fmt.Sprint("c", i), 0, 3)
		c.Messages[0].Sender = chat.System
		c.Messages[2].Sender, c.Messages[2].Text = chat.Human, fmt.Sprintf("%d ", i)+strings.Repeat("é", 500)
		c.Messages[1].Sender = chat.Assistant
		ids = append(ids, b.upsert(t, u, c).Conversation.ID)
	}
	if _, err := b.Conversations().SetFlags(t.Context(), b.users[0], ids[:1], chat.Flags{Excluded: new(true)}); err != nil {
		t.Fatal(err)
	}
	empty := newConversation("empty", 0, 0)
	all := append(slices.Clone(ids), b.upsert(t, b.users[0], empty).Conversation.ID, uuid.NewString(), "no-uuid")
	for i, u := range b.users {
		got, err := b.Openings(t.Context(), u, all)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{ids[i]: fmt.Sprintf("%d ", i) + strings.Repeat("é", 398)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("openings of user %d (-want +got):\n%s", i, diff)
		}
	}
}
