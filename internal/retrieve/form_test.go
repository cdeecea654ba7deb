package retrieve

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestForms: every match of a form contains one of its words.
func TestForms(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]form{"changes": changes, "ends": ends, "values": valueForm} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			match := rapid.StringMatching(strings.ReplaceAll(f.String(), `\b`, ""))
			rapid.Check(t, func(t *rapid.T) {
				// The long s, a lower-case letter, equals an s in expressions only.
				text := "so " + strings.ReplaceAll(match.Draw(t, "match"), "ſ", "s") + " then"
				if f.MatchString(text) && !f.possible(text) {
					t.Errorf("%q matches without any of the words", text)
				}
			})
		})
	}
}

func BenchmarkParseStatement(b *testing.B) {
	for name, text := range map[string]string{
		"plain": "2025-05-09 The team lead likes to walk along the river with a colleague before the weekly review of the product roadmap and its questions about hiring",
		"value": "2025-05-09 Her therapist's new phone number is 555 0192 and the practice has moved to Lindenstrasse 12, where she is going on Tuesdays",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ParseStatement(text)
			}
		})
	}
}
