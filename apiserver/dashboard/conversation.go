package dashboard

import (
	"context"
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
	// partBytes is the maximum size of a part of a message.
	partBytes = 16 << 10
	// screenBytes is the approximate size of a page, as HTML.
	screenBytes = 48 << 10
)

// conversationView is a page of a conversation.
type conversationView struct {
	chat.Conversation
	Title  string
	Parts  []part
	Newer  string // path of the previous page; "" for none
	Older  string // path of the next page
	Here   string
	Source bool   // messages are shown as they were written
	Other  string // path of this page as source, or rendered
}

// part is a message, or a part of a long message.
type part struct {
	chat.Message
	Text      string
	Start     int    // byte offset in the message
	Continued bool   // not the first part of the message
	Fence     string // openFence if the part begins in code
	HTML      template.HTML
	Blocks    []block // instead of HTML: the text as it was written
}

// block is text or code, part of which may be highlighted.
type block struct {
	Code                  bool
	Before, Marked, After string
	Anchor                bool // the highlight starts in this block
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
	titles, err := d.titles(c.UserContext(), who, []chat.Conversation{conversation})
	if err != nil {
		return err
	}
	here, title := "/chats/"+url.PathEscape(id), titles[conversation.ID]
	source := c.Query("source") != ""
	view := conversationView{Conversation: conversation, Title: title, Source: source, Here: here}
	if screen > 1 {
		view.Newer = view.path(screen-1, source)
	}
	if screen < len(screens) {
		view.Older = view.path(screen+1, source)
	}
	if len(screens) > 0 {
		view.Parts = screens[screen-1]
	}
	setFences(view.Parts)
	view.Other = view.path(screen, !source)
	for i := range view.Parts {
		from, to := -1, -1
		if p := view.Parts[i]; p.Index == message {
			from, to = start-p.Start, end-p.Start
		}
		if err := view.Parts[i].render(c.UserContext(), d.languages.of(c), from, to, source); err != nil {
			return err
		}
	}
	return d.render(c, fiber.StatusOK, "conversation", page{Title: msg("Untitled conversation"), Name: title, Section: "chats", Who: who, Data: view})
}

// path returns the path of a page.
func (v conversationView) path(screen int, source bool) string {
	q := url.Values{}
	if screen > 1 {
		q.Set("part", strconv.Itoa(screen))
	}
	if source {
		q.Set("source", "yes")
	}
	if len(q) == 0 {
		return v.Here
	}
	return v.Here + "?" + q.Encode()
}

// render sets the HTML of what was written in Markdown, or else the blocks, with the byte
// range from..to highlighted. Markdown that exceeds the budget is shown as it was written.
func (p *part) render(ctx context.Context, l *locale, from, to int, source bool) error {
	if !source && p.Sender != chat.Tool && p.Sender != chat.System {
		begin, end := from, to
		if from >= 0 {
			begin, end = from+len(p.Fence), to+len(p.Fence)
		}
		out, ok, err := renderMarkdown(ctx, l, p.Fence+p.Text, begin, end)
		if err != nil || ok {
			p.HTML = out
			return err
		}
	}
	p.Blocks = blocksOf(p.Text, from, to)
	return nil
}

// setFences sets the fences of the parts of a page. It scans each message once.
func setFences(parts []part) {
	var f fences
	for i := range parts {
		p := &parts[i]
		if i == 0 || !p.Continued {
			f = fences{text: p.Message.Text}
		}
		p.Fence = f.openAt(p.Start)
	}
}

// fences finds the code of a text in which parts of the text begin.
type fences struct {
	text    string
	scanned int    // offset of the first line that is not scanned
	open    string // openFence if it is in code
}

// openFence begins code. A part does not repeat the line of its message, whose length has no limit.
const openFence = "```\n"

// openAt returns openFence if text[:end] ends in code. Each call continues the scan of the
// previous one, which had at most the same end.
func (f *fences) openAt(end int) string {
	open := f.open
	for line := range strings.Lines(f.text[f.scanned:end]) {
		switch {
		case !isFence(line):
		case open == "":
			open = openFence
		default:
			open = ""
		}
		if strings.HasSuffix(line, "\n") { // The next call scans an incomplete line again.
			f.scanned, f.open = f.scanned+len(line), open
		}
	}
	return open
}

// isFence reports whether a line begins or ends code. A line with backticks after the fence is code within a text.
func isFence(line string) bool {
	info, found := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
	return found && !strings.Contains(strings.TrimLeft(info, "`"), "`")
}

// screensOf splits a conversation into pages of bounded size. The parts have no fences yet.
func screensOf(messages []chat.Message) [][]part {
	var screens [][]part
	free := 0
	for _, m := range messages {
		for start := 0; ; {
			text := m.Text[start:]
			if len(text) > partBytes {
				text = text[:cut(text, partBytes)]
			}
			size := len(template.HTMLEscapeString(text)) + 300
			if size > free {
				screens, free = append(screens, nil), screenBytes
			}
			free -= size
			last := &screens[len(screens)-1]
			*last = append(*last, part{Message: m, Text: text, Start: start, Continued: start > 0})
			if start += len(text); start >= len(m.Text) {
				break
			}
		}
	}
	return screens
}

// cut returns an offset of at most n to split a text: after a line, a word, or at
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

// screenWith returns the number of the page that contains an offset in a message.
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

// blocksOf splits a text at its ``` fences and highlights the byte range from..to.
// An invalid range is ignored.
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
		if isFence(line) {
			flush(at)
			begin, code = at+len(line), !code
		}
		at += len(line)
	}
	flush(len(text))
	return out
}

// blockOf returns text[begin:end] with its intersection with from..to highlighted.
func blockOf(text string, begin, end, from, to int, code bool) block {
	first, last := min(max(from, begin), end), max(min(to, end), begin)
	if from < 0 || first >= last {
		return block{Code: code, Before: text[begin:end]}
	}
	return block{Code: code, Before: text[begin:first], Marked: text[first:last], After: text[last:end], Anchor: first == from}
}

func boundary(text string, i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }
