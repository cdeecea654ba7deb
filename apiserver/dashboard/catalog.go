package dashboard

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message/catalog"
)

//go:embed messages/*.json
var messageFiles embed.FS

// messageCatalog is a file of messages/: the texts of a language. The keys are the English
// texts.
type messageCatalog struct {
	Name     string            `json:"name"`     // of the language, in the language itself
	Messages map[string]entry  `json:"messages"` // of the templates, the code and app.js
	Errors   map[string]string `json:"errors"`   // of the domain, recognized by their format
	Terms    map[string]string `json:"terms"`    // arguments of errors, such as the names of fields
}

// entry is the text of a message by plural form; a message without forms has only "other".
type entry map[string]string

// pluralForms are the plural forms of CLDR; the last one is the default.
var pluralForms = []string{"zero", "one", "two", "few", "many", "other"}

// UnmarshalJSON accepts a text, or an object with a text for each plural form.
func (e *entry) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*e = entry{"other": text}
		return nil
	}
	return json.Unmarshal(raw, (*map[string]string)(e))
}

// MarshalJSON is the inverse of UnmarshalJSON, for app.js.
func (e entry) MarshalJSON() ([]byte, error) {
	if len(e) == 1 {
		return json.Marshal(e["other"])
	}
	return json.Marshal(map[string]string(e))
}

// message returns the entry for x/text. The first argument selects the plural form.
func (e entry) message() catalog.Message {
	if len(e) == 1 {
		return catalog.String(e["other"])
	}
	var cases []any
	for _, form := range pluralForms {
		if text, ok := e[form]; ok {
			cases = append(cases, form, text)
		}
	}
	return plural.Selectf(1, "%d", cases...)
}

// catalogs are the catalogs by language. A new file is a new language.
var catalogs = readCatalogs()

func readCatalogs() map[string]messageCatalog {
	files, err := fs.Glob(messageFiles, "messages/*.json")
	if err != nil {
		panic(err) // the pattern is constant
	}
	out := map[string]messageCatalog{}
	for _, file := range files {
		raw, err := messageFiles.ReadFile(file)
		if err != nil {
			panic(err) // the file is embedded
		}
		var c messageCatalog
		if err := json.Unmarshal(raw, &c); err != nil {
			panic(fmt.Sprintf("%s: %v", file, err)) // the file is embedded
		}
		out[strings.TrimSuffix(path.Base(file), ".json")] = c
	}
	return out
}

// build returns the messages for x/text.
func (c messageCatalog) build(tag language.Tag) catalog.Catalog {
	out := catalog.NewBuilder(catalog.Fallback(tag))
	for key, e := range c.Messages {
		if err := out.Set(tag, key, e.message()); err != nil {
			panic(fmt.Sprintf("message %q of %s: %v", key, tag, err)) // the file is embedded
		}
	}
	return out
}

// message is a text of the catalogs with its arguments.
type message struct {
	key  string
	args []any
}

// msg returns a message. The key is its English text, a literal that the tests find.
// An argument may be a message.
func msg(key string, args ...any) message { return message{key, args} }

// say returns a message as text, "" for the zero message.
func (l *locale) say(m message) string {
	if m.key == "" {
		return ""
	}
	return l.text(m.key, m.args...)
}

// text returns the text of a key.
func (l *locale) text(key string, args ...any) string {
	given := make([]any, len(args))
	for i, arg := range args {
		if m, ok := arg.(message); ok {
			arg = l.say(m)
		}
		given[i] = arg
	}
	return l.printer.Sprintf(key, given...)
}

// markup returns the text of a key that contains HTML. Its arguments are escaped.
func (l *locale) markup(key string, args ...any) template.HTML {
	given := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case message:
			given[i] = html.EscapeString(l.say(arg))
		case string:
			given[i] = html.EscapeString(arg)
		default:
			given[i] = arg
		}
	}
	return template.HTML(l.printer.Sprintf(key, given...)) //nolint:gosec // a text of the templates or of a catalog
}
