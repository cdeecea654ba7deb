package dashboard

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// partBytes is how much of one message is shown in one piece.
	partBytes = 16 << 10
	// screenBytes is how much of a conversation one page shows, as HTML.
	screenBytes = 48 << 10
)

// conversationView is a part of a conversation.
type conversationView struct {
	chat.Conversation
	Parts       []part
	Newer       string // the part before; "" when there is none
	Older       string // the part after
	Screen, Of  int    // which part this is, from 1
	Here, Found string
}

// part is a message, or a piece of a long one.
type part struct {
	chat.Message
	Text      string
	Start     int  // where in the message it begins, bytes
	Continued bool // it is not the beginning of the message
	Blocks    []block
}

// block is a run of text or of code, some of which may be marked.
type block struct {
	Code                  bool
	Before, Marked, After string
	Anchor                bool // what is marked begins here
}

func (d *Dashboard) showChat(c *fiber.Ctx, who *tenant.Session) error {
	id := c.Params("id")
	conversation, messages, err := d.Chats.Get(c.UserContext(), who.Identity, id)
	if err != nil {
		return err
	}
	message, start, end := c.QueryInt("m", -1), c.QueryInt("start"), c.QueryInt("end")
	screens := screensOf(messages)
	screen := min(max(c.QueryInt("part", 1), 1), len(screens))
	if message >= 0 {
		screen = screenWith(screens, message, start)
	}
	here := "/chats/" + url.PathEscape(id)
	view := conversationView{Conversation: conversation, Screen: screen, Of: len(screens), Here: here}
	if screen > 1 {
		view.Newer = here + "?part=" + strconv.Itoa(screen-1)
	}
	if screen < len(screens) {
		view.Older = here + "?part=" + strconv.Itoa(screen+1)
	}
	if len(screens) > 0 {
		view.Parts = screens[screen-1]
	}
	for i := range view.Parts {
		p := &view.Parts[i]
		from, to := -1, -1
		if p.Index == message {
			from, to = start-p.Start, end-p.Start
		}
		p.Blocks = blocksOf(p.Text, from, to)
	}
	title := conversation.Title
	if title == "" {
		title = "Conversation"
	}
	return d.render(c, fiber.StatusOK, "conversation", page{Title: title, Section: "chats", Who: who, Data: view})
}

// screensOf cuts a conversation into pages of bounded size.
func screensOf(messages []chat.Message) [][]part {
	var screens [][]part
	room := 0
	for _, m := range messages {
		for start := 0; ; {
			text := m.Text[start:]
			if len(text) > partBytes {
				text = text[:cut(text, partBytes)]
			}
			size := len(template.HTMLEscapeString(text)) + 300
			if size > room {
				screens, room = append(screens, nil), screenBytes
			}
			room -= size
			last := &screens[len(screens)-1]
			*last = append(*last, part{Message: m, Text: text, Start: start, Continued: start > 0})
			if start += len(text); start >= len(m.Text) {
				break
			}
		}
	}
	return screens
}

// cut is a place near n where a text may be cut: after a line, a word, or at
// least between characters.
func cut(text string, n int) int {
	for _, between := range []string{"\n", " "} {
		if i := strings.LastIndex(text[:n], between); i > n/2 {
			return i + 1
		}
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// screenWith returns the page, from 1, that shows the place in the message.
func screenWith(screens [][]part, message, start int) int {
	for i, parts := range screens {
		for _, p := range parts {
			if p.Index == message && start < p.Start+max(len(p.Text), 1) {
				return i + 1
			}
		}
	}
	return min(1, len(screens))
}

// blocksOf tells code between lines of ``` from text, and marks from..to, in
// bytes; a place that does not fit the text is not marked.
func blocksOf(text string, from, to int) []block {
	if from < 0 || to > len(text) || from >= to || !boundary(text, from) || !boundary(text, to) {
		from, to = -1, -1
	}
	var out []block
	begin, at, code := 0, 0, false
	flush := func(end int) {
		if strings.TrimSpace(text[begin:end]) != "" {
			out = append(out, blockOf(text, begin, end, from, to, code))
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			flush(at)
			begin, code = at+len(line), !code
		}
		at += len(line)
	}
	flush(len(text))
	return out
}

// blockOf is text[begin:end] with what of it lies in from..to marked.
func blockOf(text string, begin, end, from, to int, code bool) block {
	first, last := min(max(from, begin), end), max(min(to, end), begin)
	if from < 0 || first >= last {
		return block{Code: code, Before: text[begin:end]}
	}
	return block{Code: code, Before: text[begin:first], Marked: text[first:last], After: text[last:end], Anchor: first == from}
}

func boundary(text string, i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }
