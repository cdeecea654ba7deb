package memory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepeats(t *testing.T) {
	t.Parallel()
	const seat = "Prefers the window seat"
	for text, want := range map[string][]Repeat{
		seat:                                 nil,
		"":                                   nil,
		"- ":                                 nil,
		"-" + seat:                           nil,
		"[1] memory: " + seat:                {{seat, ""}},
		"Memories\n[1] memory: " + seat:      {{"[1] memory: " + seat, ""}, {seat, ""}},
		"- " + seat + "\n":                   {{seat, ""}},
		"3. “" + seat + "”":                  {{"“" + seat + "”", ""}, {seat, ""}},
		"> " + seat:                          {{seat, ""}},
		`"` + seat:                           nil,
		"2025-05-09 " + seat:                 {{seat, "2025-05-09"}},
		"2025-05-09: " + seat:                {{seat, "2025-05-09"}},
		seat + " (2025-05-09)":               {{seat, "2025-05-09"}},
		"• 2025-05-09 — „" + seat + "“":      {{"2025-05-09 — „" + seat + "“", ""}, {"„" + seat + "“", "2025-05-09"}, {seat, "2025-05-09"}},
		"2026-01-01 2025-05-09 " + seat:      {{"2025-05-09 " + seat, "2026-01-01"}},
		"2025-05-09":                         nil,
		"[1] memory: one\n[2] memory: two":   {{"one\n[2] memory: two", ""}},
		"[1] human: " + seat:                 {{"human: " + seat, ""}},
		"Quote: the seat is “" + seat + "”":  nil,
		"2025-05-09-17 is the serial number": nil,
	} {
		if diff := cmp.Diff(want, repeats(text)); diff != "" {
			t.Errorf("repeats(%q) (-want +got):\n%s", text, diff)
		}
	}
	if got := repeats(strings.Repeat("- ", 1000) + seat); len(got) != maxDecorations {
		t.Errorf("%d texts for 1,000 bullets, want %d", len(got), maxDecorations)
	}
}
