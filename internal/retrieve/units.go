package retrieve

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// neighbours is how many messages on either side a chat's unit is found
	// by beside its own words (FACTS: recall at 10 rises from 55 to 67 %).
	neighbours = 2
	// maxNeighbour bounds what a unit takes of each of them, in bytes: the
	// part next to it, so that long messages are not stored five times over.
	maxNeighbour = 600
)

// MemoryUnits returns the units a memory is found by, one for each piece of it;
// Owner and Group are left to the store. None for a blank text.
func MemoryUnits(text string) []Unit {
	var units []Unit
	for _, s := range Split(text) {
		dense := MemoryDense(text[s.Start:s.End])
		if dense == "" {
			continue
		}
		units = append(units, Unit{Kind: Memory, Start: s.Start, End: s.End, Lexical: dense, Dense: dense})
	}
	return units
}

// MemoryDense returns the text to embed for a piece of a memory.
func MemoryDense(piece string) string { return strings.TrimSpace(piece) }

// ChatMessage is a message as its units are made of it.
type ChatMessage struct {
	Sender string
	Text   string
	At     time.Time // zero when not known
}

// ChatUnits returns the units of the messages at the indexes, in a conversation
// whose messages are all given; Owner is left to the store. A change of one
// message changes the units of its two neighbours on either side too. Indexes
// outside the conversation are ignored; blank messages have no units.
func ChatUnits(group int64, messages []ChatMessage, indexes []int) []Unit {
	var units []Unit
	for _, i := range indexes {
		if i < 0 || i >= len(messages) {
			continue
		}
		m := messages[i]
		before, after := around(messages, i)
		ahead, behind := strings.Join(append(before, ""), "\n"), strings.Join(append([]string{""}, after...), "\n")
		for _, s := range Split(m.Text) {
			piece := strings.TrimSpace(m.Text[s.Start:s.End])
			if piece == "" {
				continue
			}
			units = append(units, Unit{
				Kind: Chat, Group: group, Seq: i, Start: s.Start, End: s.End,
				Lexical: ahead + piece + behind,
				Parts:   slices.Concat(before, []string{piece}, after),
				Dense:   ChatDense(m.At, m.Sender, piece),
			})
		}
	}
	return units
}

// ChatDense returns the text to embed for a piece of a message: with its date
// and sender, so that questions about either find it.
func ChatDense(at time.Time, sender, piece string) string {
	dense := sender + ": " + strings.TrimSpace(piece)
	if at.IsZero() {
		return dense
	}
	return at.UTC().Format(time.DateOnly) + " " + dense
}

// around returns the texts of the neighbours before and after message i.
func around(messages []ChatMessage, i int) (before, after []string) {
	for _, m := range messages[max(0, i-neighbours):i] {
		before = append(before, tail(m.Text))
	}
	for _, m := range messages[i+1 : min(len(messages), i+1+neighbours)] {
		after = append(after, head(m.Text))
	}
	return before, after
}

func head(text string) string {
	if len(text) <= maxNeighbour {
		return text
	}
	end := maxNeighbour
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func tail(text string) string {
	if len(text) <= maxNeighbour {
		return text
	}
	start := len(text) - maxNeighbour
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

// GroupOf returns the Group that stands for a platform: a hash of its name,
// stable and never 0. Two names may share one; the caller compares names.
func GroupOf(platform string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(platform)) // never fails
	return max(int64(h.Sum64()&math.MaxInt64), 1)
}
