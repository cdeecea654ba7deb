package importer_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/archive"
	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// Each check writes and reads an account several times.
func init() { _ = flag.Set("rapid.checks", "12") }

func words(text string) int { return len(strings.Fields(text)) }

// restoring returns a Runner that restores accounts.
func (b *bundle) restoring(change ...func(*importer.RestoreConfig)) *importer.Runner {
	c := importer.RestoreConfig{Files: b.imports, Restorer: b.imports, CountTokens: words}
	for _, f := range change {
		f(&c)
	}
	return b.runner(func(r *importer.Config) { r.Archive, r.Files = importer.Restore(c), c.Files })
}

// restore imports a Mnemo export.
func (b *bundle) restore(t *testing.T, scope tenant.Scope, file []byte) importer.Import {
	t.Helper()
	id := b.upload(t, scope, file, "")
	if _, err := b.restoring().Run(t.Context(), args(scope, id)); err != nil {
		t.Fatal(err)
	}
	got, err := b.GetImport(t.Context(), scope, id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// exported returns an export of the account with a fixed time, so that equal
// accounts have equal exports.
func (b *bundle) exported(t testing.TB, scope tenant.Scope) []byte {
	t.Helper()
	s, err := b.db.Accounts().Snapshot(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	if err := archive.Write(&out, monday, s.Counts, s); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (b *bundle) empty(t testing.TB, scope tenant.Scope) {
	t.Helper()
	confirm := account.Confirmation
	if _, err := account.NewService(account.Config{Store: b.db.Accounts()}).Delete(t.Context(), tenant.Identity{Scope: scope}, &confirm); err != nil {
		t.Fatal(err)
	}
}

// attributes returns some or no attributes.
func attributes(n int, dice func(n int) int) (a memory.Attributes) {
	if dice(2) == 0 {
		a.AgentID, a.RunID = "planner", fmt.Sprint("run ", n)
	}
	if dice(2) == 0 {
		a.Tags, a.Metadata = []string{"harbour", "ship"}, []byte(`{"deep":{"list":[1,null,"ä"]},"n":`+fmt.Sprint(n)+`.50}`)
	}
	return a
}

// fill fills an account with memories, some of which are edited and moved, and
// conversations in all states.
func (b *bundle) fill(t testing.TB, scope tenant.Scope, memories, conversations int, dice func(n int) int) {
	t.Helper()
	ctx := t.Context()
	var buckets []int64
	for n := range 3 {
		id, err := b.db.CreateBucket(ctx, scope, memory.BucketInput{Name: fmt.Sprint("bucket ", n), Description: "näher\nbeschrieben"})
		if err != nil {
			t.Fatal(err)
		}
		buckets = append(buckets, id)
	}
	store := b.db.Memories()
	var last string
	var older []string // the previous memory, which every third one supersedes
	for n := range memories {
		text := fmt.Sprintf("2025-05-09 memory %d of the harbour \U0001f6a2", n)
		created, err := store.Create(ctx, scope, memory.NewMemory{CreateInput: memory.CreateInput{Text: text, Source: "test", Bucket: []int64{0, buckets[dice(3)]}[dice(2)],
			Attributes: attributes(n, dice)},
			Tokens: words(text), Units: retrieve.MemoryUnits(text), Links: memory.Links{Supersedes: older}})
		if err != nil {
			t.Fatal(err)
		}
		id := created.ID
		if older = nil; n%3 == 1 {
			older = []string{id}
		}
		for v := range dice(3) {
			text := fmt.Sprintf("memory %d, edited %d times", n, v+1)
			e := memory.Edit{UpdateInput: memory.UpdateInput{ID: id, Text: &text}, Tokens: words(text), Units: retrieve.MemoryUnits(text)}
			if _, err := store.Update(ctx, scope, e); err != nil {
				t.Fatal(err)
			}
		}
		if last != "" && dice(3) == 0 { // also of merged memories
			if _, err := store.Merge(ctx, scope, memory.MergeInput{Kept: id, IDs: []string{last}}); err != nil {
				t.Fatal(err)
			}
		}
		last = id
		if dice(4) == 0 {
			if _, err := store.Move(ctx, scope, memory.MoveInput{IDs: []string{id}, Bucket: memory.BucketRef{ID: buckets[dice(3)]}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range conversations {
		// In random order, so that activation depends on more than their age.
		at := monday.Add(time.Duration(dice(1000)) * time.Hour)
		u := chat.Upsert{ExternalID: fmt.Sprint("x-", n), Platform: []string{"custom", "chatgpt"}[dice(2)], PlatformName: "A platform", Title: fmt.Sprint("Title ", n), CreatedAt: at}
		for m := range dice(4) {
			u.Messages = append(u.Messages, chat.Message{ExternalID: fmt.Sprint("m-", m), Sender: chat.Assistant, Tokens: 4,
				Text: fmt.Sprintf("The lantern number %d.", m), CreatedAt: at.Add(time.Duration(m) * time.Millisecond)})
		}
		out, err := b.chats.Upsert(ctx, scope, u)
		if err != nil {
			t.Fatal(err)
		}
		yes := true
		if flag := dice(5); flag < 2 {
			if _, err := b.chats.SetFlags(ctx, scope, []string{out.Conversation.ID}, []chat.Flags{{Excluded: &yes}, {Pinned: &yes}}[flag]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A restored account equals the exported one: ids, times, states, versions and
// order.
func TestRestoredAccountEqualsExported(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations, q.Memories, q.UserMemories = 7, 1000, tenant.NoLimit })
	rapid.Check(t, func(rt *rapid.T) {
		dice := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "dice") }
		b.empty(t, b.alice) // of a failed check
		b.fill(t, b.alice, dice(8), dice(14), dice)
		file := b.exported(t, b.alice)
		b.empty(t, b.alice)
		got := b.restore(t, b.alice, file)
		if got.Status != importer.Done || got.Failed > 0 || got.Imported != got.Total || got.Platform != importer.ArchivePlatform || len(got.Warnings) > 0 {
			rt.Fatalf("the import is %+v", got)
		}
		if again := b.exported(t, b.alice); !bytes.Equal(file, again) {
			rt.Fatalf("the restored account differs (-exported +restored):\n%s", cmp.Diff(contents(t, file), contents(t, again)))
		}
		b.checkMemoryCounters(t)
	})
}

// contents returns the records of an export as texts.
func contents(t testing.TB, file []byte) []string {
	t.Helper()
	a, err := archive.Open(bytes.NewReader(file), int64(len(file)), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for v := range a.Buckets() {
		out = append(out, fmt.Sprintf("%+v", v))
	}
	for v := range a.MemoryHistories() {
		out = append(out, fmt.Sprintf("%+v", v))
	}
	for v := range a.Transcripts() {
		out = append(out, fmt.Sprintf("%+v", v))
	}
	return out
}

// checkMemoryCounters is checkCounters for memories.
func (b *bundle) checkMemoryCounters(t testing.TB) {
	t.Helper()
	var wrong []string
	err := b.owner.QueryRow(t.Context(), `select coalesce(array_agg(name), '{}') from (
		select 'memories of the tenant' as name from usage u where memories <> (select count(*) from memories m where m.tenant_id = u.tenant_id)
			+ (select count(*) from merged_memories m where m.tenant_id = u.tenant_id)
		union all select 'storage' from usage u where storage <>
			(select coalesce(sum(octet_length(text)), 0) from memory_versions v where v.tenant_id = u.tenant_id)
			+ (select coalesce(sum(attribute_bytes), 0) from memories a where a.tenant_id = u.tenant_id)
			+ (select coalesce(sum(attribute_bytes), 0) from merged_memories a where a.tenant_id = u.tenant_id)
			+ (select coalesce(sum(octet_length(text)), 0) from messages m where m.tenant_id = u.tenant_id)
		union all select 'memories of user ' || u.name from users u where memories <> (select count(*) from memories m where m.tenant_id = u.tenant_id and m.user_id = u.id)
			+ (select count(*) from merged_memories m where m.tenant_id = u.tenant_id and m.user_id = u.id)
		union all select 'bucket ' || b.name from buckets b where memories <> (select count(*) from memories m
			where m.tenant_id = b.tenant_id and m.user_id = b.user_id and m.bucket_id = b.id)
		union all select 'sequence of ' || u.name from users u where memory_seq < (select coalesce(max(seq), 0) from memories m where m.tenant_id = u.tenant_id and m.user_id = u.id)
		union all select 'units of memory ' || m.text from memories m where not exists (select from units u
			where u.tenant_id = m.tenant_id and u.user_id = m.user_id and u.memory_id = m.id and u.group_id = m.bucket_id)) x`).Scan(&wrong)
	if err != nil || len(wrong) > 0 {
		t.Errorf("wrong counters: %v, %v", wrong, err)
	}
}

func largeQuota(q *tenant.Quota) { q.Memories, q.UserMemories = 1000, tenant.NoLimit }

func constant(n int) int { return n / 2 }

// A restore into an account with content fails and changes nothing. The default
// bucket does not count as content.
func TestRestoreNeedsAnEmptyAccount(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.fill(t, b.alice, 3, 3, constant)
	file := b.exported(t, b.alice)
	for name, create := range map[string]func(){
		"memory": func() {
			_, err := b.db.Memories().Create(t.Context(), b.bob, memory.NewMemory{CreateInput: memory.CreateInput{Text: "mine"}, Units: retrieve.MemoryUnits("mine")})
			if err != nil {
				t.Fatal(err)
			}
		},
		"bucket": func() {
			if _, err := b.db.CreateBucket(t.Context(), b.bob, memory.BucketInput{Name: "mine"}); err != nil {
				t.Fatal(err)
			}
		},
		"conversation": func() {
			u := chat.Upsert{ExternalID: "x", Platform: "custom", CreatedAt: monday, Messages: []chat.Message{{ExternalID: "1", Sender: chat.Human, CreatedAt: monday}}}
			if _, err := b.chats.Upsert(t.Context(), b.bob, u); err != nil {
				t.Fatal(err)
			}
		},
	} {
		b.empty(t, b.bob)
		create()
		before := b.exported(t, b.bob)
		got := b.restore(t, b.bob, file)
		if got.Status != importer.Failed || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error, "only be restored into an empty account") {
			t.Errorf("with %s: %+v", name, got)
		}
		if !bytes.Equal(before, b.exported(t, b.bob)) {
			t.Errorf("with %s: the account has changed", name)
		}
	}
	b.empty(t, b.bob)
	if _, err := b.db.ListBuckets(t.Context(), b.bob); err != nil { // creates the default bucket
		t.Fatal(err)
	}
	if got := b.restore(t, b.bob, file); got.Status != importer.Done {
		t.Errorf("with a default bucket: %+v", got)
	}
}

// Several users can restore the same export, with the same ids, and remain
// isolated from each other.
func TestSeveralUsersRestoreTheSameExport(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 4 })
	b.fill(t, b.alice, 3, 3, constant)
	file := b.exported(t, b.alice)
	for name, u := range map[string]tenant.Scope{"of the tenant": b.bob, "of another tenant": b.carol} {
		if got := b.restore(t, u, file); got.Status != importer.Done {
			t.Errorf("user %s: Status = %v, want %v", name, got.Status, importer.Done)
		} else if got.Imported != 3 {
			t.Errorf("user %s: Imported = %d, want 3", name, got.Imported)
		}
		if !bytes.Equal(file, b.exported(t, b.alice)) {
			t.Errorf("user %s: the exporting user's account has changed", name)
		}
	}
	if got := b.count(t, "conversations where user_id = $1 and status = 'blocked'", int64(b.bob.User)); got != 2 {
		t.Errorf("%d conversations of the second user are blocked, want 2", got)
	}
	// Freed quota activates the second user's conversations, although the first
	// user has conversations with the same ids.
	list, _, err := b.chats.List(t.Context(), b.alice, chat.ConversationFilter{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	for _, c := range slices.Backward(list) {
		if _, err := b.chats.SetFlags(t.Context(), b.alice, []string{c.ID}, chat.Flags{Excluded: &yes}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.count(t, "conversations where user_id = $1 and status = 'excluded'", int64(b.alice.User)); got != 3 {
		t.Errorf("%d conversations of the first user are excluded, want 3", got)
	}
	b.checkCounters(t)
	b.empty(t, b.alice)
	if got := b.count(t, "conversations where user_id = $1 and status = 'active'", int64(b.bob.User)); got != 3 {
		t.Errorf("%d conversations of the second user are active, want 3", got)
	}
	if got := openArchive(t, b.exported(t, b.bob)).Counts; got != openArchive(t, file).Counts {
		t.Errorf("the second user's account has %+v", got)
	}
	if id, err := b.db.CreateBucket(t.Context(), b.carol, memory.BucketInput{Name: "new"}); err != nil || id == 0 {
		t.Errorf("a new bucket beside restored ones: %d, %v", id, err)
	}
}

func openArchive(t testing.TB, file []byte) *archive.Archive {
	t.Helper()
	a, err := archive.Open(bytes.NewReader(file), int64(len(file)), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A restore respects quotas: it skips memories over quota with a warning, and
// activates the newest of the conversations that were active.
func TestRestoreRespectsQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Memories, q.UserMemories = 100, tenant.NoLimit })
	b.fill(t, b.alice, 10, 6, constant)
	file := b.exported(t, b.alice)
	b.empty(t, b.alice)
	b.spec.Quota.Memories, b.spec.Quota.Conversations = 4, 2
	if _, err := b.db.Apply(t.Context(), b.spec); err != nil {
		t.Fatal(err)
	}
	got := b.restore(t, b.alice, file)
	if got.Status != importer.Done || got.Imported != 6 || got.Blocked != 4 || len(got.Warnings) != 1 ||
		!strings.HasPrefix(got.Warnings[0], "Skipped 6 of 10 memories: ") {
		t.Errorf("the import is %+v", got)
	}
	if n := b.count(t, "memories"); n != 4 {
		t.Errorf("%d memories, want 4", n)
	}
	var newest int
	if err := b.owner.QueryRow(t.Context(), `select count(*) from conversations c where status = 'active'
		and (select count(*) from conversations n where n.updated_at > c.updated_at) < 2`).Scan(&newest); err != nil || newest != 2 {
		t.Errorf("%d of the newest two are active, %v", newest, err)
	}
	b.checkMemoryCounters(t)
}

// failingStore fails after some steps, as if the process were killed.
type failingStore struct {
	importer.Files
	importer.Restorer
	left int
}

var errKilled = errors.New("killed")

func (d *failingStore) step() error {
	if d.left--; d.left < 0 {
		return errKilled
	}
	return nil
}

func (d *failingStore) Memories(ctx context.Context, run importer.Run, done importer.Progress, batch []importer.RestoredMemory) (importer.Progress, error) {
	if err := d.step(); err != nil {
		return done, err
	}
	return d.Restorer.Memories(ctx, run, done, batch)
}

func (d *failingStore) StoreBatch(ctx context.Context, run importer.Run, batch importer.Batch) (importer.Batch, error) {
	if err := d.step(); err != nil {
		return importer.Batch{}, err
	}
	return d.Files.StoreBatch(ctx, run, batch)
}

func (d *failingStore) Activate(ctx context.Context, run importer.Run, ids []string) (bool, error) {
	if err := d.step(); err != nil {
		return false, err
	}
	return d.Restorer.Activate(ctx, run, ids)
}

// A restore is resumed wherever its worker dies, and the account is complete.
func TestRestoreIsResumed(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	b.fill(t, b.alice, 120, 60, constant)
	file := b.exported(t, b.alice)
	for at := range 9 {
		b.empty(t, b.alice)
		id := b.upload(t, b.alice, file, "")
		for range 2 { // two workers fail after the same number of steps
			d := &failingStore{b.imports, b.imports, at}
			_, err := b.restoring(func(c *importer.RestoreConfig) { c.Files, c.Restorer = d, d }).Run(t.Context(), args(b.alice, id))
			if at < 3 && !errors.Is(err, errKilled) {
				t.Errorf("failure at step %d: %v", at, err)
			}
		}
		if _, err := b.restoring().Run(t.Context(), args(b.alice, id)); err != nil {
			t.Fatal(err)
		}
		if got, err := b.GetImport(t.Context(), b.alice, id); err != nil {
			t.Fatalf("failure at step %d: %v", at, err)
		} else if got.Status != importer.Done {
			t.Errorf("failure at step %d: Status = %v, want %v", at, got.Status, importer.Done)
		} else if got.Imported != 60 {
			t.Errorf("failure at step %d: Imported = %d, want 60", at, got.Imported)
		}
		if !bytes.Equal(file, b.exported(t, b.alice)) {
			t.Errorf("failure at step %d: the restored account differs", at)
		}
	}
	b.checkMemoryCounters(t)
}

// An account that is deleted while it is being restored stays deleted.
func TestRestoreEndsWithTheAccount(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	b.fill(t, b.alice, 120, 60, constant)
	file := b.exported(t, b.alice)
	b.empty(t, b.alice)
	id := b.upload(t, b.alice, file, "")
	deleting := &deletes{Restorer: b.imports, now: func() { b.empty(t, b.alice) }}
	if _, err := b.restoring(func(c *importer.RestoreConfig) { c.Restorer = deleting }).Run(t.Context(), args(b.alice, id)); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "memories") + b.count(t, "conversations") + b.count(t, "imports"); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

// deletes is a Restorer that deletes the account after a batch.
type deletes struct {
	importer.Restorer
	now func()
}

func (d *deletes) Memories(ctx context.Context, run importer.Run, done importer.Progress, batch []importer.RestoredMemory) (importer.Progress, error) {
	out, err := d.Restorer.Memories(ctx, run, done, batch)
	d.now()
	return out, err
}

// An export with invalid lines is rejected with an error that names them. On request, the rest of it is restored, with a
// warning that names them.
func TestRestoreSkipsInvalidLinesOnRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	memories := make([]account.Memory, 4)
	for n := range memories {
		memories[n] = account.Memory{ID: fmt.Sprintf("0196b2f4-6d1e-7c3a-9f5e-%012d", n), Bucket: 7, Text: []string{"fine", " "}[n%2], Version: 1,
			CreatedAt: monday, UpdatedAt: monday, EditedAt: monday}
	}
	var file bytes.Buffer
	if err := archive.Write(&file, monday, account.Counts{Buckets: 1, Memories: 4}, content{memories}); err != nil {
		t.Fatal(err)
	}
	const says = "memories.jsonl line 2: text is required and must not be blank; memories.jsonl line 4: text is required and must not be blank"
	if got := b.restore(t, b.alice, file.Bytes()); got.Status != importer.Failed || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error, says) {
		t.Errorf("without the option: %+v", got)
	}
	id := b.uploadWith(t, b.alice, file.Bytes(), importer.ImportOptions{SkipInvalid: true})
	if _, err := b.restoring().Run(t.Context(), args(b.alice, id)); err != nil {
		t.Fatal(err)
	}
	got := b.get(t, b.alice, id)
	if want := []string{"Skipped 2 invalid lines, with what belongs to them: " + says + "."}; got.Status != importer.Done || !slices.Equal(got.Warnings, want) {
		t.Errorf("with the option: %+v, want the warnings %q", got, want)
	}
	if n := b.count(t, "memories"); n != 2 {
		t.Errorf("%d memories, want 2", n)
	}
}

// chats is the content of an account without memories.
type chats struct {
	content
	list []chat.Conversation
}

func (c chats) Conversations() iter.Seq2[chat.Conversation, error] { return each(c.list) }

// The counts of an import add up, also if conversations are skipped.
func TestSkippedConversationsAreNotCounted(t *testing.T) {
	t.Parallel()
	b := setup(t, largeQuota)
	var list []chat.Conversation
	for n, id := range []string{"", "x-1", "x-2"} { // the first one is invalid
		list = append(list, chat.Conversation{ID: fmt.Sprintf("0196b2f4-6d1e-7c3a-9f5e-%012d", n), Platform: "custom", ExternalID: id,
			Status: chat.Active, CreatedAt: monday, UpdatedAt: monday})
	}
	var file bytes.Buffer
	if err := archive.Write(&file, monday, account.Counts{Buckets: 1, Conversations: 3}, chats{list: list}); err != nil {
		t.Fatal(err)
	}
	id := b.uploadWith(t, b.alice, file.Bytes(), importer.ImportOptions{SkipInvalid: true})
	if _, err := b.restoring().Run(t.Context(), args(b.alice, id)); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, b.alice, id); got.Status != importer.Done || got.Total != 2 || got.Imported != 2 {
		t.Errorf("the import is %+v, want 2 of 2 conversations", got)
	}
}

// Conversations and messages without a time, as older versions stored them, are restored with the time of their
// conversation, or of the restore.
func TestRestoreOfZeroTimes(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	at := monday
	for n := range 2 {
		u := chat.Upsert{ExternalID: fmt.Sprint("x-", n), Platform: "custom", CreatedAt: at, Messages: []chat.Message{{ExternalID: "1", Sender: chat.Human, Text: "hi"}}}
		if _, err := b.chats.Upsert(t.Context(), b.alice, u); err != nil {
			t.Fatal(err)
		}
		at = time.Time{}
	}
	file := b.exported(t, b.alice)
	b.empty(t, b.alice)
	if got := b.restore(t, b.alice, file); got.Status != importer.Done || got.Imported != 2 {
		t.Fatalf("the import is %+v", got)
	}
	if n := b.count(t, "conversations c join messages m on m.conversation_id = c.id where c.external_id = 'x-0' and m.created_at = $1 and c.created_at = $1", monday); n != 1 {
		t.Errorf("the message does not have the time of its conversation")
	}
	if n := b.count(t, "conversations c join messages m on m.conversation_id = c.id where m.created_at < '1970-01-01' or c.created_at < '1970-01-01'"); n != 0 {
		t.Errorf("%d messages have the zero time", n)
	}
}
