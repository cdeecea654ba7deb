package dashboard

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// pattern recognizes an error message of the domain, which is in English, by its format.
type pattern struct {
	expression *regexp.Regexp
	literal    int // number of bytes outside of verbs
	text       string
}

// verb is a format verb, with the number of its argument.
var verb = regexp.MustCompile(`%(?:\[(\d)\])?[dqsv]`)

// patternsOf returns the patterns of a catalog, the most specific ones first.
func patternsOf(texts map[string]string) []pattern {
	out := make([]pattern, 0, len(texts))
	for format, text := range texts {
		literals := verb.Split(format, -1)
		p := pattern{text: text, literal: len(strings.Join(literals, ""))}
		for i, s := range literals {
			literals[i] = regexp.QuoteMeta(s)
		}
		p.expression = regexp.MustCompile(`(?s)^` + strings.Join(literals, "(.+)") + `$`)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(b.literal, a.literal), cmp.Compare(a.text, b.text))
	})
	return out
}

// reason returns an error message of the domain in the language; the message itself if
// the catalog has none of its format.
func (l *locale) reason(message string) string {
	for _, p := range l.errors() {
		if args := p.expression.FindStringSubmatch(message); args != nil {
			return l.fill(p.text, args[1:])
		}
	}
	return message
}

// fill replaces the verbs of a text.
func (l *locale) fill(text string, args []string) string {
	next := 0
	return verb.ReplaceAllStringFunc(text, func(v string) string {
		n := next
		if numbered := verb.FindStringSubmatch(v)[1]; numbered != "" {
			n, _ = strconv.Atoi(numbered)
			n--
		} else {
			next++
		}
		if strings.HasSuffix(v, "v") { // an error
			return l.reason(args[n])
		}
		return l.term(args[n])
	})
}

// term returns the name of a field or another argument in the language.
func (l *locale) term(name string) string {
	if translated, ok := l.Terms[name]; ok {
		return translated
	}
	return name
}

// explain returns the message of an error in the language, as sentences.
func (l *locale) explain(err error, message string) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || len(l.Errors) == 0 || len(f.Fields) == 0 {
		return sentence(l.reason(message))
	}
	parts := make([]string, len(f.Fields))
	for i, field := range f.Fields {
		parts[i] = l.term(field.Name) + " " + l.reason(field.Problem)
	}
	return sentence(strings.Join(parts, "; "))
}

// problem returns the status and the message of an error for the user, and sets
// Retry-After.
func (d *Dashboard) problem(c *fiber.Ctx, err error) (status int, text string) {
	status, message, retryAfter := d.Server.HTTPError(c.UserContext(), err)
	if retryAfter != "" {
		c.Set(fiber.HeaderRetryAfter, retryAfter)
	}
	return status, d.languages.of(c).explain(err, message)
}
