package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ingest stores a conversation with a question and an answer through the API.
func (s *site) ingest(t *testing.T, u user, id, title, question, answer string) {
	t.Helper()
	body := `{"conversation":{"id":` + quote(id) + `,"title":` + quote(title) + `,"createdAt":"2026-05-03T09:00:00Z","messages":[` +
		`{"id":"1","role":"user","content":` + quote(question) + `,"createdAt":"2026-05-03T09:00:00Z"},` +
		`{"id":"2","role":"assistant","content":` + quote(answer) + `,"createdAt":"2026-05-03T09:00:05Z"}]}}`
	if status, got := s.api(t, 0, u.token, "POST", "/api/chat-history/ingest/custom-online", body); status != 200 {
		t.Fatalf("ingest: %d %s", status, got)
	}
}

// store stores memories through the API.
func (s *site) store(t *testing.T, u user, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if status, body := s.api(t, 0, u.token, "POST", "/api/memory", `{"text":`+quote("2025-05-09 "+text)+`}`); status != 200 {
			t.Fatalf("store memory: %d %s", status, body)
		}
	}
}

// searchesEverything: the shortcuts open the search on every page; memories and
// conversations are in one list with their matches highlighted, less relevant ones are
// collapsed, and an untitled conversation is named after its first message.
func searchesEverything(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	s.store(t, alice, memories...)
	s.ingest(t, alice, "t", "", "# Which **trains** have a window seat to Vienna?", "All night trains of ÖBB have window seats in the seating cars.")
	s.ingest(t, alice, "b", "Sourdough", "Why is my bread flat?", "Feed the starter twice a day.")
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	for _, path := range []string{"/memories", "/chats", "/ask", "/connect", "/connect/apps", "/usage", "/chats/imports", "/buckets/new"} {
		tab.open(path)
		tab.do(input.DispatchKeyEvent(input.KeyDown).WithKey("k").WithModifiers(input.ModifierCtrl))
		tab.until("document.activeElement.closest('dialog[open]')", "open the search on "+path)
	}
	tab.do(chromedp.KeyEvent("window seat on trains"))
	tab.until(`(() => { const cards = [...document.querySelectorAll("[data-hits] > .cards .card")].map((c) => c.innerText);
		return cards.some((c) => c.startsWith("Memory")) && cards.some((c) => c.startsWith("Conversation")); })()`, "find both in one list")
	tab.until(`[...document.querySelectorAll("[data-hits] mark")].some((m) => m.innerText.toLowerCase() === "trains")`, "see the match highlighted")
	tab.sees("Which trains have a window seat to Vienna?")
	tab.until(`document.querySelector("[data-hits] details.less:not([open]) summary").innerText.startsWith("Show less relevant results")`, "see the rest collapsed")
	tab.looks("search-dialog")
	tab.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	tab.until("/^.(memories|chats).[0-9a-f-]{36}/.test(location.pathname)", "be at the first result")

	tab.open("/search?q=window+seat")
	tab.looks("search")
	tab.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), input.DispatchKeyEvent(input.KeyDown).WithKey("k").WithModifiers(input.ModifierMeta))
	tab.until("document.activeElement.matches('main [data-search]')", "be in the search of the page")
	tab.open("/search?q=kjqwx+vbnzzt")
	tab.sees("Nothing relevant found for “kjqwx vbnzzt”")
	tab.looks("search-less")

	bob := s.newTenant(t, nil, "bob")[0]
	other := b.newContext(t, s.urls[1])
	other.do(emulation.SetScriptExecutionDisabled(true))
	other.signIn(bob)
	other.click(".find")
	other.fill("main input[name=q]", "window")
	other.click("main .search button")
	other.at("/search?q=window")
	other.sees("No results for “window”")
	if v := s.visitor(t, 0); v.signIn(t, bob) != 303 {
		t.Fatal("bob cannot sign in")
	} else if _, page := v.get(t, "/search?q=window+seat"); strings.Contains(page, "Vienna") {
		t.Error("bob finds alice's conversation")
	}
}
