package importer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// volatile ignores fields that differ between runs.
var volatile = cmpopts.IgnoreFields(importer.Import{}, "ID", "StartedAt", "FinishedAt", "Version")

func TestImportIsStoredAndFound(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	got := b.importFile(t, b.alice, export(t, conversations(130)))
	want := importer.Import{Platform: "claude", Status: importer.Done, Total: 130, Imported: 130, Errors: []importer.EntryError{}, Warnings: []string{}}
	if diff := cmp.Diff(want, got, volatile); diff != "" {
		t.Errorf("the import (-want +got):\n%s", diff)
	}
	if got.FinishedAt.IsZero() || got.StartedAt.After(got.FinishedAt) || got.Settled() {
		t.Errorf("it began %s, ended %s, settled %t before anything is embedded", got.StartedAt, got.FinishedAt, got.Settled())
	}
	if diff := cmp.Diff(all(130, chat.Active), b.statuses(t, b.alice)); diff != "" {
		t.Errorf("conversations (-want +got):\n%s", diff)
	}
	list, total, err := b.chats.List(t.Context(), b.alice, chat.ConversationFilter{ImportID: got.ID, Limit: 1})
	if err != nil || total != 130 || len(list) != 1 || list[0].ExternalID != "c-129" || list[0].Title != "Title c-129" ||
		!list[0].UpdatedAt.Equal(monday.Add(129*time.Hour+time.Minute)) {
		t.Errorf("of the import: %d, %+v, %v", total, list, err)
	}
	_, messages, err := b.chats.Get(t.Context(), b.alice, list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 2 {
		t.Fatalf("len(messages) = %d, want 2", len(messages))
	}
	if messages[1].Text != "It is the lantern with the number 129." {
		t.Errorf(`messages[1].Text = %q, want "It is the lantern with the number 129."`, messages[1].Text)
	}
	if messages[1].Sender != chat.Assistant {
		t.Errorf("messages[1].Sender = %v, want %v", messages[1].Sender, chat.Assistant)
	}
	if messages[1].Tokens != 8 {
		t.Errorf("messages[1].Tokens = %d, want 8", messages[1].Tokens)
	}
	if n := b.count(t, "units where active and conversation_id = $1", list[0].ID); n != 2 {
		t.Errorf("it has %d active units, want 2", n)
	}
	for name, scope := range map[string]tenant.Scope{"another user": b.bob, "another tenant": b.carol} {
		if _, err := b.GetImport(t.Context(), scope, got.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
		if list, n, err := b.ListImports(t.Context(), scope, 0, 10); err != nil {
			t.Fatalf("%s: %v", name, err)
		} else if n != 0 {
			t.Errorf("%s: total = %d, want 0", name, n)
		} else if len(list) != 0 {
			t.Errorf("%s: len(list) = %d, want 0", name, len(list))
		}
		if got := b.statuses(t, scope); len(got) != 0 {
			t.Errorf("%s: sees %v", name, got)
		}
	}
}

// An import is settled when the units of all its active conversations are indexed.
func TestIndexedFollowsTheIndex(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 3 })
	i := b.importFile(t, b.alice, export(t, conversations(5)))
	if i.Indexed != 2 {
		t.Errorf("i.Indexed = %d, want 2", i.Indexed)
	}
	if i.Blocked != 2 {
		t.Errorf("i.Blocked = %d, want 2", i.Blocked)
	}
	confirm := func(external string) {
		t.Helper()
		_, err := b.owner.Exec(t.Context(), "update units set indexed_at = now() where conversation_id = (select id from conversations where external_id = $1)", external)
		if err != nil {
			t.Fatal(err)
		}
	}
	for n, id := range []string{"c-2", "c-4", "c-3"} {
		confirm(id)
		before := i.Version
		i = b.get(t, b.alice, i.ID)
		if i.Indexed != 3+n || i.Version == before || i.Settled() != (n == 2) {
			t.Errorf("after %s: %+v", id, i)
		}
	}
	if again := b.get(t, b.alice, i.ID); again.Version != i.Version {
		t.Errorf("version went from %d to %d without a change", i.Version, again.Version)
	}
}

