package chatexport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxTypes and maxType limit the list of unknown types, which a file can
	// make arbitrarily long.
	maxTypes = 32
	maxType  = 64
)

// Notes count what was omitted or changed when reading conversations.
type Notes struct {
	Hidden   int // omitted messages that the platform does not show
	Branches int // omitted messages of abandoned branches
	Empty    int // omitted messages without text
	Invalid  int `json:",omitempty"` // omitted records that are invalid, of a conversation of several records
	Undated  int // messages without a time, which get that of a neighbor
	Removed  int // U+0000 removed from texts
	Replaced int // invalid bytes and escapes replaced by U+FFFD
	// Unknown counts unknown types of content and unknown roles. Their text is
	// imported.
	Unknown map[string]int
}

// Add adds the counts of other.
func (n *Notes) Add(other Notes) {
	n.Hidden += other.Hidden
	n.Branches += other.Branches
	n.Empty += other.Empty
	n.Invalid += other.Invalid
	n.Undated += other.Undated
	n.Removed += other.Removed
	n.Replaced += other.Replaced
	for kind, count := range other.Unknown {
		n.unknown(kind, count)
	}
}

// IsZero reports whether there is nothing to note.
func (n Notes) IsZero() bool { return len(n.Warnings()) == 0 }

func (n *Notes) unknown(kind string, count int) {
	kind = cut(kind, maxType)
	if _, known := n.Unknown[kind]; !known && len(n.Unknown) >= maxTypes {
		kind = "other"
	}
	if n.Unknown == nil {
		n.Unknown = make(map[string]int)
	}
	n.Unknown[kind] += count
}

// Warnings returns the notes as sentences for end users.
func (n Notes) Warnings() []string {
	var out []string
	for _, w := range []struct {
		count  int
		format string
	}{
		{n.Hidden, "Skipped messages that the platform hides: %d."},
		{n.Branches, "Skipped messages from abandoned branches: %d."},
		{n.Empty, "Skipped messages without text: %d."},
		{n.Invalid, "Skipped records that are unreadable or too large: %d."},
		{n.Undated, "Messages without a date, imported with the date of a neighboring message: %d."},
		{n.Removed, "Removed null characters: %d."},
		{n.Replaced, "Replaced invalid characters: %d."},
	} {
		if w.count > 0 {
			out = append(out, fmt.Sprintf(w.format, w.count))
		}
	}
	if len(n.Unknown) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(n.Unknown)) {
			kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, n.Unknown[kind]))
		}
		out = append(out, "Imported only the text of unknown content types: "+strings.Join(kinds, ", ")+".")
	}
	return out
}
