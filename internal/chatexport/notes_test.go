package chatexport

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNotesWarnings(t *testing.T) {
	t.Parallel()
	n := Notes{Hidden: 1, Branches: 31, Undated: 2}
	n.Add(Notes{Hidden: 2, Empty: 3, Removed: 4, Replaced: 5, Unknown: map[string]int{"role: judge": 2, "content: hologram": 1}})
	want := []string{
		"Skipped messages that the platform hides: 3.",
		"Skipped messages from abandoned branches: 31.",
		"Skipped messages without text: 3.",
		"Messages without a date, imported with the date of a neighboring message: 2.",
		"Removed null characters: 4.",
		"Replaced invalid characters: 5.",
		"Imported only the text of unknown content types: content: hologram (1), role: judge (2).",
	}
	if diff := cmp.Diff(want, n.Warnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n.IsZero() || !(Notes{}).IsZero() {
		t.Error("only empty notes are zero")
	}
}

func TestNotesLimitUnknownTypes(t *testing.T) {
	t.Parallel()
	var n Notes
	for i := range maxTypes + 10 {
		n.unknown(fmt.Sprint(i), 1)
	}
	if len(n.Unknown) != maxTypes+1 {
		t.Fatalf("len(n.Unknown) = %d, want %d", len(n.Unknown), maxTypes+1)
	}
	if n.Unknown["other"] != 10 {
		t.Errorf(`n.Unknown["other"] = %d, want 10`, n.Unknown["other"])
	}
}
