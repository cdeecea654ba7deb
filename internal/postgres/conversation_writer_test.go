package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

func TestConversationSentAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	first := b.upsert(t, scope, newConversation("a", 0, 12))
	id := first.Conversation.ID
	before := b.unitsOf(t, id)
	b.jobUnits(t)

	repeated := b.upsert(t, scope, newConversation("a", 0, 12))
	if diff := cmp.Diff(first, repeated, cmpopts.IgnoreFields(chat.Outcome{}, "ImportID", "Added")); diff != "" || repeated.Added != 0 {
		t.Errorf("sent again unchanged (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(before, b.unitsOf(t, id)); diff != "" || len(b.jobUnits(t)) > 0 {
		t.Errorf("an unchanged conversation was written:\n%s", diff)
	}
	if n := b.count(t, "select count(*) from conversations where import_id = $1", first.ImportID); n != 1 {
		t.Error("the import that last changed the conversation is not the first")
	}

	// Message 5 changes, message 12 is new, and all others are not sent.
	next := newConversation("a", 0, 13)
	next.Messages = []chat.Message{next.Messages[12], next.Messages[5]}
	next.Messages[1].Text = "Zebras instead"
	next.Messages[1].Tokens = 2
	out := b.upsert(t, scope, next)
	if out.Added != 1 {
		t.Errorf("sent again with changes: out.Added = %d, want 1", out.Added)
	}
	if out.Replaced != 1 {
		t.Errorf("sent again with changes: out.Replaced = %d, want 1", out.Replaced)
	}
	if out.Conversation.MessageCount != 13 {
		t.Errorf("sent again with changes: out.Conversation.MessageCount = %d, want 13", out.Conversation.MessageCount)
	}
	if out.Conversation.ID != id {
		t.Errorf("sent again with changes: out.Conversation.ID = %v, want %v", out.Conversation.ID, id)
	}
	_, messages, err := b.Conversations().Get(t.Context(), scope, id)
	if err != nil {
		t.Fatalf("messages: %v", err)
	}
	if len(messages) != 13 {
		t.Fatalf("messages: len(messages) = %d, want 13", len(messages))
	}
	if messages[5].Text != "Zebras instead" {
		t.Fatalf(`messages: messages[5].Text = %q, want "Zebras instead"`, messages[5].Text)
	}
	if messages[12].ExternalID != "m12" {
		t.Fatalf(`messages: messages[12].ExternalID = %q, want "m12"`, messages[12].ExternalID)
	}
	// The units of messages 3 to 7 and 10 to 12 are new.
	after, jobs := b.unitsOf(t, id), b.jobUnits(t)
	kept, deleted := 0, 0
	for _, u := range before {
		switch {
		case slices.Contains(after, u):
			kept++
		case jobs[u]:
			deleted++
		}
	}
	type unitCounts struct{ Kept, Deleted, After, InJobs int }
	if diff := cmp.Diff(unitCounts{5, 7, 13, 7 + 8}, unitCounts{kept, deleted, len(after), len(jobs)}); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
	if n := b.count(t, "select count(*) from imports where status = 'done' and imported + updated + skipped = 1"); n != 3 {
		t.Errorf("%d imports are recorded, want 3", n)
	}
}