func TestSecondImportIsUnchanged(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	data := export(t, conversations(60))
	first := b.importFile(t, b.alice, data)
	const rows = `select format('%s %s %s %s', (select string_agg(xmin::text, ',' order by id) from conversations),
		(select string_agg(xmin::text, ',' order by conversation_id, seq) from messages), (select string_agg(xmin::text, ',' order by id) from units),
		(select count(*) from river_job where kind = 'index.sync'))`
	read := func() (text string) {
		t.Helper()
		if err := b.owner.QueryRow(t.Context(), rows).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := read()
	second := b.importFile(t, b.alice, data)
	want := importer.Import{Platform: "claude", Status: importer.Done, Total: 60, Skipped: 60, Unchanged: 60, Indexed: 60,
		Errors: []importer.EntryError{}, Warnings: []string{}}
	if diff := cmp.Diff(want, second, volatile); diff != "" {
		t.Errorf("the second import (-want +got):\n%s", diff)
	}
	if read() != before {
		t.Error("the second import wrote rows")
	}
	list, n, err := b.ListImports(t.Context(), b.alice, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if n != 2 {
		t.Fatalf("total = %d, want 2", n)
	}
	if list[0].ID != second.ID {
		t.Errorf("list[0].ID = %v, want %v", list[0].ID, second.ID)
	}
	if list[1].ID != first.ID {
		t.Errorf("list[1].ID = %v, want %v", list[1].ID, first.ID)
	}
}

func TestLaterExportAddsNewContent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	list := conversations(4)
	b.importFile(t, b.alice, export(t, list))
	if _, err := b.chats.SetFlags(t.Context(), b.alice, b.ids(t, "c-2"), chat.Flags{Excluded: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.chats.Delete(t.Context(), b.alice, b.ids(t, "c-3")); err != nil {
		t.Fatal(err)
	}
	list[0].messages = append(list[0].messages, "And the number after it?")
	list[1].messages[1] = "It is the ferry."
	list[2].messages = append(list[2].messages, "Still there?")
	list = append(list, conversations(6)[5])
	got := b.importFile(t, b.alice, export(t, list))
	want := importer.Import{Platform: "claude", Status: importer.Done, Total: 5, Imported: 2, Updated: 3, Indexed: 1, Errors: []importer.EntryError{}, Warnings: []string{}}
	if diff := cmp.Diff(want, got, volatile); diff != "" {
		t.Errorf("the import (-want +got):\n%s", diff)
	}
	wanted := with(all(4, chat.Active), chat.Active, "c-5")
	wanted["c-2"] = chat.Excluded
	if diff := cmp.Diff(wanted, b.statuses(t, b.alice)); diff != "" {
		t.Errorf("conversations (-want +got):\n%s", diff)
	}
	for id, want := range map[string]string{"c-0": "And the number after it?", "c-1": "It is the ferry.", "c-2": "Still there?"} {
		_, messages, err := b.chats.Get(t.Context(), b.alice, b.ids(t, id)[0])
		if err != nil || messages[len(messages)-1].Text != want {
			t.Errorf("%s ends with %+v, %v", id, messages, err)
		}
	}
}

// ids returns the ids of conversations by their external ids.
func (b *bundle) ids(t *testing.T, external ...string) []string {
	t.Helper()
	var out []string
	for _, id := range external {
		var own string
		if err := b.owner.QueryRow(t.Context(), "select id::text from conversations where external_id = $1", id).Scan(&own); err != nil {
			t.Fatal(err)
		}
		out = append(out, own)
	}
	return out
}

// Every conversation of a file has a ledger row, including those that cannot be
// read.
func TestLedgerIsComplete(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	list := conversations(3)
	list = append(list, conversation{id: "empty", at: monday}, list[1])
	data := strings.Replace(string(export(t, list)), `{"chat_messages"`, `{"broken":`+strings.Repeat("[", 400)+strings.Repeat("]", 400)+`,"uuid":"deep","chat_messages":[]},{"chat_messages"`, 1)
	got := b.importFile(t, b.alice, []byte(data))
	if got.Total != 6 {
		t.Errorf("the import: Total = %d, want 6", got.Total)
	}
	if got.Imported != 3 {
		t.Errorf("the import: Imported = %d, want 3", got.Imported)
	}
	if got.Skipped != 2 {
		t.Errorf("the import: Skipped = %d, want 2", got.Skipped)
	}
	if got.Failed != 1 {
		t.Errorf("the import: Failed = %d, want 1", got.Failed)
	}
	if got.Unchanged != 0 {
		t.Errorf("the import: Unchanged = %d, want 0", got.Unchanged)
	}
	if len(got.Errors) != 1 {
		t.Errorf("the import: len(Errors) = %d, want 1", len(got.Errors))
	}
	if n := b.count(t, "import_ledger where import_id = $1", got.ID); n != 6 {
		t.Errorf("the ledger has %d rows", n)
	}
	if n := b.count(t, "import_ledger where import_id = $1 and outcome in ('skipped', 'failed') and reason = ''", got.ID); n != 0 {
		t.Errorf("%d rows have no reason", n)
	}
}

// interruptingStore calls interrupt, once, after it has stored some batches.
type interruptingStore struct {
	importer.Files
	left      atomic.Int32
	interrupt func()
}

func (s *interruptingStore) StoreBatch(ctx context.Context, run importer.Run, b importer.Batch) (importer.Batch, error) {
	if !b.Entries[0].TokensCounted { // stores nothing yet
		return s.Files.StoreBatch(ctx, run, b)
	}
	left := s.left.Add(-1)
	if left == -1 {
		s.interrupt()
	}
	if left < 0 {
		<-ctx.Done()
		return importer.Batch{}, ctx.Err()
	}
	return s.Files.StoreBatch(ctx, run, b)
}

// An interrupted import is resumed by the next worker.
func TestImportIsResumed(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 10 })
	id := b.upload(t, b.alice, export(t, conversations(320)), "")
	ctx, cancel := context.WithCancel(t.Context())
	store := &interruptingStore{Files: b.imports, interrupt: cancel}
	store.left.Store(3)
	again, err := b.runner(func(c *importer.Config) { c.Files = store }).Run(ctx, args(b.alice, id))
	if err != nil || again == 0 {
		t.Errorf("Run of a canceled worker = %s, %v", again, err)
	}
	half := b.get(t, b.alice, id)
	if half.Status != importer.Running || half.Imported < 50 || half.Imported > 150 || half.Total != 320 || half.Blocked != 0 {
		t.Errorf("in the middle: %+v", half)
	}

	// Another user's conversation gets quota; those of the import wait until the
	// whole file is stored.
	at := monday.AddDate(-1, 0, 0)
	_, err = b.chats.Upsert(t.Context(), b.bob, chat.Upsert{ExternalID: "x", Platform: "custom", CreatedAt: at,
		Messages: []chat.Message{{ExternalID: "1", Sender: chat.Human, Text: "hello", Tokens: 1, CreatedAt: at}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "conversations where status = 'active'"); n != 1 {
		t.Errorf("%d conversations are active in the middle of the import, want 1", n)
	}

	stop := make(chan struct{})
	store.interrupt = func() { close(stop) }
	store.left.Store(1)
	again, err = b.runner(func(c *importer.Config) { c.Files, c.Stop = store, stop }).Run(t.Context(), args(b.alice, id))
	if err != nil || again == 0 {
		t.Errorf("Run of a stopped worker = %s, %v", again, err)
	}
	got := b.run(t, b.alice, id)
	if got.Status != importer.Done {
		t.Errorf("in the end: Status = %v, want %v", got.Status, importer.Done)
	}
	if got.Imported != 320 {
		t.Errorf("in the end: Imported = %d, want 320", got.Imported)
	}
	if got.Blocked != 311 {
		t.Errorf("in the end: Blocked = %d, want 311", got.Blocked)
	}
	newest := all(320, chat.Blocked)
	for _, c := range conversations(320)[311:] {
		newest[c.id] = chat.Active
	}
	if diff := cmp.Diff(newest, b.statuses(t, b.alice)); diff != "" {
		t.Errorf("the newest should be active (-want +got):\n%s", diff)
	}
}

// When a lease expires, another worker resumes the import, and the first worker
// can no longer change it.
func TestExpiredLeaseIsFenced(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, conversations(60)), "")
	run, got, err := b.imports.Claim(t.Context(), args(b.alice, id), "0196b2f5-0000-7000-8000-000000000001", time.Second)
	if err != nil || got != importer.ClaimGranted {
		t.Fatalf("Claim = %v, %v", got, err)
	}
	if again, err := b.runner().Run(t.Context(), args(b.alice, id)); err != nil || again == 0 {
		t.Errorf("while another worker has it: Run = %s, %v", again, err)
	}
	second := b.upload(t, b.alice, export(t, conversations(2)), "")
	if again, err := b.runner().Run(t.Context(), args(b.alice, second)); err != nil || again == 0 {
		t.Errorf("while another import of the user is running: Run = %s, %v", again, err)
	}
	if n := b.count(t, "river_job where kind = 'chat.import' and state = 'scheduled' and args ->> 'import' = $1", id); n != 2 {
		t.Errorf("%d jobs check the import, want 2: of the upload and of the claim", n)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		again, err := b.runner().Run(t.Context(), args(b.alice, id))
		if err != nil {
			t.Fatal(err)
		}
		if again == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no worker could claim the import within 20 s")
		}
	}
	entry := importer.Batch{Entries: []importer.Entry{{Ordinal: 99, Outcome: importer.EntryFailed, Reason: "late"}}}
	_, storeErr := b.imports.StoreBatch(t.Context(), run, entry)
	for what, err := range map[string]error{
		"Renew": b.imports.Renew(t.Context(), run, time.Second), "StoreBatch": storeErr,
		"SetContent": b.imports.SetContent(t.Context(), run, importer.FileContent{}), "Finish": b.imports.Finish(t.Context(), run, "late", nil),
	} {
		if !errors.Is(err, importer.ErrLeaseLost) {
			t.Errorf("%s without the lease: %v, want ErrLeaseLost", what, err)
		}
	}
	if got := b.get(t, b.alice, id); got.Status != importer.Done {
		t.Errorf("the import: Status = %v, want %v", got.Status, importer.Done)
	} else if got.Imported != 60 {
		t.Errorf("the import: Imported = %d, want 60", got.Imported)
	} else if got.Failed != 0 {
		t.Errorf("the import: Failed = %d, want 0", got.Failed)
	}
}

