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

// volatile is what differs from import to import.
var volatile = cmpopts.IgnoreFields(chat.Import{}, "ID", "StartedAt", "FinishedAt", "Version")

func TestImportIsStoredAndFound(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	got := b.take(t, b.alice, export(t, talks(130)))
	want := chat.Import{Platform: "claude", Status: chat.ImportDone, Total: 130, Imported: 130, Errors: []chat.ImportError{}, Warnings: []string{}}
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
	if err != nil || total != 130 || len(list) != 1 || list[0].ExternalID != "c-129" || list[0].Title != "Talk c-129" ||
		!list[0].UpdatedAt.Equal(monday.Add(129*time.Hour+time.Minute)) {
		t.Errorf("of the import: %d, %+v, %v", total, list, err)
	}
	_, messages, err := b.chats.Get(t.Context(), b.alice, list[0].ID)
	if err != nil || len(messages) != 2 || messages[1].Text != "It is the lantern with the number 129." || messages[1].Sender != chat.Assistant || messages[1].Tokens != 8 {
		t.Errorf("messages %+v, %v", messages, err)
	}
	if n := b.count(t, "units where active and conversation_id = $1", list[0].ID); n != 2 {
		t.Errorf("it has %d active units, want 2", n)
	}
	for name, scope := range map[string]tenant.Scope{"another user": b.bob, "another tenant": b.carol} {
		if _, err := b.GetImport(t.Context(), scope, got.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
		if list, n, err := b.ListImports(t.Context(), scope, 0, 10); err != nil || n != 0 || len(list) != 0 {
			t.Errorf("%s: lists %v, %v", name, list, err)
		}
		if got := b.statuses(t, scope); len(got) != 0 {
			t.Errorf("%s: sees %v", name, got)
		}
	}
}

// What an import counts towards its end is what the index confirms.
func TestIndexedCountsOn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 3 })
	i := b.take(t, b.alice, export(t, talks(5)))
	if i.Indexed != 2 || i.Blocked != 2 {
		t.Errorf("two are blocked and have nothing to embed: %+v", i)
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
		t.Errorf("nothing changed, but the version went from %d to %d", i.Version, again.Version)
	}
}

func TestSecondImportIsUnchanged(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	data := export(t, talks(60))
	first := b.take(t, b.alice, data)
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
	second := b.take(t, b.alice, data)
	want := chat.Import{Platform: "claude", Status: chat.ImportDone, Total: 60, Skipped: 60, Unchanged: 60, Indexed: 60,
		Errors: []chat.ImportError{}, Warnings: []string{}}
	if diff := cmp.Diff(want, second, volatile); diff != "" {
		t.Errorf("the second import (-want +got):\n%s", diff)
	}
	if read() != before {
		t.Error("the second import wrote rows")
	}
	list, n, err := b.ListImports(t.Context(), b.alice, 0, 10)
	if err != nil || n != 2 || list[0].ID != second.ID || list[1].ID != first.ID {
		t.Errorf("imports %+v, %d, %v; want the newest first", list, n, err)
	}
}

