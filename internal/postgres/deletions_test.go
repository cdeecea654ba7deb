package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/erasure"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// wholeContent returns every column of the rows of memories and conversations. Units
// have new ids after an undo, and are indexed again.
func (b *testBundle) wholeContent(t testing.TB) []string {
	t.Helper()
	var out []string
	for table, columns := range map[string]string{
		"memories": "to_jsonb(r)", "memory_versions": "to_jsonb(r)", "conversations": "to_jsonb(r)", "messages": "to_jsonb(r)",
		"buckets": "to_jsonb(r)", "usage": "to_jsonb(r)", "units": "to_jsonb(r) - 'id' - 'indexed_at'",
	} {
		rows, err := b.owner.Query(t.Context(), fmt.Sprintf("select '%s ' || (%s)::text from %s r order by 1", table, columns, table))
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Join(list, "\n"))
	}
	slices.Sort(out) // the order of the tables is random
	return out
}

// deletable is a user's memories, one of them edited, and conversations.
type deletable struct {
	scope                   tenant.Scope
	memories, conversations []string
}

func (b *testBundle) deletable(t *testing.T, scope tenant.Scope) deletable {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	d := deletable{scope: scope}
	for i := range 3 {
		d.memories = append(d.memories, b.remember(t, scope, fmt.Sprintf("2025-05-09 memory %d of %v, “quoted” \\ and ÿ", i, scope), func(string) []float32 { return randomUnit(r) }))
		d.conversations = append(d.conversations, b.upsert(t, scope, newConversation(fmt.Sprint(scope, i), i, 4)).Conversation.ID)
	}
	edited := "2025-05-10 edited"
	if _, err := b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: d.memories[0], Text: &edited}, Tokens: 2, Units: newMemory(edited).Units}); err != nil {
		t.Fatal(err)
	}
	b.setFlags(t, scope, chat.Flags{Pinned: new(true)}, d.conversations[0])
	b.setFlags(t, scope, chat.Flags{Excluded: new(true)}, d.conversations[1])
	return d
}

// delete deletes two memories and two conversations and returns the deletions.
func (b *testBundle) delete(t *testing.T, d deletable) (memories, conversations string) {
	t.Helper()
	m, err := b.Memories().DeleteUndoable(t.Context(), d.scope, append(d.memories[:2:2], uuid.NewString(), "no-uuid"))
	if err != nil || len(m.IDs) != 2 || len(m.Units) < 2 {
		t.Fatalf("delete memories: %+v, %v", m, err)
	}
	c, err := b.Conversations().DeleteUndoable(t.Context(), d.scope, d.conversations[:2])
	if err != nil || len(c.IDs) != 2 || len(c.Units) < 2 {
		t.Fatalf("delete conversations: %+v, %v", c, err)
	}
	return m.Undo, c.Undo
}

func (b *testBundle) undelete(t *testing.T, scope tenant.Scope, memories, conversations string) (a, c error) {
	t.Helper()
	_, a = b.Memories().Undelete(t.Context(), scope, memories)
	_, c = b.Conversations().Undelete(t.Context(), scope, conversations)
	return a, c
}

