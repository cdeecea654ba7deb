package dashboard

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/search"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// askTokens is the maximum length of an answer.
const askTokens = 600

// askView is a question with its answer.
type askView struct {
	Query   string
	Answer  []piece // of the chat model; none without one
	Sources []cited
	Model   string // the chat model, "" for none
}

// piece is a part of the answer: text or a citation.
type piece struct {
	Text string
	Cite int // number of the source; 0 for text
}

// cited is a source of the answer.
type cited struct {
	Number int
	result
}

var citation = regexp.MustCompile(`\[([0-9]{1,3})\]`)

func (d *Dashboard) ask(c *fiber.Ctx, who *tenant.Session) error {
	view := askView{Query: strings.TrimSpace(c.Query("q"))}
	p := page{Title: msg("Ask"), Section: "ask", Who: who}
	if view.Query != "" {
		list, degraded, err := d.both().Recall(c.UserContext(), who.Identity, chat.RecallInput{
			Queries: []chat.RecallQuery{{Text: view.Query, MaxTokens: askTokens}}, Zone: zoneOf(c),
		}, search.Kinds)
		if err != nil {
			return err
		}
		if degraded {
			p.Warning = degradedWarning
		}
		if err := d.fillAnswer(c.UserContext(), who, &view, list[0]); err != nil {
			return err
		}
	}
	p.Data = view
	return d.render(c, fiber.StatusOK, "ask", p)
}

// fillAnswer adds the answer of a chat model, if there is one, and the sources.
func (d *Dashboard) fillAnswer(ctx context.Context, who *tenant.Session, v *askView, r chat.Recollection) error {
	if r.Model != chat.Extractive {
		v.Model, v.Answer = r.Model, piecesOf(r.Content, len(r.Sources))
	}
	var conversations []chat.Conversation
	for _, s := range r.Sources {
		if s.Memory == nil {
			conversations = append(conversations, s.Conversation)
		}
	}
	titles, err := d.titles(ctx, who, conversations)
	if err != nil {
		return err
	}
	for i, s := range r.Sources {
		v.Sources = append(v.Sources, cited{Number: i + 1, result: sourceResult(v.Query, titles, s)})
	}
	return nil
}

func sourceResult(query string, titles map[string]string, s chat.RecallSource) result {
	if m := s.Memory; m != nil {
		return memoryResult(query, memory.Memory{ID: m.ID, Text: m.Text, CreatedAt: m.At})
	}
	return passageResult(query, titles, chat.SearchResult{Passage: s.Passage})
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
