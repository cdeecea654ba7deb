package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
)

// readNotes reads what addTo wrote.
func readNotes(text []byte) (chatexport.Notes, error) {
	var n chatexport.Notes
	if err := json.Unmarshal(text, &n); err != nil {
		return n, fmt.Errorf("read notes of the import: %w", err)
	}
	return n, nil
}

// addTo adds a batch's to what the import has counted before.
func addTo(n chatexport.Notes) func(before []byte) ([]byte, error) {
	return func(before []byte) ([]byte, error) {
		sum, err := readNotes(before)
		if err != nil {
			return nil, err
		}
		sum.Add(n)
		return json.Marshal(sum)
	}
}

// tally is what was counted in the whole file, by all who read it.
type tally struct {
	mu sync.Mutex
	n  chatexport.Notes
}

func (t *tally) add(n chatexport.Notes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n.Add(n)
}

// sentences tells what was left out or changed.
func (t *tally) sentences() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, note := range []struct {
		count int
		text  string
	}{
		{t.n.Hidden, "messages that the platform does not show, left out: %d"},
		{t.n.Branches, "messages of abandoned branches, left out: %d"},
		{t.n.Empty, "messages without any text, left out: %d"},
		{t.n.Undated, "messages without a time, given their neighbour's: %d"},
		{t.n.Removed, "characters U+0000, taken out of texts: %d"},
		{t.n.Replaced, "bytes that are no characters, replaced by U+FFFD: %d"},
	} {
		if note.count > 0 {
			out = append(out, fmt.Sprintf(note.text, note.count))
		}
	}
	if len(t.n.Unknown) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(t.n.Unknown)) {
			kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, t.n.Unknown[kind]))
		}
		out = append(out, "types that are not known, kept with whatever text they hold: "+strings.Join(kinds, ", "))
	}
	return out
}
