package chatexport_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

var update = flag.Bool("update", false, "write the results of the fixtures to testdata/golden")

// corpus lists the fixtures, which testdata/README.md describes.
var corpus = []string{
	"chatgpt/simple.json", "chatgpt/branches.json", "chatgpt/no-current-node.json", "chatgpt/hidden.json",
	"chatgpt/nulls.json", "chatgpt/content-types.json", "chatgpt/oldest.json", "chatgpt/one-bad-apple.json",
	"chatgpt/characters.json", "chatgpt/lines.jsonl", "chatgpt/unlinked.json", "chatgpt/sharded", "chatgpt/portal",
	"claude/simple.json", "claude/content-blocks.json", "claude/attachments.json", "claude/branches.json",
	"claude/wrapped.json", "claude/text-only.json", "claude/bundle",
	"gemini/MyActivity.json", "gemini/MyActivity.html", "grok/backend.json", "grok/flat.json", "deepseek/tree.json",
	"perplexity/conversations.json", "copilot/history.csv", "copilot/chat-activity.csv", "typingmind/export.json",
	"claude-code/session.jsonl", "claude-code/broken-lines.jsonl", "claude-code/projects",
	"codex/rollout.jsonl", "codex/old.jsonl", "codex/untimed.jsonl",
	"librechat/branches.json", "librechat/recursive.json", "openwebui/chats.json", "openwebui/bare.json",
	"openai-messages/finetuning.jsonl", "openai-messages/messages.json", "openai-messages/request.json",
}

// golden is the representation of an export in golden files.
type golden struct {
	Platform      string
	Total         int
	Warnings      []string `json:",omitempty"`
	Conversations []goldenConversation
}

type goldenConversation struct {
	File      string
	ID        string           `json:",omitempty"`
	Title     string           `json:",omitempty"`
	Error     string           `json:",omitempty"`
	Skipped   bool             `json:",omitempty"`
	CreatedAt time.Time        `json:",omitzero"`
	UpdatedAt time.Time        `json:",omitzero"`
	Notes     chatexport.Notes `json:",omitzero"`
	Messages  []goldenMessage  `json:",omitempty"`
}

type goldenMessage struct {
	ID, Sender string
	At         time.Time `json:",omitzero"`
	Text       string
}

func describe(t *testing.T, e *chatexport.Export) golden {
	t.Helper()
	g := golden{Platform: e.Platform, Total: e.Total, Warnings: e.Warnings}
	for _, o := range all(t, e) {
		c := goldenConversation{File: o.File, ID: o.ExternalID, Title: o.Title, CreatedAt: o.CreatedAt,
			UpdatedAt: o.UpdatedAt, Notes: o.Notes}
		if o.err != nil {
			c.Error, c.Skipped = o.err.Error(), o.err.Skipped
		}
		for _, m := range o.Messages {
			c.Messages = append(c.Messages, goldenMessage{m.ExternalID, string(m.Sender), m.CreatedAt, m.Text})
		}
		g.Conversations = append(g.Conversations, c)
	}
	return g
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, name := range corpus {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, fixture(t, name, zip.Deflate), chatexport.Options{})
			var out bytes.Buffer
			enc := json.NewEncoder(&out)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(describe(t, e)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "golden", filepath.FromSlash(name)+".golden")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v: run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("%s differs from the golden file (-want +got):\n%s", name, diff)
			}
		})
	}
}

// The result does not depend on how a file is packed.
func TestPackingDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, name := range corpus {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := fixture(t, name, zip.Deflate)
			want := describe(t, open(t, plain, chatexport.Options{}))
			packings := map[string][]byte{
				"stored":                        fixture(t, name, zip.Store),
				"nested in a zip":               archive(t, deflated("renamed.bin", plain)),
				"nested in an uncompressed zip": archive(t, stored("renamed.bin", plain)),
				"nested in two zips":            archive(t, deflated("a.zip", archive(t, deflated("b", plain)))),
				"after white space":             append([]byte(" \n"), plain...),
				"gzip":                          gzipped(t, plain),
				"gzip in gzip":                  gzipped(t, gzipped(t, plain)),
				"tar":                           tarred(t, entry{name: "a/renamed", data: plain}),
				"tar.gz":                        gzipped(t, tarred(t, entry{name: "1.png", data: []byte("\x89PNG")}, entry{name: "x", data: plain})),
				"gzip in a zip":                 archive(t, stored("x.gz", gzipped(t, plain))),
				"between images":                archive(t, stored("1.png", []byte("\x89PNG")), deflated("x", plain), stored("2.dat", nil)),
			}
			if bytes.HasPrefix(plain, []byte("PK")) || bytes.HasPrefix(plain, []byte("\uFEFF")) {
				delete(packings, "after white space")
			}
			if bytes.HasPrefix(plain, []byte("PK")) {
				delete(packings, "gzip in a zip") // only files are decompressed in archives
			}
			for how, data := range packings {
				got := describe(t, open(t, data, chatexport.Options{}))
				if got.Total != want.Total {
					t.Fatalf("%s: Total = %v, want %v", how, got.Total, want.Total)
				}
				if got.Platform != want.Platform {
					t.Fatalf("%s: Platform = %v, want %v", how, got.Platform, want.Platform)
				}
				for i := range got.Conversations {
					// Only the file name may differ.
					got.Conversations[i].File, got.Conversations[i].Error = want.Conversations[i].File, want.Conversations[i].Error
				}
				if diff := cmp.Diff(want.Conversations, got.Conversations); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

// Messages of exports repeat nothing that a recall returned, so that all of their text is searchable.
func TestCorpusHasNoQuotations(t *testing.T) {
	t.Parallel()
	messages := 0
	for _, name := range corpus {
		for _, o := range all(t, open(t, fixture(t, name, zip.Deflate), chatexport.Options{})) {
			for _, m := range o.Messages {
				messages++
				if q := retrieve.Quotations(m.Text); len(q) > 0 {
					t.Errorf("%s: %q looks like recalled content: %+v", name, m.Text, q)
				}
			}
		}
	}
	if messages < 100 {
		t.Errorf("the corpus has %d messages", messages)
	}
}