// unreadableStore fails to read chunks.
type unreadableStore struct {
	importer.Files
	err error
}

func (f unreadableStore) ReadChunk(context.Context, importer.Run, int) ([]byte, error) {
	return nil, f.err
}

// Errors of the store never count as errors of the file, and an import fails
// after too many attempts.
func TestStoreErrors(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, conversations(2)), "")
	for _, cause := range []error{fault.Wrap(fault.Unavailable, io.ErrUnexpectedEOF, "database unavailable"), io.EOF, fault.New(fault.NotFound, "gone")} {
		_, err := b.runner(func(c *importer.Config) { c.Files = unreadableStore{b.imports, cause} }).Run(t.Context(), args(b.alice, id))
		if !errors.Is(err, cause) {
			t.Errorf("Run = %v, want %v", err, cause)
		}
	}
	if got := b.get(t, b.alice, id); got.Status != importer.Running {
		t.Errorf("the import is %s", got.Status)
	}
	for range 8 {
		_, _ = b.runner(func(c *importer.Config) { c.Files = unreadableStore{b.imports, io.EOF} }).Run(t.Context(), args(b.alice, id))
	}
	got := b.run(t, b.alice, id)
	if got.Status != importer.Failed || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error, "could not be imported after 10 attempts") || !got.Settled() {
		t.Errorf("after 10 attempts: %+v", got)
	}
}

