package dashboard

import (
	"io"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// maxForm is the longest form, bytes: a memory, percent-encoded, with room.
const maxForm = 256 << 10

// form reads the fields of a form that was sent.
func (d *Dashboard) form(c *fiber.Ctx) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != fiber.MIMEApplicationForm {
		return nil, fault.New(fault.Unsupported, "forms must be sent as %s", fiber.MIMEApplicationForm)
	}
	body := d.Edge.Body(c)
	if body == nil {
		return url.Values{}, nil
	}
	text, err := io.ReadAll(io.LimitReader(body, maxForm+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the form was not sent completely")
	}
	if len(text) > maxForm {
		return nil, fault.New(fault.TooLarge, "the form is too long (limit %d KiB)", maxForm>>10)
	}
	values, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the form could not be decoded")
	}
	return values, nil
}

// isScript reports whether a script of ours asks, which wants a sentence and
// no page.
func isScript(c *fiber.Ctx) bool { return c.Get("X-Requested-With") == "mnemo" }

// localPath returns a path of the dashboard, and otherwise what is not one:
// nobody is led elsewhere by a link.
func localPath(given, otherwise string) string {
	u, err := url.Parse(given)
	if err != nil || !strings.HasPrefix(given, "/") || strings.HasPrefix(given, "//") || u.Host != "" || u.Scheme != "" ||
		strings.ContainsFunc(given, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return otherwise
	}
	return given
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError {
		s = string(unicode.ToUpper(r)) + s[n:]
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// lines is a text as forms send it with the line ends people meant.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// chosen returns the ids of what was picked, each once.
func chosen(form url.Values) []string {
	var out []string
	for _, v := range form["id"] {
		if v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
