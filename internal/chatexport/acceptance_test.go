package chatexport_test

import (
	"archive/zip"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

// acceptance is what each fixture contains, counted by hand: its conversations, and
// those of them that are not imported because they are empty, duplicates or invalid.
var acceptance = map[string]struct{ in, omitted int }{
	"chatgpt/simple.json": {2, 0}, "chatgpt/branches.json": {1, 0}, "chatgpt/no-current-node.json": {5, 0},
	"chatgpt/hidden.json": {1, 0}, "chatgpt/nulls.json": {3, 0}, "chatgpt/content-types.json": {1, 0},
	"chatgpt/oldest.json": {2, 0}, "chatgpt/one-bad-apple.json": {16, 11}, "chatgpt/characters.json": {1, 0},
	"chatgpt/lines.jsonl": {2, 0}, "chatgpt/unlinked.json": {3, 0}, "chatgpt/sharded": {3, 0}, "chatgpt/portal": {2, 0},
	"claude/simple.json": {3, 1}, "claude/content-blocks.json": {1, 0}, "claude/attachments.json": {1, 0},
	"claude/branches.json": {3, 0}, "claude/wrapped.json": {1, 0}, "claude/text-only.json": {1, 0}, "claude/bundle": {3, 1},
	"gemini/MyActivity.json": {5, 1}, "gemini/MyActivity.html": {4, 1}, "grok/backend.json": {3, 1}, "grok/flat.json": {1, 0},
	"deepseek/tree.json": {4, 1}, "perplexity/conversations.json": {3, 1}, "copilot/history.csv": {3, 0},
	"copilot/chat-activity.csv": {1, 0}, "typingmind/export.json": {2, 1}, "claude-code/session.jsonl": {1, 0},
	"claude-code/broken-lines.jsonl": {1, 0}, "claude-code/projects": {4, 1}, "codex/rollout.jsonl": {1, 0}, "codex/old.jsonl": {1, 0}, "codex/untimed.jsonl": {1, 0},
	"librechat/branches.json": {1, 0}, "librechat/recursive.json": {1, 0}, "openwebui/chats.json": {3, 1}, "openwebui/bare.json": {1, 0},
	"openai-messages/finetuning.jsonl": {5, 1}, "openai-messages/messages.json": {1, 0}, "openai-messages/request.json": {1, 0},
}

// acceptanceFile contains the table of the test between two comments.
const (
	acceptanceFile  = "../../docs/clients.md"
	acceptanceBegin = "<!-- imports -->\n"
	acceptanceEnd   = "<!-- end -->"
)

// Every conversation of a fixture is imported, or reported with a reason. The
// documentation contains the table.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| Fixture | Platform | In file | Imported | Omitted | Difference |\n|---|---|---|---|---|---|\n")
	for _, name := range corpus {
		e := open(t, fixture(t, name, zip.Deflate), chatexport.Options{})
		want, listed := acceptance[name]
		if !listed {
			t.Errorf("%s is not in the table", name)
		}
		imported, omitted := 0, 0
		for _, o := range all(t, e) {
			switch {
			case o.err == nil:
				imported++
			case o.err.Reason != "":
				omitted++
			}
		}
		difference := want.in - imported - omitted
		fmt.Fprintf(&table, "| `%s` | %s | %d | %d | %d | %d |\n", name, chatexport.PlatformName(e.Platform), want.in, imported, omitted, difference)
		if difference != 0 || omitted != want.omitted {
			t.Errorf("%s: %d imported and %d omitted of %d, want %d omitted", name, imported, omitted, want.in, want.omitted)
		}
	}
	compareTable(t, table.String())
}

// compareTable compares the table with that of the documentation, or replaces it.
func compareTable(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(acceptanceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), acceptanceBegin)
	old, after, ends := strings.Cut(rest, acceptanceEnd)
	if !begins || !ends {
		t.Fatalf("%s must contain %s and %s", acceptanceFile, acceptanceBegin, acceptanceEnd)
	}
	if *update {
		text := before + acceptanceBegin + table + acceptanceEnd + after
		if err := os.WriteFile(acceptanceFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(old, table); diff != "" {
		t.Errorf("the table in %s is outdated (run the test with -update):\n%s", acceptanceFile, diff)
	}
}