// An undo restores every column; nobody else can undo it, and nobody twice.
func TestUndelete(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	attachLedger(t, b.DB)
	d := b.deletable(t, b.users[0])
	for _, u := range b.users[1:] {
		b.deletable(t, u)
	}
	before := b.wholeContent(t)
	memories, conversations := b.delete(t, d)
	b.checkCounters(t)
	if n := b.count(t, "select count(*) from units where coalesce(memory_id, conversation_id) = any($1)", append(d.memories[:2:2], d.conversations[:2]...)); n != 0 {
		t.Errorf("%d units are still there", n)
	}
	for _, u := range b.users[1:] {
		a, c := b.undelete(t, u, memories, conversations)
		wantKind(t, "undo of another user's deletion", a, fault.NotFound)
		wantKind(t, "undo of another user's deletion", c, fault.NotFound)
	}
	a, c := b.undelete(t, d.scope, conversations, memories)
	wantKind(t, "undo of the other kind", a, fault.NotFound)
	wantKind(t, "undo of the other kind", c, fault.NotFound)
	b.jobUnits(t)
	if a, c := b.undelete(t, d.scope, memories, conversations); a != nil || c != nil {
		t.Fatalf("undo: %v, %v", a, c)
	}
	if diff := cmp.Diff(before, b.wholeContent(t)); diff != "" {
		t.Errorf("content after the undo (-before +after):\n%s", diff)
	}
	if jobs := b.jobUnits(t); !jobs[b.unitsOf(t, d.memories[0])[0]] || !jobs[b.unitsOf(t, d.conversations[0])[0]] {
		t.Error("no job indexes what was restored")
	}
	a, c = b.undelete(t, d.scope, memories, conversations)
	wantKind(t, "second undo", a, fault.NotFound)
	wantKind(t, "second undo", c, fault.NotFound)
	b.expireDeletions(t)
	if entries := pendingErasures(t, b.DB); len(entries) > 0 {
		t.Errorf("%d erasures are recorded although everything was restored", len(entries))
	}
}

// expireDeletions ends the time to undo deletions and runs the jobs that finish them.
func (b *testBundle) expireDeletions(t *testing.T) {
	t.Helper()
	for _, sql := range []string{
		"update deletions set expires_at = now()", "update river_job set state = 'available', scheduled_at = now() where kind = 'tenant.finish_deletions'",
	} {
		if _, err := b.owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	workJobs(t, b.DB, b.owner)
}

// A deletion is final after its time: the job that was committed with it deletes what is
// left and records the erasure, and an undo fails even before the job ran.
func TestDeletionIsFinal(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	attachLedger(t, b.DB)
	d, other := b.deletable(t, b.users[0]), b.deletable(t, b.users[2])
	memories, conversations := b.delete(t, d)
	b.delete(t, other)
	if n := len(pendingErasures(t, b.DB)); n != 0 {
		t.Errorf("%d erasures are recorded before the deletion is final", n)
	}
	if _, err := b.owner.Exec(t.Context(), "update deletions set expires_at = now() where tenant_id = $1", d.scope.Tenant); err != nil {
		t.Fatal(err)
	}
	a, c := b.undelete(t, d.scope, memories, conversations)
	wantKind(t, "late undo", a, fault.NotFound)
	wantKind(t, "late undo", c, fault.NotFound)
	if err := b.FinishDeletions(t.Context(), d.scope); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "select count(*) from deletions where tenant_id = $1", d.scope.Tenant); n != 0 {
		t.Errorf("%d deletions are kept", n)
	}
	if n := b.count(t, "select count(*) from deletions where tenant_id = $1", other.scope.Tenant); n != 4 {
		t.Errorf("%d deletions of another tenant are kept, want 4", n)
	}
	got := map[erasure.Kind]int{}
	for _, e := range pendingErasures(t, b.DB) {
		got[e.Kind] += len(e.Objects)
	}
	if diff := cmp.Diff(map[erasure.Kind]int{erasure.Memory: 2, erasure.Conversation: 2}, got); diff != "" {
		t.Errorf("recorded erasures (-want +got):\n%s", diff)
	}
	b.expireDeletions(t) // by the job
	if n := b.count(t, "select count(*) from deletions"); n != 0 {
		t.Errorf("%d deletions are kept after the job", n)
	}
}

