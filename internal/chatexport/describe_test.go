package chatexport_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// Developers are told of a route, and end users of the export that they need.
func TestForEndUsers(t *testing.T) {
	t.Parallel()
	data := []byte("Dear diary")
	_, err := chatexport.Open(bytes.NewReader(data), int64(len(data)), chatexport.Options{})
	if err == nil {
		t.Fatal("opened")
	}
	reason := err.Error()
	if !strings.Contains(reason, "ingest/custom-online") {
		t.Errorf("developers are told %s", reason)
	}
	if got := chatexport.ForEndUsers(reason); strings.Contains(got, "/api/") || !strings.Contains(got, "it looks like text. Request an export") {
		t.Errorf("end users are told %s", got)
	}
	if got := chatexport.ForEndUsers("the zip is damaged"); got != "the zip is damaged" {
		t.Errorf("another reason became %s", got)
	}
}

// The error of an unknown file says what it looks like and what to do.
func TestUnknownFilesAreDescribed(t *testing.T) {
	t.Parallel()
	office := func(name string) []byte {
		return archive(t, deflated("[Content_Types].xml", []byte("<Types/>")), deflated(name, []byte("<x/>")))
	}
	cases := map[string]struct{ data, want string }{
		"android":     {"12/31/25, 11:59 PM - Ada: Happy new year!\n1/1/26, 12:01 AM - Bob: And to you\n", "a WhatsApp chat"},
		"iphone":      {"\u200e[31.12.25, 23:59:01] Ada: Happy new year!\n", "a WhatsApp chat"},
		"telegram":    {`{"name":"Ada","type":"personal_chat","id":1,"messages":[{"id":1,"type":"message","from":"Ada","text":"hi"}]}`, "a Telegram chat"},
		"slack":       {`[{"user":"U1","type":"message","ts":"1.2","text":"hi"}]`, "a Slack channel"},
		"csv":         {"Date,Description,Amount\n2025-01-01,Coffee,3\n", "a spreadsheet (CSV) with the columns Date, Description and Amount"},
		"broken csv":  {"Conversation,Time,Author,Message\n\"open,2025-01-01T00:00:00,Human,hi\n", "a spreadsheet (CSV) without complete rows"},
		"empty csv":   {"Conversation,Time,Author,Message\n", "a spreadsheet (CSV) without complete rows"},
		"excel":       {string(office("xl/workbook.xml")), "a spreadsheet (Excel)"},
		"word":        {string(office("word/document.xml")), "a Word document"},
		"pdf":         {"%PDF-1.7 …", "a PDF"},
		"image":       {"\x89PNG\x0D\x0A\x1A\x0A....", "a file of type image"},
		"web page":    {"<!DOCTYPE html><html><body>Hello</body></html>", "a web page"},
		"xml":         {"<?xml version=\"1.0\"?><chat/>", "XML"},
		"members":     {`{"a":1,"b":[2],"c":{"d":3}}`, "JSON with the members a, b and c"},
		"one member":  {`[{"name":"Alice"}]`, "a JSON list of objects with the member name"},
		"list":        {`[1,2,3]`, "a JSON list without objects"},
		"empty list":  {`[]`, "an empty JSON list"},
		"empty JSON":  {`{}`, "an empty JSON object"},
		"wrapped":     {`{"conversations":[]}`, "JSON with an empty list conversations"},
		"many":        {`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, "a, b, c, d, e, f, g, h and others"},
		"hostile":     {`{"` + strings.Repeat("x", 100_000) + "\u0007" + `":1}`, "xxx"},
		"text":        {"Dear diary", "it looks like text"},
		"rar":         {"Rar!\x1a\x07", "a RAR archive; pack the files as a zip"},
		"compressed":  {string(gzipped(t, []byte("Date,Text,Who\n"))), "a spreadsheet (CSV)"},
		"binary":      {"\x00\x01\x02\x03", "binary data"},
		"link in it":  {`{"notes":[{"text":"see https://example.test/a.zip please"}]}`, "JSON with the member notes"},
		"prose":       {`{"messages":[{"from":"Ada","text":"https://example.test/a.zip"},{"from":"Bob","text":"thanks"}]}`, "JSON with the member messages"},
		"zip address": {`{"avatar":"https://example.test/a.zip","items":[{"id":1}]}`, "JSON with the members avatar and items"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chatexport.Open(bytes.NewReader([]byte(tc.data)), int64(len(tc.data)), chatexport.Options{})
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("Open = %v, want Invalid", err)
			}
			for _, want := range []string{tc.want, "POST /api/chat-history/ingest/custom-online"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open = %v, want %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "manifest") || len(err.Error()) > 1200 {
				t.Errorf("Open = %v, want a short message without a manifest", err)
			}
		})
	}
}

// A requested platform does not turn a file without any conversation into an empty export: the
// user would take it for imported.
func TestEmptyFilesOfAPlatformAreDescribed(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`[]`:                                    "an empty JSON list",
		`{}`:                                    "an empty JSON object",
		`[{},{}]`:                               "a JSON list without objects",
		`[1,2]`:                                 "a JSON list without objects",
		"[" + strings.Repeat("{},", 20) + "{}]": "a JSON list without objects",
		`{"conversations":[]}`:                  "JSON with an empty list conversations",
		`{"data":{"conversations":[]}}`:         "JSON with an empty list conversations",
	} {
		for _, platform := range []string{"", "chatgpt", "claude"} {
			_, err := chatexport.Open(strings.NewReader(data), int64(len(data)), chatexport.Options{Platform: platform})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "the file contains no conversations of "+chatexport.PlatformName(platform)) ||
				!strings.Contains(err.Error(), "it looks like "+want+". To store other chats") {
				t.Errorf("Open of %.40s for platform %q = %v, want Invalid and %q", data, platform, err, want)
			}
		}
	}
}

// A manifest is recognized by a list in which each element is a zip.
func TestManifestsAreRecognized(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"export_id":"x","parts":[{"name":"conversations-000.zip","url":"https://example.test/conversations-000.zip?sig=1"},{"name":"projects-000.zip"}]}`,
		`{"files":["https://example.test/a.zip","https://example.test/b.zip"]}`,
	} {
		_, err := chatexport.Open(strings.NewReader(data), int64(len(data)), chatexport.Options{})
		if err == nil || !strings.Contains(err.Error(), "download the zips that it lists") {
			t.Errorf("Open of %s = %v, want the hint to download the zips", data, err)
		}
	}
}
