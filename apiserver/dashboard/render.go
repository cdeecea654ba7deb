package dashboard

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

//go:embed templates/*.html
var templates embed.FS

// page is the data of every template.
type page struct {
	Title   string          // of the browser tab
	Section string          // the current navigation entry
	Tab     string          // the current tab of the section
	Who     *tenant.Session // nil if not signed in
	Notice  string          // confirmation of the last action
	Undo    *undo           // nil if it cannot be undone
	Warning string          // shown above the page
	Theme   string          // light or dark; "" for that of the system
	Data    any
}

// notices are the confirmations of actions. The URL contains only the key, so that
// links cannot inject text.
var notices = map[string]string{
	"added":           "Memory saved.",
	"duplicate":       "You already have this memory.",
	"saved":           "Saved.",
	"unchanged":       "Nothing changed.",
	"moved":           "Moved.",
	"deleted":         "Deleted.",
	"undeleted":       "Deletion undone.",
	"pin":             "Pinned.",
	"unpin":           "Unpinned.",
	"exclude":         "Excluded from search.",
	"include":         "Included in search, if your quota allows.",
	"bucket-added":    "Bucket created.",
	"token-revoked":   "Token revoked.",
	"disconnected":    "App disconnected.",
	"member-removed":  "Access removed.",
	"member-restored": "Access permitted again.",
	"sample-added":    "Sample data added.",
	"sample-removed":  "Sample data removed.",
	"bucket-deleted":  "Bucket deleted. Its memories are now in General.",
}

// themeCookie is the cookie of the theme that the user chose, written by app.js.
const themeCookie = "mnemo_theme"

// withNotice returns a path whose page shows a notice.
func withNotice(to, notice string) string {
	if strings.Contains(to, "?") {
		return to + "&done=" + notice
	}
	return to + "?done=" + notice
}

// parsePages parses the templates: each page with the shared ones.
func (d *Dashboard) parsePages() map[string]*template.Template {
	shared := template.Must(template.New("shared").Funcs(d.functions()).ParseFS(templates, "templates/layout.html", "templates/parts.html"))
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is constant
	}
	out := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		out[name] = template.Must(template.Must(shared.Clone()).ParseFS(templates, file))
	}
	return out
}

func (d *Dashboard) functions() template.FuncMap {
	return template.FuncMap{
		"asset":         func(name string) string { return "/assets/" + name + "?v=" + d.assets[name].version },
		"stamp":         func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"day":           func(t time.Time) string { return t.UTC().Format("2 January 2006") },
		"moment":        func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"ago":           func(t time.Time) string { return ago(d.Now().Sub(t)) },
		"number":        number[int],
		"number64":      number[int64],
		"plural":        plural[int],
		"plural64":      plural[int64],
		"bytes":         byteSize,
		"excerpt":       excerpt,
		"dated":         dated,
		"scopesLabel":   scopesLabel,
		"platform":      platformName,
		"platforms":     func() []string { return chatexport.Platforms },
		"platformNames": func() string { return chatexport.PlatformNames("or") },
	}
}

// render sends a page.
func (d *Dashboard) render(c *fiber.Ctx, status int, name string, p page) error {
	if p.Notice == "" && c.Method() == fiber.MethodGet {
		p.Notice, p.Undo = notices[c.Query("done")], undoOf(c)
	}
	if theme := c.Cookies(themeCookie); theme == "light" || theme == "dark" {
		p.Theme = theme
	}
	var out bytes.Buffer
	if err := d.pages[name].ExecuteTemplate(&out, "layout", p); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(status).Send(out.Bytes())
}

// failure is an error page.
type failure struct {
	Status  int
	Heading string
	Message string
}

// headings are the titles of error pages by status.
var headings = map[int]string{
	fiber.StatusNotFound:           "Page not found",
	fiber.StatusForbidden:          "Not allowed",
	fiber.StatusTooManyRequests:    "Too many requests",
	fiber.StatusServiceUnavailable: "Temporarily unavailable",
}

// fail sends an error: a page for browsers, text for app.js.
func (d *Dashboard) fail(c *fiber.Ctx, who *tenant.Session, err error) error {
	status, message, retryAfter := d.Server.HTTPError(c.UserContext(), err)
	if retryAfter != "" {
		c.Set(fiber.HeaderRetryAfter, retryAfter)
	}
	message = sentence(message)
	if isScript(c) {
		c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
		return c.Status(status).SendString(message)
	}
	heading := headings[status]
	if heading == "" {
		heading = "Something went wrong"
	}
	return d.render(c, status, "failure", page{Title: heading, Who: who, Data: failure{status, heading, message}})
}
