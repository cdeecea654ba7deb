package dashboard

import (
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/yuin/goldmark"
	"golang.org/x/text/language"
	printing "golang.org/x/text/message"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// languageCookie is the cookie of the language that the user chose, written by app.js.
const languageCookie = "mnemo_language"

// zoneCookie is the cookie of the browser's time zone, written by app.js.
const zoneCookie = "mnemo_zone"

// zoneOf returns the time zone of the browser, and UTC if it is unknown.
func zoneOf(c *fiber.Ctx) *time.Location {
	zone, err := chat.ParseZone(c.Cookies(zoneCookie))
	if err != nil {
		return time.UTC
	}
	return zone
}

// english is the language of the keys of the catalogs, and the default.
const english = "en"

// locale is a language of the dashboard with all that is rendered in it.
type locale struct {
	messageCatalog
	lang     string // of the html element
	printer  *printing.Printer
	pages    map[string]func() *template.Template
	markdown goldmark.Markdown // renders messages
	answers  goldmark.Markdown // renders answers
	errors   func() []pattern  // compiled when the first error is rendered
	script   map[string]entry  // the messages of app.js that differ from their keys
}

// scriptMessage is a message of app.js.
var scriptMessage = regexp.MustCompile(`\bt\(("(?:[^"\\]|\\.)*")`)

func newLocale(lang string, c messageCatalog, script []string) *locale {
	tag := language.MustParse(lang)
	l := &locale{messageCatalog: c, lang: lang, printer: printing.NewPrinter(tag, printing.Catalog(c.build(tag))),
		errors: sync.OnceValue(func() []pattern { return patternsOf(c.Errors) }), script: map[string]entry{}}
	l.markdown, l.answers = newMarkdown(l, newMessageParser()), newMarkdown(l, newAnswerParser())
	for _, key := range script {
		if e, ok := c.Messages[key]; ok {
			l.script[key] = e
		}
	}
	return l
}

// scriptMessages returns the keys of the messages of app.js.
func scriptMessages(source []byte) []string {
	var out []string
	for _, found := range scriptMessage.FindAllSubmatch(source, -1) {
		key, err := strconv.Unquote(string(found[1]))
		if err != nil {
			panic(err) // the file is embedded
		}
		out = append(out, key)
	}
	return out
}

// languages chooses the locale of a request.
type languages struct {
	byName  map[string]*locale
	offered []*locale // the default is first
	matcher language.Matcher
}

func newLanguages(script []string) languages {
	out := languages{byName: map[string]*locale{}}
	var tags []language.Tag
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(catalogs)), func(lang string) bool { return lang == english })
	for _, lang := range append([]string{english}, others...) {
		l := newLocale(lang, catalogs[lang], script)
		out.byName[lang] = l
		if l.Name != "" {
			out.offered, tags = append(out.offered, l), append(tags, language.MustParse(lang))
		}
	}
	out.matcher = language.NewMatcher(tags)
	return out
}

// of returns the locale that the user chose, or else the best one for the browser.
func (l languages) of(c *fiber.Ctx) *locale {
	if chosen, ok := l.byName[c.Cookies(languageCookie)]; ok {
		return chosen
	}
	tags, _, err := language.ParseAcceptLanguage(c.Get(fiber.HeaderAcceptLanguage))
	if err != nil {
		return l.offered[0]
	}
	_, i, _ := l.matcher.Match(tags...)
	return l.offered[i]
}

// besides returns the other languages.
func (l languages) besides(current *locale) []*locale {
	return slices.DeleteFunc(slices.Clone(l.offered), func(o *locale) bool { return o == current })
}

// Lang returns the language tag.
func (l *locale) Lang() string { return l.lang }

// vary says that a response depends on the language.
func vary(c *fiber.Ctx, l *locale) {
	c.Vary(fiber.HeaderCookie, fiber.HeaderAcceptLanguage)
	c.Set(fiber.HeaderContentLanguage, l.lang)
}
