package dashboard

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/search"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// askTokens is the maximum length of an answer.
const askTokens = 600

// askView is a question with its answer.
type askView struct {
	Query   string
	Answer  []piece
	Sources []cited
	Model   string // "" if the answer consists of excerpts
}

// piece is a part of the answer: text or a citation.
type piece struct {
	Text string
	Cite int // number of the source; 0 for text
}

// cited is a source of the answer.
type cited struct {
	Number int
	chat.RecallSource
	Path string
}

var citation = regexp.MustCompile(`\[([0-9]{1,3})\]`)

func (d *Dashboard) ask(c *fiber.Ctx, who *tenant.Session) error {
	view := askView{Query: strings.TrimSpace(c.Query("q"))}
	p := page{Title: "Ask", Section: "ask", Who: who}
	if view.Query != "" {
		list, degraded, err := d.both().Recall(c.UserContext(), who.Identity, chat.RecallInput{
			Queries: []chat.RecallQuery{{Text: view.Query, MaxTokens: askTokens}},
		}, search.Kinds)
		if err != nil {
			return err
		}
		if degraded {
			p.Warning = degradedWarning
		}
		view.fill(list[0])
	}
	p.Data = view
	return d.render(c, fiber.StatusOK, "ask", p)
}

func (v *askView) fill(r chat.Recollection) {
	v.Answer = piecesOf(r.Content, len(r.Sources))
	if r.Model != chat.Extractive {
		v.Model = r.Model
	}
	for i, s := range r.Sources {
		if s.Memory != nil {
			v.Sources = append(v.Sources, cited{Number: i + 1, RecallSource: s, Path: "/memories/" + s.Memory.ID})
			continue
		}
		v.Sources = append(v.Sources, cited{Number: i + 1, RecallSource: s,
			Path: passagePath(s.Conversation.ID, s.Message.Index, 0, len(s.Message.Text))})
	}
}

// both returns the service that searches memories and conversations together.
func (d *Dashboard) both() search.Service {
	return search.Service{Memories: d.Memories, Chats: d.Chats}
}

// piecesOf splits an answer at its citations.
func piecesOf(content string, sources int) []piece {
	var out []piece
	at := 0
	for _, m := range citation.FindAllStringSubmatchIndex(content, -1) {
		n, err := strconv.Atoi(content[m[2]:m[3]])
		if err != nil || n < 1 || n > sources {
			continue
		}
		out = append(out, piece{Text: content[at:m[0]]}, piece{Cite: n})
		at = m[1]
	}
	return append(out, piece{Text: content[at:]})
}
