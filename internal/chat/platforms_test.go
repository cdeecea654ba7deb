package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
)

func TestPlatformNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"":           {},
		"all":        {},
		"All":        {},
		"TypingMind": {"typingmind"},
		"OpenAI":     {"chatgpt", "openai"},
		"ChatGPT":    {"chatgpt", "openai"},
		"anthropic":  {"claude", "anthropic"},
	} {
		if diff := cmp.Diff(want, PlatformNames(name)); diff != "" {
			t.Errorf("PlatformNames(%q) (-want +got):\n%s", name, diff)
		}
	}
}

// Clients send their own name with every recall.
func TestPlatformOfRecallIsAHint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hint, stored, searched string
		group                  int64
	}{
		{"typingmind", "custom", "all", 0},
		{"", "custom", "all", 0},
		{"all", "custom", "all", 0},
		{"CUSTOM", "Custom", "custom", retrieve.GroupOf("custom")},
		{"openai", "chatgpt", "chatgpt", retrieve.GroupOf("chatgpt")},
		{"chatgpt", "OpenAI", "chatgpt", retrieve.GroupOf("chatgpt")},
	} {
		t.Run(test.hint+" "+test.stored, func(t *testing.T) {
			t.Parallel()
			f := trains()
			f.conversations[0].Platform = test.stored
			in := ask("which seat do I like on trains?")
			in.Platform = test.hint
			got := recallOne(t, newService(f), in)
			if got.Platform != test.searched {
				t.Errorf("Platform = %q, want %q", got.Platform, test.searched)
			}
			if f.asked.Group != test.group {
				t.Errorf("Group = %d, want %d", f.asked.Group, test.group)
			}
			if len(got.Sources) != 3 {
				t.Errorf("len(Sources) = %d, want 3", len(got.Sources))
			}
		})
	}
}