func TestBadFilesFail(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	good := string(export(t, conversations(3)))
	for name, tc := range map[string]struct{ data, platform, says string }{
		"text":       {"Dear diary", "", "it looks like text"},
		"cut":        {good[:len(good)-20], "", "ends unexpectedly"},
		"zip":        {"PK\x03\x04............", "", "damaged or incomplete"},
		"other JSON": {`[{"name":"Alice"}]`, "", "it looks like a JSON list of objects with the member name"},
	} {
		got := b.run(t, b.alice, b.upload(t, b.alice, []byte(tc.data), tc.platform))
		if got.Status != importer.Failed || len(got.Errors) != 1 || got.Errors[0].Conversation != "" || !strings.Contains(got.Errors[0].Error, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := b.count(t, "conversations"); n != 0 {
		t.Errorf("%d conversations were imported", n)
	}
}

// Conversations that exceed the storage quota fail, and only those.
func TestStorageQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Storage = 1000 })
	list := conversations(4)
	list[1].messages[0] = strings.Repeat("long ", 300)
	got := b.importFile(t, b.alice, export(t, list))
	if got.Status != importer.Done || got.Imported != 3 || got.Failed != 1 || len(got.Errors) != 1 || got.Errors[0].Conversation != "c-1" ||
		!strings.Contains(got.Errors[0].Error, "storage quota exceeded (limit 1000 bytes") {
		t.Errorf("the import: %+v", got)
	}
	list[1].messages = []string{strings.Repeat("x", 1000-b.bytes(t))}
	if got := b.importFile(t, b.alice, export(t, list)); got.Imported != 1 {
		t.Errorf("a conversation that uses all of the quota: Imported = %d, want 1", got.Imported)
	} else if got.Unchanged != 3 {
		t.Errorf("a conversation that uses all of the quota: Unchanged = %d, want 3", got.Unchanged)
	}
	service := &importer.Service{Uploads: b.imports}
	if _, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("upload without storage quota: %v, want Forbidden", err)
	}
}