// TestNeighborsKeepVectors: the units around a changed message are written again, because they contain its words, but what they embed is the same.
func TestNeighborsKeepVectors(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	id := b.upsert(t, scope, newConversation("a", 0, 12)).Conversation.ID
	r := rand.New(rand.NewPCG(1, 1))
	saved := map[retrieve.UnitID][]float32{}
	for _, unit := range b.unitsOf(t, id) {
		saved[unit] = randomUnit(r)
	}
	if err := b.SaveVectors(t.Context(), scope.Tenant, []tenant.UserID{scope.User}, 0, withVectors(saved), nil); err != nil {
		t.Fatal(err)
	}
	vectors := func() map[int]string { // by the position of the message
		rows, err := b.owner.Query(t.Context(), "select seq, coalesce(encode(embedding, 'hex') || generation_id, '') from units where conversation_id = $1", id)
		if err != nil {
			t.Fatal(err)
		}
		found := map[int]string{}
		var seq int
		var vector string
		if _, err := pgx.ForEachRow(rows, []any{&seq, &vector}, func() error { found[seq] = vector; return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := vectors()
	tokens := func() int {
		return b.count(t, "select embedded_tokens from usage where tenant_id = $1", string(scope.Tenant))
	}
	before := tokens()
	next := newConversation("a", 0, 13)
	next.Title, next.Messages[5].Text = "Another title", "b says number 5" // as long as before
	b.upsert(t, scope, next)
	want[5], want[12] = "", "" // a job embeds them
	if diff := cmp.Diff(want, vectors()); diff != "" {
		t.Errorf("vectors (-want +got):\n%.500s", diff)
	}
	if n := tokens() - before; n != 0 {
		t.Errorf("%d tokens count as embedded, want none", n)
	}
}

func TestConversationDetailsChange(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	in := newConversation("a", 0, 2)
	first := b.upsert(t, b.users[0], in)
	b.jobUnits(t)
	before := b.unitsOf(t, first.Conversation.ID)
	in.Title, in.UpdatedAt = "Renamed", start.AddDate(1, 0, 0)
	out := b.upsert(t, b.users[0], in)
	want := first.Conversation
	want.Title, want.UpdatedAt = in.Title, in.UpdatedAt
	if diff := cmp.Diff(want, out.Conversation); diff != "" || out.Added+out.Replaced != 0 {
		t.Errorf("Upsert (-want +got):\n%s", diff)
	}
	// The first message is found by the title.
	after := b.unitsOf(t, first.Conversation.ID)
	b.wantJobs(t, "a new title", before[:1], after[1:])
	if len(after) != 2 || after[0] != before[1] {
		t.Errorf("units %v after a new title, want only the first of %v replaced", after, before)
	}
	out = b.upsert(t, b.users[0], chat.Upsert{ExternalID: "a", Platform: "other", Title: "Elsewhere", CreatedAt: start})
	if out.Conversation.ID == first.Conversation.ID || out.Conversation.UpdatedAt != start {
		t.Errorf("another platform's conversation: %+v", out.Conversation)
	}
}

func TestExcludedConversationStaysExcluded(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	out := b.upsert(t, b.users[0], newConversation("a", 0, 3))
	exec(t, b.owner, "update conversations set status = 'excluded'")
	exec(t, b.owner, "update units set active = false")
	exec(t, b.owner, "update usage set conversations = 0")
	exec(t, b.owner, "update users set conversations = 0")
	b.jobUnits(t)
	again := b.upsert(t, b.users[0], newConversation("a", 0, 6))
	if again.Conversation.Status != chat.Excluded {
		t.Errorf("sent again: again.Conversation.Status = %v, want %v", again.Conversation.Status, chat.Excluded)
	}
	if again.Added != 3 {
		t.Errorf("sent again: again.Added = %d, want 3", again.Added)
	}
	// Only the deleted units of messages 1 and 2 are synchronized with the index.
	if jobs := b.jobUnits(t); len(jobs) != 2 {
		t.Errorf("jobs for %v", jobs)
	}
	if n := b.count(t, "select count(*) from units where not active"); n != 6 {
		t.Errorf("%d units are inactive, want 6", n)
	}
	passages, err := b.Passages(t.Context(), b.users[0], []chat.Position{{Conversation: out.Conversation.ID, End: 1}}, 1)
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
	in := newConversation("a", 0, 2)
	size := int64(len(in.Messages[0].Text) + len(in.Messages[1].Text))
	b := setup(t, func(q *tenant.Quota) { q.Storage = size })
	b.upsert(t, b.users[0], in)
	in.Messages[0].Text += "x"
	_, err := b.Conversations().Upsert(t.Context(), b.users[0], in)
	wantKind(t, "Upsert beyond the storage", err, fault.Forbidden)
	b.checkCounters(t)
	if n := b.count(t, "select count(*) from imports"); n != 1 {
		t.Errorf("%d imports, want 1", n)
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
	in := newConversation("a", 0, 2)
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

// A repeated request whose import failed reports the failure again, whichever step of the ingest finds it.
func TestRepeatedFailedImport(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	in := newConversation("a", 0, 2)
	in.Request = tenant.Request{Route: "ingest", Key: tenant.HashSecret("key"), Body: tenant.HashSecret("body")}
	first, err := b.Conversations().RecordFailure(t.Context(), b.users[0], in, "too large")
	if err != nil || !first.Failed {
		t.Fatalf("RecordFailure = %+v, %v, want a failure", first, err)
	}
	for name, repeat := range map[string]func() (chat.Outcome, error){
		"RecordFailure": func() (chat.Outcome, error) {
			return b.Conversations().RecordFailure(t.Context(), b.users[0], in, "too large")
		},
		"Upsert": func() (chat.Outcome, error) { return b.Conversations().Upsert(t.Context(), b.users[0], in) },
	} {
		again, err := repeat()
		if err != nil || !again.Failed || again.ImportID != first.ImportID {
			t.Errorf("repeated with %s: %+v, %v, want the failure of import %s", name, again, err, first.ImportID)
		}
	}
	in.Request.Key = tenant.HashSecret("another key")
	if out := b.upsert(t, b.users[1], in); out.Failed {
		t.Errorf("Upsert of another user = %+v, want no failure", out)
	}
}

// A conversation does not grow beyond the limit, and can still be sent again and changed.
func TestConversationDoesNotGrowBeyondLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	in := newConversation("a", 0, 2)
	id := b.upsert(t, scope, in).Conversation.ID
	large := strings.Repeat("x", chat.MaxConversation)
	exec(t, b.owner, "update messages set text = $1 where seq = 0", large)
	exec(t, b.owner, "update conversations set bytes = bytes + $1", len(large)-len(in.Messages[0].Text))
	grown := newConversation("a", 0, 3)
	grown.Messages[0].Text = large
	if _, err := b.Conversations().Upsert(t.Context(), scope, grown); !errors.Is(err, chat.ErrTooLarge) {
		t.Errorf("Upsert of one message more: %v, want %v", err, chat.ErrTooLarge)
	}
	if n := b.count(t, "select count(*) from messages"); n != 2 {
		t.Errorf("%d messages are stored, want 2", n)
	}
	if n := b.count(t, "select count(*) from imports"); n != 1 {
		t.Errorf("%d imports are stored, want 1", n)
	}
	exec(t, b.owner, "update usage set storage = storage + $1 where tenant_id = $2", len(large)-len(in.Messages[0].Text), string(scope.Tenant))
	if out := b.upsert(t, scope, in); out.Conversation.ID != id || out.Replaced != 1 {
		t.Errorf("Upsert of a smaller message = %+v, want one replaced", out)
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
				// Two writers send each conversation, one with an additional message.
				b.upsertOr(t, scope, newConversation(fmt.Sprint(w/6, i), w, 3+w%2))
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
	if _, err := b.Conversations().Upsert(context.WithoutCancel(t.Context()), scope, u); err != nil {
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