// What an undo cannot restore exactly: a bucket that was deleted, a conversation that was
// stored again, and more than the quota allows.
func TestUndeleteAfterChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories, q.Conversations = 3, 3 })
	d := b.deletable(t, b.users[0])
	bucket := b.createBucket(t, d.scope, "Travel")
	if _, err := b.Memories().Move(t.Context(), d.scope, memory.MoveInput{IDs: d.memories[:2], Bucket: memory.BucketRef{ID: bucket}}); err != nil {
		t.Fatal(err)
	}
	memories, conversations := b.delete(t, d)
	if _, err := b.Memories().DeleteBucket(t.Context(), d.scope, bucket); err != nil {
		t.Fatal(err)
	}
	replaced := b.remember(t, d.scope, "2025-05-11 another", nil)
	b.remember(t, d.scope, "2025-05-11 a third", nil)
	again := b.upsert(t, d.scope, newConversation(fmt.Sprint(d.scope, 0), 0, 1)).Conversation.ID
	a, c := b.undelete(t, d.scope, memories, conversations)
	wantKind(t, "undo over the quota", a, fault.Forbidden)
	wantKind(t, "undo of a conversation that was stored again", c, fault.Conflict)
	for _, id := range []string{replaced, b.lastMemory(t, d.scope)} {
		if _, err := b.Memories().Delete(t.Context(), d.scope, []string{id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Conversations().Delete(t.Context(), d.scope, []string{again}); err != nil {
		t.Fatal(err)
	}
	if a, c := b.undelete(t, d.scope, memories, conversations); a != nil || c != nil {
		t.Fatalf("undo: %v, %v", a, c)
	}
	if got := b.get(t, d.scope, d.memories[1]).BucketName; got != memory.DefaultBucket {
		t.Errorf("the bucket is %q, want %q", got, memory.DefaultBucket)
	}
	b.checkCounters(t)
}

func (b *testBundle) lastMemory(t *testing.T, scope tenant.Scope) string {
	t.Helper()
	list, _, err := b.Memories().List(t.Context(), scope, memory.Filter{Newest: true, Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatalf("newest memory: %v, %v", list, err)
	}
	return list[0].ID
}

// The erasure of an account includes deletions that could be undone.
func TestPurgeIncludesDeletions(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	d := b.deletable(t, b.users[0])
	memories, conversations := b.delete(t, d)
	b.purge(t, d.scope)
	if n := b.count(t, "select count(*) from deletions"); n != 0 {
		t.Errorf("%d deletions are kept", n)
	}
	a, c := b.undelete(t, d.scope, memories, conversations)
	wantKind(t, "undo after the purge", a, fault.NotFound)
	wantKind(t, "undo after the purge", c, fault.NotFound)
}

// An undo restores rows that were kept before a migration added a column to each table.
func TestUndoAfterAMigrationAddsColumns(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	scope := b.users[0]
	kept, merged := b.remember(t, scope, "a", nil), b.remember(t, scope, "b", nil)
	b.merge(t, scope, kept, merged)
	b.upsert(t, scope, newConversation("c", 1, 2))
	list, _, err := b.Conversations().List(t.Context(), scope, chat.ConversationFilter{Limit: 9})
	if err != nil || len(list) != 1 {
		t.Fatalf("List = %v, %v", list, err)
	}
	memories, err := b.Memories().DeleteUndoable(t.Context(), scope, []string{kept})
	if err != nil {
		t.Fatal(err)
	}
	conversations, err := b.Conversations().DeleteUndoable(t.Context(), scope, []string{list[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	tables := []string{"memories", "merged_memories", "memory_versions", "conversations", "messages", "units"}
	for _, table := range tables {
		exec(t, b.owner, "alter table "+table+" add column added text not null default 'default'")
	}
	if _, err := b.Memories().Undelete(t.Context(), scope, memories.Undo); err != nil {
		t.Errorf("undo of the deletion of memories: %v", err)
	}
	if _, err := b.Conversations().Undelete(t.Context(), scope, conversations.Undo); err != nil {
		t.Errorf("undo of the deletion of conversations: %v", err)
	}
	for _, table := range tables {
		if n := b.count(t, "select count(*) from "+table+" where added = 'default'"); n == 0 {
			t.Errorf("%s has no row with the default", table)
		}
	}
}
