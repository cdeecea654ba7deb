package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	recalledTalk = "Conversation a (2025-05-09)\n[1] human: a says number 0\n[2] assistant: a says number 1"
	recalledBoth = "Memories\n[1] memory: " + seat + "\n\nConversation a (2025-05-09)\n[2] human: a says number 2"
)

// pasted returns a conversation with these messages.
func pasted(external string, texts ...string) chat.Upsert {
	u := newConversation(external, 1, len(texts))
	for i, text := range texts {
		u.Messages[i].Text = text
	}
	return u
}

// searchable returns the text of each unit of a conversation, in order.
func (b *testBundle) searchable(t testing.TB, conversation string) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `select convert_from(substring(convert_to(m.text, 'UTF8') from u.span_start + 1 for u.span_end - u.span_start), 'UTF8')
		from units u join messages m on m.conversation_id = u.conversation_id and m.seq = u.seq
		where u.conversation_id = $1 order by u.seq, u.span_start`, conversation)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// What a recall returned is stored with the message that repeats it, but is not found there.
func TestRecalledTextHasNoUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice, bob, carol := b.users[0], b.users[1], b.users[2]
	b.upsert(t, alice, newConversation("a", 0, 3))
	b.remember(t, alice, seat, nil)
	json := `{"content":"` + strings.ReplaceAll(recalledTalk, "\n", `\n`) + `","sources":[{"conversationId":"x"}],"tokenCount":9,"processingTime":"1ms","platform":"all","model":"extractive"}`
	for name, test := range map[string]struct {
		reason string
		scope  tenant.Scope
		texts  []string
		want   []string
	}{
		"with a question":    {"the question is new", alice, []string{recalledTalk + "\n\nWho says 0?", "You."}, []string{"Who says 0?", "You."}},
		"memory and message": {"both are known", alice, []string{recalledBoth, "OK."}, []string{"OK."}},
		"changed":            {"the user changed the second line", alice, []string{recalledTalk + "00"}, []string{"[2] assistant: a says number 100"}},
		"never said":         {"nobody said so", alice, []string{strings.ReplaceAll(recalledTalk, "says", "shouts")}, []string{strings.ReplaceAll(recalledTalk, "says", "shouts")}},
		"another day":        {"it was said on another day", alice, []string{strings.Replace(recalledTalk, "09", "10", 1)}, []string{strings.Replace(recalledTalk, "09", "10", 1)}},
		"tool":               {"the response of a recall contains nothing else", alice, []string{json, "OK."}, []string{"OK."}},
		"other JSON":         {"other members are new", alice, []string{strings.Replace(json, `"model"`, `"note"`, 1)}, []string{strings.Replace(json, `"model"`, `"note"`, 1)}},
		"JSON with more":     {"part of the content is new", alice, []string{strings.Replace(json, "number 1", "number 1, I think", 1)}, []string{strings.Replace(json, "number 1", "number 1, I think", 1)}},
		"another user":       {"users do not see each other's data", bob, []string{recalledBoth}, []string{recalledBoth}},
		"another tenant":     {"tenants do not see each other's data", carol, []string{recalledBoth}, []string{recalledBoth}},
	} {
		out := b.upsert(t, test.scope, pasted(name, test.texts...))
		if diff := cmp.Diff(test.want, b.searchable(t, out.Conversation.ID)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, test.reason, diff)
		}
		_, stored, err := b.Conversations().Get(t.Context(), test.scope, out.Conversation.ID)
		if err != nil || stored[0].Text != test.texts[0] {
			t.Errorf("%s: stored %+v, %v", name, stored, err)
		}
	}
}

// New messages change the units around them, and a recall may quote the same conversation.
func TestRecalledTextIsNotFoundLater(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	talk := newConversation("a", 0, 3)
	b.upsert(t, scope, talk)
	own := newConversation("a", 0, 4)
	own.Messages[3].Text = recalledTalk + "\nAgain?"
	first := b.upsert(t, scope, own).Conversation
	said := []string{"a says number 0", "a says number 1", "a says number 2"}
	if diff := cmp.Diff(append(said, "Again?"), b.searchable(t, first.ID)); diff != "" {
		t.Errorf("recalled in the same conversation (-want +got):\n%s", diff)
	}
	other := b.upsert(t, scope, pasted("b", recalledTalk, "One.")).Conversation
	continued := pasted("b", recalledTalk, "One.", "Two.")
	b.upsert(t, scope, continued)
	if diff := cmp.Diff([]string{"One.", "Two."}, b.searchable(t, other.ID)); diff != "" {
		t.Errorf("after another message (-want +got):\n%s", diff)
	}
	if n := b.count(t, "select count(*) from units where conversation_id = $1 and tsv @@ plainto_tsquery('english', 'says')", other.ID); n != 0 {
		t.Errorf("%d units contain the words of a neighbor that were recalled", n)
	}
}

