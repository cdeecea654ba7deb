package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/postgres/postgrestest"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// fillAccount stores data of every kind: the first memory was edited and moved,
// one conversation is excluded and one is pinned. All texts contain the mark.
func (b *testBundle) fillAccount(t testing.TB, scope tenant.Scope, mark string) {
	t.Helper()
	bucket, err := b.CreateBucket(t.Context(), scope, memory.BucketInput{Name: mark + " bucket", Description: "of " + mark})
	if err != nil {
		t.Fatal(err)
	}
	first := b.remember(t, scope, mark+" window", nil)
	b.remember(t, scope, mark+" gone", nil)
	b.remember(t, scope, mark+" last", nil)
	for _, text := range []string{mark + " aisle", mark + " roof"} {
		_, err = b.Memories().Update(t.Context(), scope, memory.Edit{UpdateInput: memory.UpdateInput{ID: first, Text: &text, Bucket: memory.BucketRef{ID: bucket}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for n := range 3 {
		u := newConversation(fmt.Sprint(mark, n), n, 3)
		u.Messages[0].Text = mark + " " + u.Messages[0].Text
		ids = append(ids, b.upsert(t, scope, u).Conversation.ID)
	}
	b.setFlags(t, scope, chat.Flags{Excluded: yes()}, ids[0])
	b.setFlags(t, scope, chat.Flags{Pinned: yes()}, ids[1])
}

// exported returns an export of the user's data.
func (b *testBundle) exported(t testing.TB, scope tenant.Scope) []byte {
	t.Helper()
	s, err := b.Accounts().Snapshot(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	if err := archive.Write(&out, time.Time{}.AddDate(2024, 0, 0), s.Counts, s); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// openExport reads and validates an export.
func openExport(t testing.TB, file []byte) *archive.Archive {
	t.Helper()
	a, err := archive.Open(bytes.NewReader(file), int64(len(file)), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An export contains all data of the user and none of others.
func TestSnapshotContainsOnlyTheUsersData(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	marks := []string{"alice", "bob", "carol", "dave"}
	for i, u := range b.users {
		b.fillAccount(t, u, marks[i])
	}
	for i, u := range b.users {
		a := openExport(t, b.exported(t, u))
		want := account.Counts{Buckets: 2, Memories: 3, Versions: 2, Conversations: 3, Messages: 9}
		if a.Counts != want {
			t.Errorf("%s: %+v, want %+v", marks[i], a.Counts, want)
		}
		var texts []string
		for h, err := range a.MemoryHistories() {
			if err != nil {
				t.Fatal(err)
			}
			text := h.Text
			for _, v := range h.Earlier {
				text += fmt.Sprintf(" <%d %s", v.Version, v.Text)
			}
			texts = append(texts, text)
		}
		m := marks[i]
		if diff := cmp.Diff([]string{m + " roof <1 " + m + " window <2 " + m + " aisle", m + " gone", m + " last"}, texts); diff != "" {
			t.Errorf("%s: memories (-want +got):\n%s", m, diff)
		}
		states := ""
		for k, err := range a.Transcripts() {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(k.Messages[0].Text, m+" ") {
				t.Errorf("%s: another user's conversation: %q", m, k.Messages[0].Text)
			}
			states += string(k.Status[0])
			if k.Pinned {
				states += "p"
			}
		}
		if states != "eapa" {
			t.Errorf("%s: the conversations are %s, want eapa", m, states)
		}
		for b, err := range a.Buckets() {
			if err != nil || b.Name != memory.DefaultBucket && b.Name != m+" bucket" {
				t.Errorf("%s: bucket %+v, %v", m, b, err)
			}
		}
	}
}

// Writes after the start of an export are not in it, not even partly.
func TestSnapshotIsConsistent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	b.fillAccount(t, alice, "alice")
	before := b.exported(t, alice)
	s, err := b.Accounts().Snapshot(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b.fillAccount(t, alice, "later")
	list, _, err := b.Memories().List(t.Context(), alice, memory.Filter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memories().Delete(t.Context(), alice, []string{list[0].ID}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := archive.Write(&out, time.Time{}.AddDate(2024, 0, 0), s.Counts, s); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, out.Bytes()) {
		t.Error("the export contains writes that follow its start")
	}
	s.Close()
	if n := b.count(t, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"); n != 0 {
		t.Errorf("%d transactions are still open", n)
	}
}

// A snapshot ends with its context at any time, and other transactions' time limits do
// not apply to it.
func TestSnapshotEndsWithContext(t *testing.T) {
	t.Parallel()
	d := postgrestest.Create(t)
	b := setupIn(t, d, nil)
	alice := b.users[0]
	b.fillAccount(t, alice, "alice")
	for i := range 500 { // more than the buffers between server and reader hold
		m := memory.NewMemory{CreateInput: memory.CreateInput{Text: fmt.Sprintf("%0*d", memory.MaxText, i)}}
		if _, err := b.Memories().Create(t.Context(), alice, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.owner.Exec(t.Context(), `do $$ begin
		execute format('alter database %I set statement_timeout = ''1s''', current_database());
		execute format('alter database %I set idle_in_transaction_session_timeout = ''1s''', current_database()); end $$`); err != nil {
		t.Fatal(err)
	}
	strict := postgrestest.Open(t, d) // its connections are new
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := strict.Accounts().Snapshot(ctx, alice)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.Memories() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			<-time.After(1500 * time.Millisecond) // the reader is slow
		}
	}
	<-time.After(1500 * time.Millisecond)
	for _, err := range s.Messages() {
		cancel()
		if err != nil {
			break
		}
	}
	s.Close()
	if n := b.count(t, "select count(*) from pg_stat_activity where datname = current_database() and usename <> current_user and state <> 'idle'"); n != 0 {
		t.Errorf("%d transactions are still open", n)
	}
}

// purge deletes the account as a request does.
func (b *testBundle) purge(t testing.TB, scope tenant.Scope) account.Purged {
	t.Helper()
	confirm := account.Confirmation
	done, err := account.NewService(account.Config{Store: b.Accounts()}).Delete(t.Context(), tenant.Identity{Scope: scope}, &confirm)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// A purge leaves only the user and the token. Data of others is unchanged, and the
// released quota goes to blocked conversations.
func TestPurge(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 3 })
	alice, bob := b.users[0], b.users[1]
	for i, mark := range []string{"alice", "bob", "carol", "dave"} {
		b.fillAccount(t, b.users[i], mark)
	}
	for n := range 60 { // more than one batch
		b.upsert(t, alice, newConversation(fmt.Sprint("more", n), 100+n, 1))
	}
	others := map[tenant.Scope][]byte{b.users[2]: b.exported(t, b.users[2]), b.users[3]: b.exported(t, b.users[3])}
	b.jobUnits(t)
	var units int
	if err := b.owner.QueryRow(t.Context(), "select count(*) from units where user_id = $1", int64(alice.User)).Scan(&units); err != nil {
		t.Fatal(err)
	}
	done := b.purge(t, alice)
	if want := (account.Purged{Memories: 3, Conversations: 63, Done: true}); done != want {
		t.Errorf("purged %+v, want %+v", done, want)
	}
	for _, table := range b.userTables(t) {
		n := b.count(t, fmt.Sprintf("select count(*) from %s where user_id = %d", table, alice.User))
		if n != 0 && table != "tokens" {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	if got := b.jobUnits(t); len(got) < units {
		t.Errorf("jobs delete %d units from the index, want at least %d", len(got), units)
	}
	if got := b.statuses(t, bob); strings.Count(got, "a") != 2 {
		t.Errorf("the other user's conversations are %s, want two active: the purge freed quota", got)
	}
	for u, before := range others {
		if !bytes.Equal(before, b.exported(t, u)) {
			t.Error("another tenant's account has changed")
		}
	}
	if n := b.count(t, "select count(*) from river_job where kind = 'account.purge'"); n != 0 {
		t.Errorf("%d purge jobs are left, want 0", n)
	}
	b.checkCounters(t)
	b.fillAccount(t, alice, "again") // the account can be used and purged again
	if again := b.purge(t, alice); again.Memories != 3 {
		t.Errorf("purged again: %+v", again)
	}
}

// TestPurgeAfterClockStep checks that a purge leaves nothing that was written while the
// clock of the server was ahead.
func TestPurgeAfterClockStep(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	b.fillAccount(t, alice, "alice")
	for _, ahead := range []string{"conversations set imported_at", "buckets set created_at", "idempotency_keys set created_at"} {
		if _, err := b.owner.Exec(t.Context(), "update "+ahead+" = now() + interval '90 seconds'"); err != nil {
			t.Fatal(err)
		}
	}
	b.purge(t, alice)
	for _, table := range b.userTables(t) {
		n := b.count(t, fmt.Sprintf("select count(*) from %s where user_id = %d", table, alice.User))
		if n != 0 && table != "tokens" {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
}

// A purge deletes everything that existed when it began, also what was changed or undeleted since.
func TestPurgeDeletesChangedObjects(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	bucket := b.createBucket(t, alice, "Work")
	var memories, conversations []string
	for n := range 4 {
		memories = append(memories, b.remember(t, alice, fmt.Sprint("memory ", n), nil))
		conversations = append(conversations, b.upsert(t, alice, newConversation(fmt.Sprint(n), n, 3)).Conversation.ID)
	}
	undo, err := b.Conversations().DeleteUndoable(t.Context(), alice, conversations[3:])
	if err != nil {
		t.Fatal(err)
	}
	cutoff, err := b.Accounts().BeginPurge(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversations().Undelete(t.Context(), alice, undo.Undo); !fault.Is(err, fault.NotFound) {
		t.Errorf("undo of an earlier deletion: %v, want NotFound", err)
	}

	if out := b.upsert(t, alice, newConversation("0", 0, 4)); out.Conversation.ID != conversations[0] || out.Added != 1 {
		t.Fatalf("Upsert = %+v, want a message added to %s", out, conversations[0])
	}
	replaced := newConversation("1", 1, 3)
	replaced.Messages[2].Text = "replaced"
	b.upsert(t, alice, replaced)
	b.setFlags(t, alice, chat.Flags{Pinned: yes()}, conversations[1])
	b.setFlags(t, alice, chat.Flags{Excluded: yes()}, conversations[2])
	if undo, err = b.Conversations().DeleteUndoable(t.Context(), alice, conversations[2:3]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversations().Undelete(t.Context(), alice, undo.Undo); err != nil {
		t.Fatal(err)
	}
	edited, name := "edited", "Renamed"
	_, err = b.Memories().Update(t.Context(), alice, memory.Edit{UpdateInput: memory.UpdateInput{ID: memories[0], Text: &edited, Bucket: memory.BucketRef{ID: bucket}}})
	if err != nil {
		t.Fatal(err)
	}
	b.merge(t, alice, b.remember(t, alice, "new", nil), memories[1])
	forgotten, err := b.Memories().DeleteUndoable(t.Context(), alice, memories[2:3])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Memories().Undelete(t.Context(), alice, forgotten.Undo); err != nil {
		t.Fatal(err)
	}
	if err := b.UpdateBucket(t.Context(), alice, bucket, memory.BucketUpdate{Name: &name}); err != nil {
		t.Fatal(err)
	}

	if _, err := account.Purge(t.Context(), b.Accounts(), alice, cutoff); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"buckets": 1, "memories": 1, "memory_versions": 1, "units": 1} // the new memory
	if diff := cmp.Diff(want, b.rowsOfUser(t, alice)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// userTables returns the tables with rows of users.
func (b *testBundle) userTables(t testing.TB) []string {
	t.Helper()
	rows, err := b.owner.Query(t.Context(), `select c.table_name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
		where c.table_schema = 'public' and c.column_name = 'user_id' and t.table_type = 'BASE TABLE'
		and c.table_name <> 'erasures'`) // the records outlive the user
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	return out
}

// The job completes what the request did not purge, and keeps what was written after
// the request.
func TestJobCompletesPurge(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	alice := b.users[0]
	b.fillAccount(t, alice, "alice")
	cutoff, err := b.Accounts().BeginPurge(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Accounts().Purge(t.Context(), alice, cutoff); err != nil { // one batch, then the process stops
		t.Fatal(err)
	}
	b.fillAccount(t, alice, "later")
	var raw []byte
	if err := b.owner.QueryRow(t.Context(), "select args from river_job where kind = 'account.purge' and scheduled_at > now()").Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var args account.PurgeArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		if err := b.PurgeAccount(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	if a := openExport(t, b.exported(t, alice)); a.Counts != (account.Counts{Buckets: 2, Memories: 3, Versions: 2, Conversations: 3, Messages: 9}) {
		t.Errorf("counts after the purge: %+v, want those of the later writes", a.Counts)
	}
	list, _, err := b.Memories().List(t.Context(), alice, memory.Filter{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if !strings.HasPrefix(m.Text, "later") {
			t.Errorf("memory %q is left", m.Text)
		}
	}
}