func TestLaterExportAddsWhatIsNew(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	list := talks(4)
	b.take(t, b.alice, export(t, list))
	if _, err := b.chats.Mark(t.Context(), b.alice, b.ids(t, "c-2"), chat.Marks{Excluded: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.chats.Delete(t.Context(), b.alice, b.ids(t, "c-3")); err != nil {
		t.Fatal(err)
	}
	list[0].messages = append(list[0].messages, "And the number after it?")
	list[1].messages[1] = "It is the ferry."
	list[2].messages = append(list[2].messages, "Still there?")
	list = append(list, talks(6)[5])
	got := b.take(t, b.alice, export(t, list))
	want := chat.Import{Platform: "claude", Status: chat.ImportDone, Total: 5, Imported: 2, Updated: 3, Indexed: 1, Errors: []chat.ImportError{}, Warnings: []string{}}
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

// ids returns the ids of conversations by theirs on the platform.
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

// Each conversation of a file is accounted for, those included that cannot be read.
func TestLedgerAccountsForAll(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	list := talks(3)
	list = append(list, talk{id: "empty", at: monday}, list[1])
	data := strings.Replace(string(export(t, list)), `{"chat_messages"`, `{"broken":`+strings.Repeat("[", 400)+strings.Repeat("]", 400)+`,"uuid":"deep","chat_messages":[]},{"chat_messages"`, 1)
	got := b.take(t, b.alice, []byte(data))
	if got.Total != 6 || got.Imported != 3 || got.Skipped != 2 || got.Failed != 1 || got.Unchanged != 0 || len(got.Errors) != 1 {
		t.Errorf("the import: %+v", got)
	}
	if n := b.count(t, "import_ledger where import_id = $1", got.ID); n != 6 {
		t.Errorf("the ledger has %d rows", n)
	}
	if n := b.count(t, "import_ledger where import_id = $1 and outcome in ('skipped', 'failed') and reason = ''", got.ID); n != 0 {
		t.Errorf("%d rows do not say why", n)
	}
}

// cutting is a store that is cut off after some batches.
type cutting struct {
	chat.ImportFiles
	left atomic.Int32
	cut  func()
}

func (c *cutting) Land(ctx context.Context, run chat.ImportRun, b chat.Batch, t chat.Tools) error {
	if c.left.Add(-1) < 0 {
		c.cut()
		<-ctx.Done()
		return ctx.Err()
	}
	return c.ImportFiles.Land(ctx, run, b, t)
}

// A worker that is stopped gives the import back; one that dies loses it when
// its lease is over. The next one goes on where the last one was.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Conversations = 10 })
	id := b.upload(t, b.alice, export(t, talks(320)), "")
	ctx, cancel := context.WithCancel(t.Context())
	cut := &cutting{ImportFiles: b.chats, cut: cancel}
	cut.left.Store(3)
	again, err := b.runner(func(c *importer.Config) { c.Files = cut }).Run(ctx, args(b.alice, id))
	if err != nil || again == 0 {
		t.Errorf("a worker that is cut off: %s, %v", again, err)
	}
	half := b.get(t, b.alice, id)
	if half.Status != chat.ImportRunning || half.Imported < 50 || half.Imported > 150 || half.Total != 320 || half.Blocked != 0 {
		t.Errorf("in the middle: %+v", half)
	}

	// Somebody else's conversation finds room; what has landed does not ask yet.
	at := monday.AddDate(-1, 0, 0)
	_, err = b.chats.Upsert(t.Context(), b.bob, chat.Upsert{ExternalID: "x", Platform: "custom", CreatedAt: at,
		Messages: []chat.Message{{ExternalID: "1", Sender: chat.Human, Text: "hello", Tokens: 1, CreatedAt: at}}}, chat.Units)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "conversations where status = 'active'"); n != 1 {
		t.Errorf("%d conversations are active in the middle of the import, want 1", n)
	}

	stop := make(chan struct{})
	cut.cut = func() { close(stop) }
	cut.left.Store(1)
	again, err = b.runner(func(c *importer.Config) { c.Files, c.Stop = cut, stop }).Run(t.Context(), args(b.alice, id))
	if err != nil || again == 0 {
		t.Errorf("a worker that is stopped: %s, %v", again, err)
	}
	got := b.run(t, b.alice, id)
	if got.Status != chat.ImportDone || got.Imported != 320 || got.Blocked != 311 {
		t.Errorf("in the end: %+v", got)
	}
	newest := all(320, chat.Blocked)
	for _, c := range talks(320)[311:] {
		newest[c.id] = chat.Active
	}
	if diff := cmp.Diff(newest, b.statuses(t, b.alice)); diff != "" {
		t.Errorf("the newest should be active (-want +got):\n%s", diff)
	}
}

// A worker that died says nothing. Another one takes over when the lease is
// over; the dead one, should it live after all, changes nothing any more.
func TestLeaseIsFenced(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, talks(60)), "")
	run, got, err := b.chats.Claim(t.Context(), args(b.alice, id), "0196b2f5-0000-7000-8000-000000000001", time.Second)
	if err != nil || got != chat.ClaimGot {
		t.Fatalf("Claim = %v, %v", got, err)
	}
	if again, err := b.runner().Run(t.Context(), args(b.alice, id)); err != nil || again == 0 {
		t.Errorf("while another worker has it: %s, %v", again, err)
	}
	second := b.upload(t, b.alice, export(t, talks(2)), "")
	if again, err := b.runner().Run(t.Context(), args(b.alice, second)); err != nil || again == 0 {
		t.Errorf("while another import of the user runs: %s, %v", again, err)
	}
	if n := b.count(t, "river_job where kind = 'chat.import' and state = 'scheduled' and args ->> 'import' = $1", id); n != 2 {
		t.Errorf("%d jobs look after the import, want that of the upload and that of the claim", n)
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
			t.Fatal("nobody could take the import over")
		}
	}
	entry := chat.Batch{Entries: []chat.Entry{{Ordinal: 99, Outcome: chat.EntryFailed, Reason: "late"}}, AddNotes: func(n []byte) ([]byte, error) { return n, nil }}
	for what, err := range map[string]error{
		"Keep": b.chats.Keep(t.Context(), run, time.Second), "Land": b.chats.Land(t.Context(), run, entry, chat.Tools{}),
		"Describe": b.chats.Describe(t.Context(), run, chat.FileContent{}), "Finish": b.chats.Finish(t.Context(), run, "late", nil),
	} {
		if !errors.Is(err, chat.ErrLost) {
			t.Errorf("%s of a worker that lost the import: %v", what, err)
		}
	}
	if got := b.get(t, b.alice, id); got.Status != chat.ImportDone || got.Imported != 60 || got.Failed != 0 {
		t.Errorf("the import: %+v", got)
	}
}

// failing is a store that cannot read chunks.
type failing struct {
	chat.ImportFiles
	err error
}

func (f failing) Chunk(context.Context, chat.ImportRun, int) ([]byte, error) { return nil, f.err }

