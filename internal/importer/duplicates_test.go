package importer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
)

// line is a dialogue without an id and a time in a file for fine-tuning.
const line = `{"messages":[{"role":"user","content":"Where is the lantern?"},{"role":"assistant","content":"On the pier."}]}` + "\n"

// session returns a session of Claude Code with n questions.
func session(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","parentUuid":"u%d","sessionId":"s","timestamp":"2025-12-03T18:%02d:00Z",`+
			`"message":{"role":"user","content":"Where is lantern %d?"}}`+"\n", i, i-1, i, i)
	}
	return b.String()
}

// zipped returns a zip of files, each given by its name and content.
func zipped(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		file, err := w.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fixture returns an export of internal/chatexport.
func fixture(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "chatexport", "testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// undated returns a page of activities of Gemini with the same question, without readable
// times.
func undated(answers ...string) []byte {
	var b strings.Builder
	b.WriteString("<html><body>")
	for i, text := range answers {
		fmt.Fprintf(&b, `<div class="outer-cell"><div class="header-cell"><p>Gemini</p></div><div class="content-cell">Prompted continue<br>`+
			`%d févr. 2024, 10:00:00 CET<br><p>%s</p></div></div>`, i+1, text)
	}
	b.WriteString("</body></html>")
	return []byte(b.String())
}

// A conversation that a file contains several times is stored once, in its newest
// state, even if a state of it is stored already.
func TestDuplicatesInAFile(t *testing.T) {
	t.Parallel()
	type file = [2]string
	page, list := fixture(t, "gemini/MyActivity.html"), fixture(t, "gemini/MyActivity.json")
	for name, tc := range map[string]struct {
		reason   string
		stored   string // imported before; may be ""
		data     []byte
		total    int
		imported int
		messages int // stored afterwards
	}{
		"lines":   {"identical lines", "", []byte(line + line), 2, 1, 2},
		"many":    {"more identical lines than a batch has", "", []byte(strings.Repeat(line, 60)), 60, 1, 2},
		"copy":    {"a session and its copy", "", zipped(t, file{"a.jsonl", session(2)}, file{"b.jsonl", session(2)}), 2, 1, 2},
		"newer":   {"a copy with more messages", "", zipped(t, file{"a.jsonl", session(2)}, file{"b.jsonl", session(4)}), 2, 1, 4},
		"older":   {"a copy with fewer messages", "", zipped(t, file{"a.jsonl", session(4)}, file{"b.jsonl", session(2)}), 2, 1, 4},
		"stored":  {"two newer states", session(1), zipped(t, file{"a.jsonl", session(2)}, file{"b.jsonl", session(4)}), 2, 0, 4},
		"forms":   {"both forms of Gemini", "", zipped(t, file{"Takeout/MyActivity.html", page}, file{"Takeout/MyActivity.json", list}), 9, 6, 13},
		"undated": {"activities without times", "", undated("Part 3.", "Part 2.", "Part 3.", "Part 1."), 4, 3, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			if tc.stored != "" {
				b.importFile(t, b.alice, []byte(tc.stored))
			}
			got := b.importFile(t, b.alice, tc.data)
			if got.Status != importer.Done || got.Total != tc.total || got.Imported != tc.imported ||
				got.Imported+got.Updated+got.Skipped != tc.total || got.Blocked != 0 {
				t.Errorf("%s: %+v, want %d conversations of which %d are imported", tc.reason, got, tc.total, tc.imported)
			}
			if n := b.count(t, "messages"); n != tc.messages {
				t.Errorf("%s: %d messages are stored, want %d", tc.reason, n, tc.messages)
			}
			before := b.contents(t, b.alice)
			again := b.importFile(t, b.alice, tc.data)
			if again.Status != importer.Done || again.Skipped != tc.total {
				t.Errorf("%s: imported again: %+v, want %d skipped", tc.reason, again, tc.total)
			}
			if diff := cmp.Diff(before, b.contents(t, b.alice)); diff != "" {
				t.Errorf("%s: imported again (-before +after):\n%s", tc.reason, diff)
			}
		})
	}
}

// cancelingStore cancels the import after a batch is stored.
type cancelingStore struct {
	importer.Files
	cancel context.CancelFunc
}

func (s cancelingStore) StoreBatch(ctx context.Context, run importer.Run, b importer.Batch) (importer.Batch, error) {
	uncounted, err := s.Files.StoreBatch(ctx, run, b)
	if err == nil && len(uncounted.Entries) == 0 {
		s.cancel()
	}
	return uncounted, err
}

// An import that is interrupted between two copies of a conversation is resumed.
func TestDuplicatesAreResumed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, []byte(strings.Repeat(line, 60)), "")
	ctx, cancel := context.WithCancel(t.Context())
	again, err := b.runner(func(c *importer.Config) { c.Files = cancelingStore{b.imports, cancel} }).Run(ctx, args(b.alice, id))
	if err != nil || again == 0 {
		t.Errorf("Run of a canceled worker = %s, %v", again, err)
	}
	if n := b.count(t, "import_ledger"); n == 0 || n == 60 {
		t.Errorf("the ledger has %d rows, want some of 60", n)
	}
	got := b.run(t, b.alice, id)
	if got.Status != importer.Done || got.Imported != 1 || got.Unchanged != 59 {
		t.Errorf("%+v, want 1 of 60 imported and the others unchanged", got)
	}
}

// repeatingStore repeats the first entry of each batch: the second insert of the conversation always
// finds it inserted, as after an insert by another transaction.
type repeatingStore struct{ importer.Files }

func (s repeatingStore) StoreBatch(ctx context.Context, run importer.Run, b importer.Batch) (importer.Batch, error) {
	repeated := b.Entries[0]
	repeated.Ordinal = 1000
	b.Entries = append(b.Entries, repeated)
	return s.Files.StoreBatch(ctx, run, b)
}

// A batch whose inserts fail in every attempt counts as a failure of the import, which ends.
func TestRepeatedInsertConflictsCount(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id := b.upload(t, b.alice, []byte(line), "")
	r := b.runner(func(c *importer.Config) { c.Files = repeatingStore{b.imports} })
	for range 10 {
		if _, err := r.Run(t.Context(), args(b.alice, id)); err == nil || fault.Is(err, fault.Unavailable) {
			t.Errorf("Run = %v, want an error that is not Unavailable", err)
		}
	}
	got := b.run(t, b.alice, id)
	if got.Status != importer.Failed || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error, "could not be imported after 10 attempts") {
		t.Errorf("after 10 attempts: %+v", got)
	}
}
