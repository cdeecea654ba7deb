package dashboard

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

//go:embed templates/*.html
var templates embed.FS

// page is the data of every template.
type page struct {
	Title   message         // of the browser tab
	Name    string          // of the object that the page shows, instead of the title; "" for none
	Section string          // the current navigation entry
	Tab     string          // the current tab of the section
	Who     *tenant.Session // nil if not signed in
	// Platform is the platform administrator, who has no Who.
	Platform *tenant.PlatformAdministrator
	Notice   message   // confirmation of the last action
	Undo     *undo     // nil if it cannot be undone
	Warning  message   // shown above the page
	Theme    string    // light or dark; "" for that of the system
	Others   []*locale // the languages that the user can choose instead
	Data     any
}

// notices are the confirmations of actions. The URL contains only the key, so that
// links cannot inject text.
var notices = map[string]message{
	"added":           msg("Memory saved."),
	"duplicate":       msg("You already have this memory."),
	"saved":           msg("Saved."),
	"unchanged":       msg("Nothing changed."),
	"moved":           msg("Moved."),
	"deleted":         msg("Deleted."),
	"undeleted":       msg("Deletion undone."),
	"merged":          msg("Merged."),
	"unmerged":        msg("Restored."),
	"pin":             msg("Pinned."),
	"unpin":           msg("Unpinned."),
	"exclude":         msg("Excluded from search."),
	"include":         msg("Included in search, if your quota allows."),
	"bucket-added":    msg("Bucket created."),
	"token-revoked":   msg("Token revoked."),
	"disconnected":    msg("App disconnected."),
	"member-removed":  msg("Access removed."),
	"member-restored": msg("Access restored."),
	"sample-added":    msg("Sample data added."),
	"sample-removed":  msg("Sample data removed."),
	"bucket-deleted":  msg("Bucket deleted. Its memories are now in General."),
}

// maxPage is the size limit of a page, bytes. The longest valid one lists memory.MaxBuckets buckets.
const maxPage = 16 << 20

// themeCookie is the cookie of the theme that the user chose, written by app.js.
const themeCookie = "mnemo_theme"

// withNotice returns a path whose page shows a notice.
func withNotice(to, notice string) string {
	if strings.Contains(to, "?") {
		return to + "&done=" + notice
	}
	return to + "?done=" + notice
}

// pagesOf returns the templates for a language: each page with the shared ones. A page is parsed when it is first rendered,
// because all of them need several megabytes, which a server of API clients never uses.
func (d *Dashboard) pagesOf(l *locale) map[string]func() *template.Template {
	shared := sync.OnceValue(func() *template.Template {
		return template.Must(template.New("shared").Funcs(d.functions(l)).ParseFS(templates, "templates/layout.html", "templates/parts.html"))
	})
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is constant
	}
	out := map[string]func() *template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		out[name] = sync.OnceValue(func() *template.Template {
			return template.Must(template.Must(shared().Clone()).ParseFS(templates, file))
		})
	}
	return out
}

func (d *Dashboard) functions(l *locale) template.FuncMap {
	return template.FuncMap{
		"t":             l.text,
		"tHTML":         l.markup,
		"say":           l.say,
		"lang":          func() string { return l.lang },
		"script":        func() map[string]entry { return l.script },
		"asset":         func(name string) string { return "/assets/" + name + "?v=" + d.assets[name].version },
		"stamp":         stamp,
		"day":           l.day,
		"dayTag":        l.dayTag,
		"moment":        l.moment,
		"momentTag":     l.momentTag,
		"ago":           func(t time.Time) string { return l.say(ago(d.Now().Sub(t))) },
		"number":        l.number,
		"bytes":         l.byteSize,
		"reason":        l.reason,
		"excerpt":       excerpt,
		"splitDate":     splitDate,
		"scopesLabel":   l.scopesLabel,
		"userKey":       userKey,
		"platform":      platformName,
		"platforms":     func() []string { return chatexport.Platforms },
		"platformNames": func() string { return chatexport.PlatformNames(l.text("or")) },
	}
}

// render sends a page.
func (d *Dashboard) render(c *fiber.Ctx, status int, name string, p page) error {
	l := d.languages.of(c)
	vary(c, l)
	if c.Method() == fiber.MethodGet {
		p.Notice, p.Undo = notices[c.Query("done")], undoOf(c)
		p.Others = d.languages.besides(l) // the answer to a form could not be loaded again
	}
	if theme := c.Cookies(themeCookie); theme == "light" || theme == "dark" {
		p.Theme = theme
	}
	out := boundedHTML{limit: maxPage}
	err := l.pages[name]().ExecuteTemplate(&out, "layout", p)
	if errors.Is(err, errOverBudget) {
		return fault.New(fault.TooLarge, "the page is too long (limit %d MiB)", maxPage>>20)
	}
	if err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(status).Send(out.Bytes())
}

// failure is an error page.
type failure struct {
	Status  int
	Heading message
	Message string
	Unsaved *unsaved // nil for none
}

// headings are the titles of error pages by status.
var headings = map[int]message{
	fiber.StatusNotFound:           msg("Page not found"),
	fiber.StatusForbidden:          msg("Not allowed"),
	fiber.StatusTooManyRequests:    msg("Too many requests"),
	fiber.StatusServiceUnavailable: msg("Temporarily unavailable"),
}

// fail sends an error: a page for browsers, text for app.js.
func (d *Dashboard) fail(c *fiber.Ctx, who *tenant.Session, err error) error {
	status, text := d.problem(c, err)
	if isScript(c) {
		vary(c, d.languages.of(c))
		c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
		return c.Status(status).SendString(text)
	}
	heading, ok := headings[status]
	if !ok {
		heading = msg("Something went wrong")
	}
	return d.render(c, status, "failure", page{Title: heading, Who: who, Data: failure{status, heading, text, d.unsavedOf(c, status)}})
}
