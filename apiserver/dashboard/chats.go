package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/search"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

const (
	// chatPage is the number of conversations on a page.
	chatPage = 25
	// recentImports is the number of imports shown.
	recentImports = 3
)

// chatsView is the list of conversations or of search results.
type chatsView struct {
	Filter
	searchView
	Chats   []listed
	Total   int // matching the filter
	Any     bool
	Imports []importer.Import // most recent
	Newer   string            // paths; "" for none
	Older   string
	Here    string
}

// listed is a conversation in the list.
type listed struct {
	chat.Conversation
	Title string
}

// Filter filters the list; its fields are query parameters.
type Filter struct {
	Title, Platform, Status, From, To, Import string
	Pinned                                    bool
	Page                                      int
}

// Narrow reports whether any filter is set.
func (f Filter) Narrow() bool {
	f.Page = 0
	return f != Filter{}
}

func filterOf(c *fiber.Ctx) Filter {
	return Filter{
		Title: strings.TrimSpace(c.Query("title")), Platform: strings.TrimSpace(c.Query("platform")), Status: c.Query("status"),
		From: c.Query("from"), To: c.Query("to"), Import: c.Query("import"), Pinned: c.Query("pinned") != "", Page: max(c.QueryInt("page", 1), 1),
	}
}

// path returns the path of a page of the list.
func (f Filter) path(page int) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"title": f.Title, "platform": f.Platform, "status": f.Status, "from": f.From, "to": f.To, "import": f.Import,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Pinned {
		q.Set("pinned", "yes")
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/chats"
	}
	return "/chats?" + q.Encode()
}

// day parses a date and returns its start, zero for none.
func day(problems *fault.Fields, name, text string, zone *time.Location) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, isDate, err := chat.ParseTime(text, zone)
	if err != nil || !isDate {
		problems.Add(name, "must be a date, such as 2025-05-09")
	}
	return t
}

// span parses the first and the last day of a filter, and returns the start of the first
// and the end of the last one, zero for none.
func span(problems *fault.Fields, from, to string, zone *time.Location) (start, end time.Time) {
	start = day(problems, "from", from, zone)
	if !day(problems, "to", to, zone).IsZero() {
		end, _ = chat.ParseEnd(to, zone) // the date is valid
	}
	return start, end
}

// input converts the filter for the domain. To is inclusive.
func (f Filter) input(zone *time.Location) (chat.ConversationFilter, error) {
	var problems fault.Fields
	out := chat.ConversationFilter{Platform: f.Platform, Title: f.Title, Status: chat.Status(f.Status), PinnedOnly: f.Pinned,
		ImportID: f.Import, Offset: min(f.Page-1, 1_000_000) * chatPage, Limit: chatPage}
	out.From, out.To = span(&problems, f.From, f.To, zone)
	return out, problems.Err()
}

func (d *Dashboard) listChats(c *fiber.Ctx, who *tenant.Session) error {
	view := chatsView{Filter: filterOf(c), searchView: searchView{Query: strings.TrimSpace(c.Query("q"))}}
	view.Here = view.path(view.Page)
	p := page{Title: msg("Chat history"), Section: "chats", Who: who}
	var err error
	if view.Query != "" {
		if p.Warning, err = d.searchChats(c, who, &view); err != nil {
			return err
		}
	} else if err := d.fillChats(c, who, &view); err != nil {
		return err
	}
	if view.Imports, _, err = d.Imports.List(c.UserContext(), who.Identity, 0, recentImports); err != nil {
		return err
	}
	p.Data = view
	return d.render(c, fiber.StatusOK, "chats", p)
}

// searchChats adds the search results and returns a warning.
func (d *Dashboard) searchChats(c *fiber.Ctx, who *tenant.Session, view *chatsView) (warning message, err error) {
	view.Any, view.Here = true, "/chats?q="+url.QueryEscape(view.Query)
	list, degraded, err := d.Chats.Search(c.UserContext(), who.Identity, chat.SearchInput{
		Query: view.Query, Limit: foundResults, Platform: view.Platform, MinScore: new(float64(0)), Zone: zoneOf(c),
	})
	if err != nil {
		return message{}, err
	}
	if degraded {
		warning = degradedWarning
	}
	found := make([]search.Result, len(list))
	for i := range list {
		found[i] = search.Result{Passage: &list[i], Irrelevant: list[i].Irrelevant}
	}
	return warning, d.fillSearch(c.UserContext(), who, &view.searchView, found)
}

// fillChats adds the page of the filtered list.
func (d *Dashboard) fillChats(c *fiber.Ctx, who *tenant.Session, view *chatsView) error {
	input, err := view.input(zoneOf(c))
	if err != nil {
		return err
	}
	list, total, err := d.Chats.List(c.UserContext(), who.Identity, input)
	if err != nil {
		return err
	}
	titles, err := d.titles(c.UserContext(), who, list)
	if err != nil {
		return err
	}
	view.Total = total
	for _, conversation := range list {
		view.Chats = append(view.Chats, listed{conversation, titles[conversation.ID]})
	}
	view.Any = view.Total > 0 || view.Narrow()
	if view.Page > 1 {
		view.Newer = view.path(view.Page - 1)
	}
	if view.Page*chatPage < view.Total {
		view.Older = view.path(view.Page + 1)
	}
	return nil
}

// flagButtons are the changes of the toolbar buttons.
var flagButtons = map[string]chat.Flags{
	"pin": {Pinned: new(true)}, "unpin": {Pinned: new(false)}, "exclude": {Excluded: new(true)}, "include": {Excluded: new(false)},
}

func (d *Dashboard) markChats(c *fiber.Ctx, who *tenant.Session) error {
	form, err := d.form(c)
	if err != nil {
		return err
	}
	ids, back, mark := chosen(form), localPath(form.Get("back"), "/chats"), form.Get("mark")
	if _, known := flagButtons[mark]; !known || len(ids) == 0 {
		return c.Redirect(withNotice(back, "unchanged"), fiber.StatusSeeOther)
	}
	if _, err := d.Chats.Update(c.UserContext(), who.Identity, chat.UpdateInput{IDs: ids, Flags: flagButtons[mark]}); err != nil {
		return err
	}
	return c.Redirect(withNotice(back, mark), fiber.StatusSeeOther)
}
