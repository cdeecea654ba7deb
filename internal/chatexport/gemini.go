package chatexport

import (
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// geminiGap is the pause after which a question starts a new conversation: the
// activity log of Google does not say which questions belong together.
const geminiGap = 30 * time.Minute

// geminiActivity reads consecutive activities of "My Activity" in Google Takeout,
// each a question with its answer.
type geminiActivity struct {
	thread
	turns []turn
}

// turn is a question with its answer.
type turn struct {
	at            time.Time
	query, answer string
}

func openGemini(limits Limits, c *Conversation) reader {
	return &geminiActivity{thread: thread{limits: limits, c: c}}
}

// closeInTime joins activities without a long pause between them. They are listed
// in either order.
func closeInTime(last, next head) bool {
	return !last.at.IsZero() && !next.at.IsZero() && next.at.Sub(last.at).Abs() <= geminiGap
}

func (in *geminiActivity) element(s *scanner) error {
	var (
		header, title string
		t             turn
		answer        lines
	)
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "header":
			header, err = s.text()
		case "title":
			title, err = s.text()
		case "time":
			t.at, err = s.time()
		case "safeHtmlItem":
			err = s.array(func() error { return readSafeHTML(s, &answer) })
		case "details":
			err = s.array(func() error { return readDetail(s, &t, &answer) })
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil || !isGemini(header) {
		return err
	}
	t.answer = answer.String()
	if t.query == "" {
		t.query = question(title, t.answer != "")
	}
	if t.query == "" && t.answer == "" {
		in.c.Notes.Empty++
		return nil
	}
	if in.size += exportedSize(t.query) + exportedSize(t.answer); in.size > in.limits.Conversation {
		return errFull
	}
	if len(in.turns) >= in.limits.Messages/2 {
		return errTooMany
	}
	in.turns = append(in.turns, t)
	return nil
}

func readSafeHTML(s *scanner, out *lines) error {
	return s.object(func(name []byte) error {
		if string(name) != "html" {
			return s.skip()
		}
		text, err := s.text()
		out.add(plainText(text))
		return err
	})
}

// readDetail reads a question or an answer of older exports.
func readDetail(s *scanner, t *turn, answer *lines) error {
	var kind, value string
	err := s.object(func(name []byte) (err error) {
		switch string(name) {
		case "name":
			kind, err = s.text()
		case "value":
			value, err = s.text()
		default:
			err = s.skip()
		}
		return err
	})
	switch kind {
	case "Request":
		t.query = value
	case "Response":
		answer.add(value)
	}
	return err
}

// Verbs precede the question in the title of an activity. Activities with other
// verbs, such as feedback, are not part of a dialogue.
var (
	questionVerbs = []string{"Prompted with: ", "Asked Gemini: ", "Asked Bard: ", "Prompted ", "Asked ", "Said ", "Branched ", "Answered "}
	otherVerbs    = []string{"Used ", "Created ", "Gave ", "Added ", "Selected ", "Shared ", "Deleted ", "Viewed ", "Edited ", "Exported ", "Renamed ", "Pinned "}
)

// question returns the question in the title of an activity, or "". In other
// languages the verb is not known: the whole title of an answered question is used.
func question(title string, answered bool) string {
	title = strings.TrimSpace(strings.ReplaceAll(title, "\u00A0", " "))
	for _, verb := range questionVerbs {
		if prompt, ok := strings.CutPrefix(title, verb); ok {
			return prompt
		}
	}
	for _, verb := range otherVerbs {
		if strings.HasPrefix(title, verb) {
			return ""
		}
	}
	if !answered {
		return ""
	}
	return title
}

// id identifies the turn by its time and question: the HTML and the JSON export of an
// activity yield the same ids. Without a time, the answer distinguishes equal questions.
func (t turn) id() string {
	parts := []string{t.at.Truncate(time.Second).String(), strings.Join(strings.Fields(t.query), " ")}
	if t.at.IsZero() {
		parts = append(parts, strings.Join(strings.Fields(t.answer), " "))
	}
	return digest(parts...)
}

// finish orders the turns.
func (in *geminiActivity) finish() error {
	slices.SortStableFunc(in.turns, func(a, b turn) int { return a.at.Compare(b.at) })
	for i, t := range in.turns {
		id := t.id()
		if i == 0 {
			in.c.ExternalID = id
		}
		in.c.UpdatedAt = t.at
		for _, m := range []message{
			{id: id + "/query", sender: chat.Human, text: t.query, at: t.at},
			{id: id + "/answer", sender: chat.Assistant, text: t.answer, at: t.at},
		} {
			if m.text != "" {
				in.nodes = append(in.nodes, node{message: &m, id: m.id})
			}
		}
	}
	return in.thread.finish()
}
