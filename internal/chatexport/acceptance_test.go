package chatexport_test

import (
	"archive/zip"
	"testing"

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

// Every conversation of a fixture is imported, or reported with a reason.
func TestAcceptance(t *testing.T) {
	t.Parallel()
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
		if imported+omitted != want.in || omitted != want.omitted {
			t.Errorf("%s: %d imported and %d omitted of %d, want %d omitted", name, imported, omitted, want.in, want.omitted)
		}
	}
}
