package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
	"github.com/mnemo-dev/mnemo/internal/search"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// foundResults is the number of search results.
	foundResults = 20
	// foundText is the size of the excerpts of results, bytes.
	foundText = 420
)

// searchView is a search in memories and conversations.
type searchView struct {
	Query string
	Found []result // relevant results, best first
	Less  []result // less relevant ones
}

// result is a memory or a passage that was found.
type result struct {
	Path    string
	Title   string // of the conversation; "" for a memory
	Text    []fragment
	Memory  *memory.Memory // nil for a passage
	Passage *chat.Passage  // nil for a memory
	Date    time.Time      // the day that the text of a memory begins with; zero if none
}

// both returns the service that searches memories and conversations together.
func (d *Dashboard) both() search.Service {
	return search.Service{Memories: d.Memories, Chats: d.Chats}
}

func (d *Dashboard) search(c *fiber.Ctx, who *tenant.Session) error {
	view := searchView{Query: strings.TrimSpace(c.Query("q"))}
	p := page{Title: msg("Search (noun)"), Section: "search", Who: who}
	if view.Query != "" {
		found, degraded, err := d.both().Search(c.UserContext(), who.Identity, search.Input{
			Query: view.Query, Limit: foundResults, MinScore: new(float64(0)), Zone: zoneOf(c),
		})
		if err != nil {
			return err
		}
		if degraded {
			p.Warning = degradedWarning
		}
		if err := d.fillSearch(c.UserContext(), who, &view, found); err != nil {
			return err
		}
	}
	p.Data = view
	return d.render(c, fiber.StatusOK, "search", p)
}

func (d *Dashboard) fillSearch(ctx context.Context, who *tenant.Session, view *searchView, found []search.Result) error {
	var untitled []chat.Conversation
	for _, r := range found {
		if r.Passage != nil {
			untitled = append(untitled, r.Passage.Conversation)
		}
	}
	titles, err := d.titles(ctx, who, untitled)
	if err != nil {
		return err
	}
	for _, r := range found {
		item := resultOf(view.Query, titles, r)
		if r.Irrelevant {
			view.Less = append(view.Less, item)
		} else {
			view.Found = append(view.Found, item)
		}
	}
	return nil
}

func resultOf(query string, titles map[string]string, r search.Result) result {
	if r.Memory != nil {
		return memoryResult(query, *r.Memory)
	}
	return passageResult(query, titles, *r.Passage)
}

func memoryResult(query string, m memory.Memory) result {
	text := splitDate(m.Text)
	return result{Path: memoryPath(m.ID), Memory: &m, Date: text.Date, Text: fragments(query, text.Text, foundText)}
}

func passageResult(query string, titles map[string]string, r chat.SearchResult) result {
	return result{
		Path: passagePath(r.Conversation.ID, r.Message.Index, r.Start, r.End), Title: titles[r.Conversation.ID],
		Passage: &r.Passage, Text: fragments(query, r.Message.Text, foundText),
	}
}

// memoryPath returns the path of a memory.
func memoryPath(id string) string { return "/memories/" + url.PathEscape(id) }

// passagePath returns the path of a passage, a byte range of a message.
func passagePath(id string, message, start, end int) string {
	return fmt.Sprintf("/chats/%s?m=%d&start=%d&end=%d#found", url.PathEscape(id), message, start, end)
}
