package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// unsaved is a form with texts that could not be processed. The error page has it, so that the texts are not lost and can be
// sent again.
type unsaved struct {
	Action string // path to which it is sent
	Send   message
	Fields []unsavedField
}

// unsavedField is a field of the form.
type unsavedField struct {
	Name, Value string
	Label       message // zero if the field is hidden
}

// textForms are the forms with texts by the pattern of their path, each with the one that stores the texts as a new object.
var textForms = map[string]string{"/memories": "", "/memories/:id": "/memories", "/buckets": "", "/buckets/:id": "/buckets", "/connect/tokens": ""}

// textFields are the fields of these forms, with the labels of those that are shown.
var textFields = []unsavedField{
	{Name: "text", Label: msg("Text")}, {Name: "name", Label: msg("Name")}, {Name: "description", Label: msg("Description")},
	{Name: "bucket"}, {Name: "back"}, {Name: "today"}, {Name: "version"}, {Name: "from"}, {Name: "seen-name"}, {Name: "seen-description"},
	{Name: "scopes"}, {Name: "days"},
}

// unsavedOf returns the form of a failed request, nil if it has none. If the edited object does not exist, the form stores a
// new one.
func (d *Dashboard) unsavedOf(c *fiber.Ctx, status int) *unsaved {
	create, known := textForms[c.Route().Path]
	if !known || c.Method() != fiber.MethodPost || d.sameOrigin(c) != nil {
		return nil
	}
	form, err := d.form(c)
	if err != nil {
		return nil
	}
	out := &unsaved{Action: c.Path(), Send: msg("Try again")}
	if status == http.StatusNotFound && create != "" {
		out.Action, out.Send = create, msg("Save as new")
	}
	for _, field := range textFields {
		if form.Has(field.Name) {
			field.Value = form.Get(field.Name)
			out.Fields = append(out.Fields, field)
		}
	}
	return out
}

// userKey identifies a user to app.js, which shows a text that was not saved only to the user who wrote it.
func userKey(who *tenant.Session) string {
	return tenant.HashSecret(string(who.Scope.Tenant) + "/" + strconv.FormatInt(int64(who.Scope.User), 10)).Fingerprint()
}

// pageOf returns the path of the page from which a form was sent, without its notice; "" if it cannot be opened again.
func pageOf(c *fiber.Ctx) string {
	from, err := url.Parse(c.Get(fiber.HeaderReferer))
	if err != nil || !strings.EqualFold(from.Host, hostOf(c)) {
		return ""
	}
	if !slices.ContainsFunc(c.App().GetRoutes(true), func(r fiber.Route) bool {
		return r.Method == fiber.MethodGet && fiber.RoutePatternMatch(from.Path, r.Path)
	}) {
		return ""
	}
	query := from.Query()
	query.Del("done")
	query.Del("undo")
	from.RawQuery = query.Encode()
	return localPath(from.RequestURI(), "")
}
