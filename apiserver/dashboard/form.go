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

// maxForm is the size limit of a form, bytes: a percent-encoded memory and more.
const maxForm = 256 << 10

var errFormTooLarge error = fault.New(fault.TooLarge, "the form is too long (limit %d KiB)", maxForm>>10)

// form reads the fields of a form, once per request.
func (d *Dashboard) form(c *fiber.Ctx) (url.Values, error) {
	if read, ok := c.Locals(readForm{}).(url.Values); ok {
		return read, nil
	}
	values, err := d.readForm(c)
	if err == nil {
		c.Locals(readForm{}, values)
	}
	return values, err
}

// readForm is the key of the form of a request.
type readForm struct{}

func (d *Dashboard) readForm(c *fiber.Ctx) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != fiber.MIMEApplicationForm {
		return nil, fault.New(fault.Unsupported, "forms must be sent as %s", fiber.MIMEApplicationForm)
	}
	body := d.Server.Body(c)
	if body == nil {
		return url.Values{}, nil
	}
	if c.Request().Header.ContentLength() > maxForm {
		return nil, errFormTooLarge
	}
	text, err := io.ReadAll(io.LimitReader(body, maxForm+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the form was not sent completely")
	}
	if len(text) > maxForm {
		return nil, errFormTooLarge
	}
	values, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the form could not be decoded")
	}
	return values, nil
}

// canRetry reports whether the page of a form shows it again with the problem. Other errors concern the whole page.
func canRetry(err error) bool {
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict)
}

// isScript reports whether app.js sent the request and expects text instead of a page.
func isScript(c *fiber.Ctx) bool { return c.Get("X-Requested-With") == "mnemo" }

// localPath returns path if it is a path of this site, and fallback otherwise, to
// prevent open redirects.
func localPath(path, fallback string) string {
	u, err := url.Parse(path)
	if err != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || u.Host != "" || u.Scheme != "" ||
		strings.ContainsFunc(path, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return fallback
	}
	return path
}

// sentence capitalizes a message and adds a full stop.
func sentence(s string) string {
	if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError {
		s = string(unicode.ToUpper(r)) + s[n:]
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// lines converts line breaks to \n: forms have CRLF, whatever their text had.
func lines(s string) string { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s) }

// trimmed returns what a form preserves of a text.
func trimmed(s string) string { return strings.TrimSpace(lines(s)) }

// chosen returns the selected ids without duplicates.
func chosen(form url.Values) []string {
	var out []string
	for _, v := range form["id"] {
		if v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