// A recall may quote any piece of a long message, of which characters have several bytes.
func TestRecalledPieceHasNoUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "Größe %d: „Straße“ — naïve Übung, 日本語 %d.\n", i, i)
	}
	b.upsert(t, scope, pasted("long", text.String()))
	pieces := retrieve.Split(text.String())
	if len(pieces) < 3 {
		t.Fatalf("%d pieces, want 3 or more", len(pieces))
	}
	for i, p := range pieces {
		content := "Conversation long (2025-05-10)\n[1] human: " + strings.TrimSpace(text.String()[p.Start:p.End])
		out := b.upsert(t, scope, pasted(fmt.Sprint("paste", i), content+"\nMore?"))
		if diff := cmp.Diff([]string{"More?"}, b.searchable(t, out.Conversation.ID)); diff != "" {
			t.Errorf("piece %d (-want +got):\n%s", i, diff)
		}
	}
}

// A memory with the decorations of a recall is the memory that was recalled.
func TestRecalledMemoryIsDuplicate(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	const tea = "Drinks tea"
	work, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: "Work"})
	if err != nil {
		t.Fatal(err)
	}
	in := newMemory(tea)
	in.Bucket, in.Attributes = work, memory.Attributes{AgentID: "barista", Tags: []string{"drinks"}}
	created, err := b.Memories().Create(t.Context(), scope, in)
	if err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	buckets, err := b.ListBuckets(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	records := len(b.auditOf(t, scope.Tenant))
	for name, test := range map[string]struct {
		reason    string
		scope     tenant.Scope
		bucket    int64
		agent     string
		day       string
		duplicate bool
	}{
		"recalled":        {"neither bucket nor attributes are named", scope, 0, "", "", true},
		"created then":    {"it was stored on that day", scope, 0, "", today, true},
		"same bucket":     {"it is in this bucket", scope, work, "", "", true},
		"another bucket":  {"the request names another one", scope, buckets[0].ID, "", "", false},
		"another agent":   {"the request names another one", scope, work, "cook", "", false},
		"another day":     {"it may have happened again", scope, work, "", "2025-05-09", false},
		"another user":    {"users do not see each other's data", b.users[1], 0, "", "", false},
		"another tenant":  {"tenants do not see each other's data", b.users[2], 0, "", "", false},
		"idempotency key": {"a repeated key returns the first response", scope, 0, "", "", true},
	} {
		m := newMemory("- " + name + ": " + tea)
		m.Bucket, m.AgentID, m.Repeats = test.bucket, test.agent, []memory.Repeat{{Text: "no such text"}, {Text: tea, Day: test.day}}
		if name == "idempotency key" {
			m.Request = request("memory", "k", m.Text)
		}
		for range 2 {
			got, err := b.Memories().Create(t.Context(), test.scope, m)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if (got.ID == created.ID) != test.duplicate {
				t.Errorf("%s: %s, but the id is %s and that of the memory %s", name, test.reason, got.ID, created.ID)
			}
			if test.duplicate != got.Duplicate {
				t.Errorf("%s: Duplicate = %t", name, got.Duplicate)
			}
			if !test.duplicate {
				break
			}
		}
	}
	if n := len(b.auditOf(t, scope.Tenant)); n != records+4 {
		t.Errorf("%d audit records for 4 memories that were stored", n-records)
	}
}

// A text that repeats a memory about another person is stored, whether or not it names a person.
func TestRepeatOfAnotherSubjectIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	const text = "Allergic to peanuts."
	about := func(user string) memory.NewMemory {
		m := newMemory("- " + text)
		if user != "" {
			m.Metadata = fmt.Appendf(nil, `{"user_id":%q}`, user)
		}
		m.Repeats = []memory.Repeat{{Text: text}}
		return m
	}
	bob := newMemory(text)
	bob.Metadata = []byte(`{"user_id":"bob"}`)
	if _, err := b.Memories().Create(t.Context(), scope, bob); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"", "ann"} {
		if got, err := b.Memories().Create(t.Context(), scope, about(user)); err != nil || got.Duplicate {
			t.Errorf("user %q: Create = %+v, %v, want a new memory", user, got, err)
		}
	}
	if got, err := b.Memories().Create(t.Context(), scope, about("bob")); err != nil || !got.Duplicate {
		t.Errorf("the same user: Create = %+v, %v, want a duplicate", got, err)
	}
}