// bytes returns the storage usage of the tenant.
func (b *bundle) bytes(t *testing.T) int {
	t.Helper()
	var n int
	if err := b.owner.QueryRow(t.Context(), "select storage from usage where tenant_id = $1", b.alice.Tenant).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Mnemo exports are tried before the formats of other platforms.
func TestArchiveIsTriedFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	data := export(t, conversations(2))
	for name, tc := range map[string]struct {
		handled bool
		err     error
		want    importer.Status
		total   int
	}{
		"not an archive":  {false, nil, importer.Done, 2},
		"archive":         {true, nil, importer.Done, 0},
		"invalid archive": {false, fault.New(fault.Invalid, "the archive is of another version"), importer.Failed, 0},
	} {
		id := b.upload(t, b.alice, data, "")
		_, err := b.runner(func(c *importer.Config) {
			c.Archive = func(_ context.Context, run importer.Run, file io.ReaderAt) (bool, []string, error) {
				read, err := io.ReadAll(io.NewSectionReader(file, 0, run.Size))
				if err != nil || string(read) != string(data) {
					t.Errorf("%s: read %q, %v", name, read, err)
				}
				return tc.handled, nil, tc.err
			}
		}).Run(t.Context(), args(b.alice, id))
		if got := b.get(t, b.alice, id); err != nil {
			t.Fatalf("%s: %v", name, err)
		} else if got.Status != tc.want {
			t.Errorf("%s: Status = %v, want %v", name, got.Status, tc.want)
		} else if got.Total != tc.total {
			t.Errorf("%s: Total = %v, want %v", name, got.Total, tc.total)
		}
	}
}

// Keyword search finds imported conversations by the same words as those sent
// online.
func TestImportedUnitsEqualOnlineUnits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	list := conversations(1)
	for i := range 7 {
		list[0].messages = append(list[0].messages, strings.Repeat(fmt.Sprintf("The ferries of island %d are running late. ", i), 1+i*i*3), " short <b> answer\n")
	}
	b.importFile(t, b.alice, export(t, list))
	u := chat.Upsert{ExternalID: "c-0", Platform: "claude", Title: "Title c-0", CreatedAt: list[0].at}
	for i, text := range list[0].messages {
		u.Messages = append(u.Messages, chat.Message{ExternalID: fmt.Sprint(i), Text: text, CreatedAt: list[0].at,
			Sender: []chat.Sender{chat.Human, chat.Assistant}[i%2]})
	}
	if _, err := b.chats.Upsert(t.Context(), b.bob, u); err != nil {
		t.Fatal(err)
	}
	words := func(scope tenant.Scope) []string {
		t.Helper()
		rows, err := b.owner.Query(t.Context(), `select format('%s %s-%s %s: %s', seq, span_start, span_end, group_id,
				(select string_agg(format('%s %s', w.lexeme, cardinality(w.positions)), ', ' order by w.lexeme) from unnest(tsv) w))
			from units where user_id = $1 order by seq, span_start`, scope.User)
		if err != nil {
			t.Fatal(err)
		}
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	online := words(b.bob)
	if diff := cmp.Diff(online, words(b.alice)); diff != "" || len(online) < 17 {
		t.Errorf("%d units (-online +imported):\n%s", len(online), diff)
	}
}
