package chatexport

import (
	"archive/zip"
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxMembers is the number of members of an unknown file that are shown.
	maxMembers = 8
	// maxMember is the number of characters of a member that are shown.
	maxMember = 40
)

// shape is the structure of a JSON file.
type shape struct {
	list    bool     // it is a list
	wrapper string   // the member whose list contains all values
	values  int      // until the format is known
	members []string // of the file, or of the first element
}

// add records a member.
func (sh *shape) add(name []byte) {
	if member := cut(shown(string(name)), maxMember); member != "" && len(sh.members) <= maxMembers && !slices.Contains(sh.members, member) {
		sh.members = append(sh.members, member)
	}
}

// otherApps are apps whose exports are known but contain no chats with an assistant.
var otherApps = []struct {
	name    string
	members []string
}{
	{"a Telegram chat", []string{"name", "type", "id", "messages"}},
	{"a Discord channel", []string{"guild", "channel", "messages"}},
	{"a Slack channel", []string{"user", "type", "ts", "text"}},
	{"an Instagram or Messenger chat", []string{"participants", "messages"}},
}

// String describes the file: "JSON with the members a, b and c".
func (sh *shape) String() string {
	for _, app := range otherApps {
		if !slices.ContainsFunc(app.members, func(m string) bool { return !slices.Contains(sh.members, m) }) {
			return app.name
		}
	}
	switch {
	case sh.values == 0 && sh.wrapper != "":
		return "JSON with an empty list " + sh.wrapper
	case sh.values == 0 && sh.list:
		return "an empty JSON list"
	case sh.values == 1 && !sh.list && len(sh.members) == 0:
		return "an empty JSON object"
	}
	what := "JSON"
	if sh.list {
		what = "a JSON list"
	}
	if len(sh.members) == 0 {
		return what + " without objects"
	}
	if sh.list {
		what += " of objects"
	}
	if len(sh.members) == 1 {
		return what + " with the member " + sh.members[0]
	}
	return what + " with the members " + enumerate(sh.members, maxMembers)
}

// enumerate returns up to n texts as an enumeration.
func enumerate(texts []string, n int) string {
	if len(texts) > n {
		return strings.Join(texts[:n], ", ") + " and others"
	}
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// magic are the first bytes of files that users mistake for exports.
var magic = []struct{ start, name string }{
	{"%PDF", "a PDF"},
	{"SQLite format 3", "an SQLite database"},
	{"Rar!", "a RAR archive; pack the files as a zip"},
	{"7z\xbc\xaf", "a 7-Zip archive; pack the files as a zip"},
	{"\xfd7zXZ", "a file compressed with xz; compress it with gzip"},
	{"BZh", "a file compressed with bzip2; compress it with gzip"},
	{"\x28\xb5\x2f\xfd", "a file compressed with zstd; compress it with gzip"},
	{"\xff\xfe", "text in UTF-16; save it as UTF-8"},
	{"\xfe\xff", "text in UTF-16; save it as UTF-8"},
	{"\xd0\xcf\x11\xe0", "a document of an old version of Microsoft Office"},
	{"{\\rtf", "a rich text document"},
	{"From ", "a mailbox"},
}

// whatsApp matches the start of a message of a WhatsApp chat: "[31.12.25, 23:59:01]
// Name: " or "12/31/25, 11:59 PM - Name: ".
var whatsApp = regexp.MustCompile(`(?m)^\x{200e}?\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}[:.]\d\d[^\n]{0,12}?(\] | - )[^:\n]{1,80}: `)

// describe says what the start of an unknown file looks like.
func describe(start []byte) string {
	for _, m := range magic {
		if bytes.HasPrefix(start, []byte(m.start)) {
			return m.name
		}
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(start, []byte("\uFEFF")))
	if len(text) == 0 {
		return "an empty file"
	}
	if kind := http.DetectContentType(start); !strings.HasPrefix(kind, "text/") {
		if media, _, _ := strings.Cut(kind, "/"); media == "image" || media == "audio" || media == "video" {
			return "a file of type " + media
		}
		return "binary data"
	}
	if whatsApp.Match(text) {
		return "a WhatsApp chat"
	}
	if row := columns(text); len(row) > 2 && isHeader(row) {
		for i, name := range row {
			row[i] = cut(shown(strings.TrimSpace(name)), maxMember)
		}
		return "a spreadsheet (CSV) with the columns " + enumerate(row, maxMembers)
	}
	if text[0] == '<' {
		return "XML"
	}
	return "text"
}

// isHeader reports whether a row looks like names of columns.
func isHeader(row []string) bool {
	return !slices.ContainsFunc(row, func(name string) bool {
		name = strings.TrimSpace(name)
		return name == "" || utf8.RuneCountInString(name) > maxMember || strings.Count(name, " ") > 3
	})
}

// documentOf says which document a zip is, or "".
func documentOf(files []*zip.File) string {
	for _, f := range files {
		switch f.Name {
		case "xl/workbook.xml":
			return "a spreadsheet (Excel)"
		case "word/document.xml":
			return "a Word document"
		case "ppt/presentation.xml":
			return "a presentation (PowerPoint)"
		case "META-INF/container.xml":
			return "an e-book"
		}
	}
	return ""
}
