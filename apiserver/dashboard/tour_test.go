package dashboard_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
)

// showsTheTour follows the steps of docs/tour.md, through the menus that it names, and takes a picture of each. It writes
// the page with the pictures to the folder tour of the screenshots.
func showsTheTour(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	steps := []struct {
		heading string
		do      func()
	}{
		{"Open the sign-in link", func() {
			tab.open(dashboard.PathLink + "#" + s.link(t, alice))
			tab.at("/memories")
			tab.sees("No memories yet")
		}},
		{"Try with sample data", func() {
			tab.click("form[action='/sample'] button")
			tab.sees("a grey cat called Miso")
		}},
		{"Write a memory", func() {
			tab.fill("#text", "I take my coffee without milk.")
			tab.click("#add button.primary")
			tab.sees("Memory saved.")
		}},
		{"Search by meaning", func() {
			tab.do(input.DispatchKeyEvent(input.KeyDown).WithKey("k").WithModifiers(input.ModifierCtrl))
			tab.fill("[data-palette] input", "which pet do I have")
			tab.until(`document.querySelector("[data-hits]").innerText.includes("Miso")`, "see the cat among the results")
		}},
		{"Ask a question", func() {
			tab.do(chromedp.KeyEvent(kb.Escape))
			tab.click(".rail a[href='/ask']")
			tab.at("/ask")
			tab.fill("main [data-search]", "What should I see in Lisbon?")
			tab.click("main form.search button.primary")
			tab.sees("Three days in Lisbon")
		}},
		{"Read the conversation", func() {
			tab.click(".sourced a[href^='/chats/']")
			tab.at("/chats/")
			tab.sees("Pena Palace")
		}},
		{"Connect an assistant", func() {
			tab.click(".rail a[href='/connect/apps']")
			tab.at("/connect/apps")
			tab.click(".app:nth-child(3) summary")
			tab.sees("/mcp")
		}},
		{"See what changed", func() {
			tab.click(".rail a[href='/usage']")
			tab.click("nav.tabs a[href='/activity']")
			tab.at("/activity")
			tab.sees("You")
		}},
		{"Remove the sample data", func() {
			tab.click(".rail a[href='/memories']")
			tab.at("/memories")
			tab.click("form[action='/sample/remove'] button")
			tab.sees("I take my coffee without milk.")
			tab.seesNot("Miso")
		}},
	}
	folder := filepath.Join(b.shot, "tour")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	tab.do(emulation.SetDeviceMetricsOverride(1280, 860, 1, false))
	var headings []string
	for i, step := range steps {
		step.do()
		var picture []byte
		tab.do(chromedp.CaptureScreenshot(&picture))
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.png", i+1)), picture, 0o644); err != nil {
			t.Fatal(err)
		}
		headings = append(headings, fmt.Sprintf("%d. %s", i+1, step.heading))
	}
	writeTour(t, folder, headings)
}

// writeTour writes docs/tour.md as a web page with a picture at the end of each step. The
// document must have exactly these headings.
func writeTour(t *testing.T, folder string, headings []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tour.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n## ")
	if len(parts) != len(headings)+1 {
		t.Fatalf("docs/tour.md has %d steps, want %d", len(parts)-1, len(headings))
	}
	page := parts[0]
	for i, part := range parts[1:] {
		if got, _, _ := strings.Cut(part, "\n"); got != headings[i] {
			t.Errorf("step %d of docs/tour.md is %q, want %q", i+1, got, headings[i])
		}
		page += fmt.Sprintf("\n## %s\n\n![%s](%d.png)\n", strings.TrimSpace(part), headings[i], i+1)
	}
	var out bytes.Buffer
	out.WriteString("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tour · Mnemo</title>" +
		"<style>body{font:1rem/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}img{width:100%;border:1px solid #ccc}</style>\n")
	if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(page), &out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "index.html"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
