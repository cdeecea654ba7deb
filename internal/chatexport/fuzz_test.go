package chatexport_test

import (
	"archive/zip"
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// small are limits under which a fuzzer meets every limit.
var small = chatexport.Limits{Conversation: 64 << 10, Conversations: 100, Messages: 200, Depth: 40, Entries: 50, Inflated: 1 << 20}

func FuzzChatGPT(f *testing.F)    { fuzz(f, "chatgpt/") }
func FuzzClaude(f *testing.F)     { fuzz(f, "claude/") }
func FuzzGemini(f *testing.F)     { fuzz(f, "gemini/") }
func FuzzGrok(f *testing.F)       { fuzz(f, "grok/") }
func FuzzDeepSeek(f *testing.F)   { fuzz(f, "deepseek/") }
func FuzzPerplexity(f *testing.F) { fuzz(f, "perplexity/") }
func FuzzCopilot(f *testing.F)    { fuzz(f, "copilot/") }
func FuzzTypingMind(f *testing.F) { fuzz(f, "typingmind/") }
func FuzzClaudeCode(f *testing.F) { fuzz(f, "claude-code/") }
func FuzzCodex(f *testing.F)      { fuzz(f, "codex/") }
func FuzzLibreChat(f *testing.F)  { fuzz(f, "librechat/") }
func FuzzOpenWebUI(f *testing.F)  { fuzz(f, "openwebui/") }
func FuzzOpenAI(f *testing.F)     { fuzz(f, "openai-messages/") }

// Every platform has fixtures, and a fuzz target above.
func TestEveryPlatformHasFixtures(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("fuzz_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range chatexport.Platforms {
		if !slices.ContainsFunc(corpus, func(name string) bool { return strings.HasPrefix(name, platform+"/") }) {
			t.Errorf("corpus has no fixture of %s", platform)
		}
		if !bytes.Contains(source, []byte(`fuzz(f, "`+platform+`/")`)) {
			t.Errorf("fuzz_test.go has no target for %s", platform)
		}
	}
}

// fuzz feeds the package with what fixtures turn into: whatever it is, it is
// refused as Invalid, or gives Total conversations that can be stored, twice
// the same.
func fuzz(f *testing.F, platform string) {
	f.Helper()
	for _, name := range corpus {
		if strings.HasPrefix(name, platform) {
			f.Add(fixture(f, name, zip.Store))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := chatexport.Open(bytes.NewReader(data), int64(len(data)), chatexport.Options{Limits: small})
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !utf8.ValidString(err.Error()) {
				t.Fatalf("Open = %v, want Invalid", err)
			}
			return
		}
		first, second := all(t, e), all(t, e)
		for i, o := range first {
			if again, err := marshal(second[i].Conversation, orNil(second[i].err)); err != nil {
				t.Fatal(err)
			} else if once, err := marshal(o.Conversation, orNil(o.err)); err != nil || once != again {
				t.Errorf("conversation %d is two:\n%s\n%s", i, once, again)
			}
			if o.err == nil {
				storable(t, o.Conversation)
			}
		}
	})
}

// FuzzManifest reads an export of two files with any manifest. It is refused as Invalid,
// or its one conversation is read.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		`{"conversations":["conversations-000.json"]}`, `{"parts":[{"file":"conversations-000.json"},{"file":"conversations-001.json"}]}`,
		`["https://x.test/a.zip"]`, `{"a":{"b":["../conversations-000.json\u0000"]}}`, "[[[[[[", `{"x":"conversations-000.json: conversations-001.json"}`, "\xef\xbb\xbf{}",
	} {
		f.Add("export_manifest.json", []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, manifest []byte) {
		if strings.HasSuffix(name, "/") {
			return // a folder
		}
		var file bytes.Buffer
		w := zip.NewWriter(&file)
		for _, part := range []struct {
			name string
			data []byte
		}{
			{name, manifest},
			{"conversations-000.json", []byte(`[{"uuid":"c-1","name":"Seats","chat_messages":[{"uuid":"m-1","sender":"human","text":"window"}]}]`)},
		} {
			to, err := w.Create(part.name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := to.Write(part.data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		e, err := chatexport.Open(bytes.NewReader(file.Bytes()), int64(file.Len()), chatexport.Options{Limits: small})
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !utf8.ValidString(err.Error()) {
				t.Fatalf("Open = %v, want Invalid", err)
			}
			return
		}
		for _, o := range all(t, e) {
			if o.err == nil {
				storable(t, o.Conversation)
			}
		}
	})
}

// storable holds what internal/chat and PostgreSQL expect of a conversation.
func storable(t *testing.T, c chatexport.Conversation) {
	t.Helper()
	if c.ExternalID == "" || len(c.Messages) == 0 || utf8.RuneCountInString(c.ExternalID) > 500 ||
		utf8.RuneCountInString(c.Title) > 2000 || c.PlatformName == "" {
		t.Errorf("conversation %+v cannot be stored", c)
	}
	texts := []string{c.ExternalID, c.Title}
	ids := make(map[string]bool)
	for _, m := range c.Messages {
		if m.ExternalID == "" || ids[m.ExternalID] || utf8.RuneCountInString(m.ExternalID) > 500 ||
			strings.TrimSpace(m.Text) == "" || m.Sender == "" || m.CreatedAt.Year() > 9999 {
			t.Errorf("message %+v cannot be stored", m)
		}
		ids[m.ExternalID] = true
		texts = append(texts, m.ExternalID, m.Text)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Errorf("text %q cannot be stored", text)
		}
	}
}
