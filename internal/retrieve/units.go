package retrieve

import (
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Neighbors is the number of messages on either side whose words a chat unit
	// is also found by. It raises recall at 10 from 55 to 67 %.
	Neighbors = 2
	// maxNeighbor limits the text taken from each neighbor, in bytes, to the
	// part nearest to the unit, so that long messages are not stored five times.
	maxNeighbor = 600
	// MaxTitled is the number of messages, from the first one, among which Titled chooses.
	MaxTitled = 5
)

// MemoryUnits returns one unit for each piece of a memory, and none for a blank
// text. The store sets Owner and Group.
func MemoryUnits(text string) []Unit {
	var units []Unit
	for _, s := range Split(text) {
		piece := strings.TrimSpace(text[s.Start:s.End])
		if piece == "" {
			continue
		}
		units = append(units, Unit{Kind: Memory, Start: s.Start, End: s.End, Lexical: piece, Dense: MemoryDense(piece)})
	}
	return units
}

// noDate stands for the date of a memory in the text to embed.
const noDate = "(undated) "

// MemoryDense returns the text to embed for a piece of a memory, with a placeholder for a
// leading date. e5-small-v2 rates any text higher that begins like a dated record: among
// dated ones, it did not find 36 of 100 short memories without a date by their
// paraphrases; with the placeholder it finds all but one. Words find the date.
func MemoryDense(piece string) string {
	return noDate + leadingDate.ReplaceAllString(strings.TrimSpace(piece), "")
}

var leadingDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[ :,.–—-]+`)

// ChatMessage is the part of a message that its units are built from.
type ChatMessage struct {
	Sender string
	Text   string
	At     time.Time // zero if unknown
	// Quoted are the parts of Text that repeat what a recall returned, ascending. They
	// are not in any unit: a search finds the original.
	Quoted []Span
}

// own returns the parts of the text that are not Quoted.
func (m ChatMessage) own() []Span {
	var out []Span
	at := 0
	for _, s := range m.Quoted {
		out = append(out, Span{at, max(s.Start, at)})
		at = max(at, s.End)
	}
	return append(out, Span{at, len(m.Text)})
}

// ownText returns the text without what is Quoted.
func (m ChatMessage) ownText() string {
	if len(m.Quoted) == 0 {
		return m.Text
	}
	var parts []string
	for _, s := range m.own() {
		if part := strings.TrimSpace(m.Text[s.Start:s.End]); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n")
}

// pieces returns the pieces of the text that are not Quoted.
func (m ChatMessage) pieces() []Span {
	if len(m.Quoted) == 0 {
		return Split(m.Text)
	}
	var out []Span
	for _, own := range m.own() {
		for _, s := range Split(m.Text[own.Start:own.End]) {
			out = append(out, Span{own.Start + s.Start, own.Start + s.End})
		}
	}
	return out
}

// ChatUnits returns the units of the messages at the given indexes. messages are all
// messages of the conversation, because a unit also contains words of its
// Neighbors: changing a message changes their units too. The first unit of the message
// at Titled also contains the words of the title. Indexes outside the
// conversation are ignored; blank messages have no units. The store sets Owner.
func ChatUnits(group int64, title string, messages []ChatMessage, indexes []int) []Unit {
	var units []Unit
	titled := Titled(messages)
	for _, i := range indexes {
		if i < 0 || i >= len(messages) {
			continue
		}
		m := messages[i]
		before, after := around(messages, i)
		ahead, behind := strings.Join(append(before, ""), "\n"), strings.Join(append([]string{""}, after...), "\n")
		for _, s := range m.pieces() {
			piece := strings.TrimSpace(m.Text[s.Start:s.End])
			if piece == "" {
				continue
			}
			lexical := piece
			if i == titled && strings.TrimSpace(title) != "" {
				lexical, titled = title+"\n"+piece, -1
			}
			units = append(units, Unit{
				Kind: Chat, Group: group, Seq: i, Start: s.Start, End: s.End,
				Lexical: ahead + lexical + behind,
				Parts:   slices.Concat(before, []string{lexical}, after),
				Dense:   ChatDense(m.At, m.Sender, piece),
			})
		}
	}
	return units
}

// Titled returns the index of the message that is also found by the title of the conversation, or -1 if there is none: the
// first message that begins with text and is not a system message.
func Titled(messages []ChatMessage) int {
	return slices.IndexFunc(messages[:min(len(messages), MaxTitled)], func(m ChatMessage) bool {
		return m.Sender != system && strings.TrimSpace(prefix(m.Text)) != ""
	})
}

// maxPrefix is the number of characters with which a message with text begins, blanks included. DescribeUnits reads as many.
const maxPrefix = 1024

func prefix(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxPrefix {
			return text[:i]
		}
	}
	return text
}

// system is the Sender of system messages.
const system = "system"

// Affected returns the indexes of the messages whose units change when the
// messages at the given indexes change, ascending: units contain text of the
// surrounding messages. n is the number of messages.
func Affected(n int, changed []int) []int {
	affected := make([]bool, n)
	for _, i := range changed {
		for j := max(0, i-Neighbors); j <= min(n-1, i+Neighbors); j++ {
			affected[j] = true
		}
	}
	var out []int
	for i, yes := range affected {
		if yes {
			out = append(out, i)
		}
	}
	return out
}

// ChatDense returns the text to embed for a piece of a message. It includes the date
// and the sender, so that questions about either match.
func ChatDense(at time.Time, sender, piece string) string {
	dense := sender + ": " + strings.TrimSpace(piece)
	if at.IsZero() {
		return dense
	}
	return at.UTC().Format(time.DateOnly) + " " + dense
}

// around returns the texts of the neighbors before and after message i.
func around(messages []ChatMessage, i int) (before, after []string) {
	for _, m := range messages[max(0, i-Neighbors):i] {
		before = append(before, tail(m.ownText()))
	}
	for _, m := range messages[i+1 : min(len(messages), i+1+Neighbors)] {
		after = append(after, head(m.ownText()))
	}
	return before, after
}

func head(text string) string {
	if len(text) <= maxNeighbor {
		return text
	}
	end := maxNeighbor
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func tail(text string) string {
	if len(text) <= maxNeighbor {
		return text
	}
	start := len(text) - maxNeighbor
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

// GroupOf returns the Group for a platform: a stable, non-zero hash of its name.
// Two names may collide; callers compare the names.
func GroupOf(platform string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(platform)) // never fails
	return max(int64(h.Sum64()&math.MaxInt64), 1)
}