// What is the store's fault is never put down to the file, whatever the error
// looks like; and a file that kills its workers is given up.
func TestStoreFailures(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, export(t, talks(2)), "")
	for _, cause := range []error{fault.Wrap(fault.Unavailable, io.ErrUnexpectedEOF, "the database is away"), io.EOF, fault.New(fault.NotFound, "gone")} {
		_, err := b.runner(func(c *importer.Config) { c.Files = failing{b.chats, cause} }).Run(t.Context(), args(b.alice, id))
		if !errors.Is(err, cause) {
			t.Errorf("Run = %v, want %v", err, cause)
		}
	}
	if got := b.get(t, b.alice, id); got.Status != chat.ImportRunning {
		t.Errorf("the import is %s", got.Status)
	}
	for range 8 {
		_, _ = b.runner(func(c *importer.Config) { c.Files = failing{b.chats, io.EOF} }).Run(t.Context(), args(b.alice, id))
	}
	got := b.run(t, b.alice, id)
	if got.Status != chat.ImportFailed || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error, "could not be imported in 10 attempts") || !got.Settled() {
		t.Errorf("given up: %+v", got)
	}
}

func TestBadFilesFail(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	good := string(export(t, talks(3)))
	for name, tc := range map[string]struct{ data, platform, says string }{
		"text":       {"Dear diary", "", "the file is neither a zip nor JSON"},
		"cut":        {good[:len(good)-20], "", "ends in the middle"},
		"zip":        {"PK\x03\x04............", "", "damaged or incomplete"},
		"other JSON": {`[{"name":"Alice"}]`, "", "no conversations of ChatGPT or Claude"},
	} {
		got := b.run(t, b.alice, b.upload(t, b.alice, []byte(tc.data), tc.platform))
		if got.Status != chat.ImportFailed || len(got.Errors) != 1 || got.Errors[0].Conversation != "" || !strings.Contains(got.Errors[0].Error, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := b.count(t, "conversations"); n != 0 {
		t.Errorf("%d conversations were imported", n)
	}
}

// Storage that is used up fails what does not fit, and only that.
func TestStorageQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(q *tenant.Quota) { q.Storage = 1000 })
	list := talks(4)
	list[1].messages[0] = strings.Repeat("long ", 300)
	got := b.take(t, b.alice, export(t, list))
	if got.Status != chat.ImportDone || got.Imported != 3 || got.Failed != 1 || len(got.Errors) != 1 || got.Errors[0].Conversation != "c-1" ||
		!strings.Contains(got.Errors[0].Error, "storage quota of 1000 bytes is used up") {
		t.Errorf("the import: %+v", got)
	}
	list[1].messages = []string{strings.Repeat("x", 1000-b.bytes(t))}
	if got := b.take(t, b.alice, export(t, list)); got.Imported != 1 || got.Unchanged != 3 {
		t.Errorf("what just fits: %+v", got)
	}
	service := chat.NewService(chat.Config{Uploads: b.chats})
	if _, err := service.BeginUpload(t.Context(), tenant.Identity{Scope: b.alice}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("an upload without any storage left: %v", err)
	}
}

// bytes is how much storage is used.
func (b *bundle) bytes(t *testing.T) int {
	t.Helper()
	var n int
	if err := b.owner.QueryRow(t.Context(), "select storage from usage where tenant_id = $1", b.alice.Tenant).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// An archive of our own is handled by who knows it.
func TestArchiveIsAskedFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	data := export(t, talks(2))
	for name, tc := range map[string]struct {
		handled bool
		err     error
		want    chat.ImportStatus
		total   int
	}{
		"not its own": {false, nil, chat.ImportDone, 2},
		"its own":     {true, nil, chat.ImportDone, 0},
		"broken":      {false, fault.New(fault.Invalid, "the archive is of another version"), chat.ImportFailed, 0},
	} {
		id := b.upload(t, b.alice, data, "")
		_, err := b.runner(func(c *importer.Config) {
			c.Archive = func(_ context.Context, run chat.ImportRun, file io.ReaderAt) (bool, []string, error) {
				read, err := io.ReadAll(io.NewSectionReader(file, 0, run.Size))
				if err != nil || string(read) != string(data) {
					t.Errorf("%s: it reads %q, %v", name, read, err)
				}
				return tc.handled, nil, tc.err
			}
		}).Run(t.Context(), args(b.alice, id))
		if got := b.get(t, b.alice, id); err != nil || got.Status != tc.want || got.Total != tc.total {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// An imported conversation is found by the same words as one that was sent online.
func TestWordsAreThoseOfOnlineOnes(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	list := talks(1)
	for i := range 7 {
		list[0].messages = append(list[0].messages, strings.Repeat(fmt.Sprintf("The ferries of island %d are running late. ", i), 1+i*i*3), " short <b> answer\n")
	}
	b.take(t, b.alice, export(t, list))
	u := chat.Upsert{ExternalID: "c-0", Platform: "claude", CreatedAt: list[0].at}
	for i, text := range list[0].messages {
		u.Messages = append(u.Messages, chat.Message{ExternalID: fmt.Sprint(i), Text: text, CreatedAt: list[0].at,
			Sender: []chat.Sender{chat.Human, chat.Assistant}[i%2]})
	}
	if _, err := b.chats.Upsert(t.Context(), b.bob, u, chat.Units); err != nil {
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
