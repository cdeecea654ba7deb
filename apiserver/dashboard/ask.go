package dashboard

import (
	"context"
	"html/template"
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
	Answer  template.HTML // of the chat model; "" without one
	Sources []cited
	Model   string // the chat model, "" for none
}

// cited is a source of the answer.
type cited struct {
	Number int
	result
}

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
		if err := d.fillAnswer(c.UserContext(), d.languages.of(c), who, &view, list[0]); err != nil {
			return err
		}
	}
	p.Data = view
	return d.render(c, fiber.StatusOK, "ask", p)
}

// fillAnswer adds the answer of a chat model, if there is one, and the sources.
func (d *Dashboard) fillAnswer(ctx context.Context, l *locale, who *tenant.Session, v *askView, r chat.Recollection) error {
	if r.Model != chat.Extractive {
		answer, err := renderAnswer(ctx, l, r.Content, len(r.Sources))
		if err != nil {
			return err
		}
		v.Model, v.Answer = r.Model, answer
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
