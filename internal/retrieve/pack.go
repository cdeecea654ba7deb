package retrieve

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxHeading is the maximum length of a title in a heading, in characters.
	maxHeading = 80
	// lineSlack is the estimated overhead of a line in tokens: its number, its line
	// break, and what joining texts may add.
	lineSlack = 3
	ellipsis  = "…"
)

// Excerpt is a piece of a message that can be part of an answer.
type Excerpt struct {
	Owner      string // the conversation's id
	Title      string // the conversation's title
	Seq        int    // the message's index in it
	Sender     string
	At         time.Time
	Text       string // the piece
	Start, End int    // its byte range in the message
	Score      float64
}

// Source is a message that Packed.Content quotes. The content cites the first source
// as [1].
type Source struct {
	Excerpt        // its best piece
	Shown   string // the text in the content
}

// Packed is the best excerpts as one text. Each heading has a title and a date and is
// followed by the messages in order, as "[1] sender: text".
type Packed struct {
	Content string
	Tokens  int // tokens in Content, at most the budget
	Sources []Source
}

// Pack packs the best excerpts into budget tokens, counted by count. It adds distinct
// texts, best first, until one does not fit, and truncates that one. Excerpts of one
// conversation and day share a heading; pieces of one message share a line. The
// result is not empty if a heading and a few words fit.
func Pack(excerpts []Excerpt, budget int, count func(string) int) Packed {
	p := packer{budget: max(budget, 0), count: count, headings: map[string]bool{}}
	for _, e := range distinct(excerpts) {
		if !p.add(e) {
			break
		}
	}
	for {
		out := render(p.chosen)
		if len(p.chosen) == 0 {
			return out
		}
		if out.Tokens = count(out.Content); out.Tokens <= p.budget {
			return out
		}
		p.shrink()
	}
}

// shrink removes the worst excerpt, or halves it if it is the only one. It is rarely
// needed: joined lines can have slightly more tokens than the sum of the lines.
func (p *packer) shrink() {
	last := len(p.chosen) - 1
	text := strings.TrimSuffix(p.chosen[last].text, ellipsis)
	text = strings.TrimSpace(text[:floor(text, len(text)/2)])
	if last > 0 || text == "" {
		p.chosen = p.chosen[:last]
		return
	}
	p.chosen[last].text = text + ellipsis
}

// distinct returns the non-blank excerpts, best first, without repeated texts or
// positions.
func distinct(excerpts []Excerpt) []Excerpt {
	ranked := slices.Clone(excerpts)
	slices.SortStableFunc(ranked, func(a, b Excerpt) int { return cmp.Compare(b.Score, a.Score) })
	seen := make(map[string]bool, len(ranked))
	return slices.DeleteFunc(ranked, func(e Excerpt) bool {
		text := strings.ToLower(strings.Join(strings.Fields(e.Text), " "))
		at := "\x00" + e.Owner + "\x00" + strconv.Itoa(e.Seq) + "\x00" + strconv.Itoa(e.Start)
		if text == "" || seen[text] || seen[at] {
			return true
		}
		seen[text], seen[at] = true, true
		return false
	})
}

// heading returns the title and the day.
func (e Excerpt) heading() string {
	title := strings.Join(strings.Fields(e.Title), " ")
	if utf8.RuneCountInString(title) > maxHeading {
		title = string([]rune(title)[:maxHeading-1]) + ellipsis
	}
	if title == "" {
		title = "Untitled"
	}
	if e.At.IsZero() {
		return title
	}
	return title + " (" + e.At.UTC().Format(time.DateOnly) + ")"
}

// group is the key of the heading that the excerpt belongs to.
func (e Excerpt) group() string { return e.Owner + "\x00" + e.At.UTC().Format(time.DateOnly) }

func (e Excerpt) line(shown string) string { return e.Sender + ": " + shown }

// packer selects excerpts while they fit.
type packer struct {
	budget   int
	count    func(string) int
	used     int
	headings map[string]bool
	chosen   []shown
}

// shown is an excerpt with the text to show.
type shown struct {
	Excerpt
	text string
}

// add adds an excerpt, truncated if necessary, and reports whether more may fit.
func (p *packer) add(e Excerpt) bool {
	cost := 0
	if !p.headings[e.group()] {
		cost = p.count(e.heading()) + lineSlack
	}
	remaining := p.budget - p.used - cost - lineSlack
	text := strings.TrimSpace(e.Text)
	n := p.count(e.line(text))
	if n > remaining {
		if text = p.cut(e, text, remaining); text == "" {
			return false
		}
		p.chosen = append(p.chosen, shown{e, text})
		return false
	}
	p.used += cost + n + lineSlack
	p.headings[e.group()] = true
	p.chosen = append(p.chosen, shown{e, text})
	return true
}

// cut returns the longest prefix that fits, preferably ending at a word, or "" if none
// fits.
func (p *packer) cut(e Excerpt, text string, remaining int) string {
	fits := func(n int) bool { return p.count(e.line(text[:n]+ellipsis)) <= remaining }
	low, high := 0, min(len(text), max(0, remaining)*maxTokenBytes)
	for low < high {
		n := floor(text, (low+high+1)/2)
		if n <= low {
			break
		}
		if fits(n) {
			low = n
		} else {
			high = n - 1
		}
	}
	if space := strings.LastIndexAny(text[:low], " \n\t"); space > low/2 {
		low = space
	}
	out := strings.TrimSpace(text[:low])
	if out == "" {
		return ""
	}
	return out + ellipsis
}

// maxTokenBytes is the assumed maximum number of bytes in a token.
const maxTokenBytes = 16

// floor returns the start of the last character at or before byte n.
func floor(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// render formats the chosen excerpts, which are sorted best first.
func render(chosen []shown) Packed {
	groups := map[string][]shown{}
	var order []string
	for _, s := range chosen {
		if _, ok := groups[s.group()]; !ok {
			order = append(order, s.group())
		}
		groups[s.group()] = append(groups[s.group()], s)
	}
	var out Packed
	var b strings.Builder
	for _, g := range order {
		list := groups[g]
		slices.SortStableFunc(list, func(a, b shown) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Start, b.Start)) })
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(list[0].heading())
		for len(list) > 0 {
			n := 1
			for n < len(list) && list[n].Seq == list[0].Seq {
				n++
			}
			source := merge(list[:n])
			list = list[n:]
			out.Sources = append(out.Sources, source)
			b.WriteString("\n[" + strconv.Itoa(len(out.Sources)) + "] " + source.line(source.Shown))
		}
	}
	out.Content = b.String()
	return out
}

// merge combines the pieces of a message, in order, into one source.
func merge(pieces []shown) Source {
	out := Source{Excerpt: pieces[0].Excerpt, Shown: pieces[0].text}
	for i, s := range pieces[1:] {
		if s.Score > out.Score {
			out.Excerpt = s.Excerpt
		}
		gap := " " + ellipsis + " "
		if pieces[i].End >= s.Start {
			gap = " "
		}
		out.Shown += gap + s.text
	}
	return out
}
