package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// datesMemories: a memory has the date on which it was saved, even if the page was opened days before.
func datesMemories(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	for text, save := range map[string]func(){
		"The cellar door sticks.": func() { tab.click("#add button.primary") },
		"The attic light is out.": func() {
			tab.do(input.DispatchKeyEvent(input.KeyDown).WithKey("Enter").WithCode("Enter").WithModifiers(input.ModifierCtrl))
		},
	} {
		tab.open("/memories")
		tab.eval(`{ const Real = Date; globalThis.Date = class extends Real { constructor(...at) { super(...(at.length ? at : ["2031-02-03T12:00:00"])); } }; }`, nil)
		tab.do(chromedp.Focus("#text", chromedp.ByQuery), chromedp.KeyEvent(text))
		save()
		tab.sees("Memory saved.")
		if stored := s.memoriesOf(t, alice); !strings.Contains(stored, "2031-02-03 "+text) {
			t.Errorf("%q does not have the date on which it was saved: %s", text, stored)
		}
	}
}

// keepsInput: a page that shows changes of other tabs keeps what the user is choosing and has opened.
func keepsInput(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	s.store(t, alice, memories...)
	s.ingest(t, alice, "lisbon", "A week in May", "Where should we go in spring?", "Lisbon is warm in May.")
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	refresh := func() {
		t.Helper()
		tab.eval(`document.querySelector("[data-results] .card").remove(); document.querySelector("[data-results]").dataset.before = document.querySelectorAll("[data-results] .card").length`, nil)
		tab.eval(`document.dispatchEvent(new Event("visibilitychange"))`, nil)
		tab.until(`document.querySelectorAll("[data-results] .card").length > document.querySelector("[data-results]").dataset.before`, "see the current results")
	}
	tab.open("/chats")
	tab.click("details.filters summary")
	tab.fill("input[name=title]", "week")
	tab.choose("select[name=status]", "excluded")
	refresh()
	tab.until(`document.querySelector("input[name=title]").checkVisibility() && document.querySelector("input[name=title]").value === "week" && document.querySelector("select[name=status]").value === "excluded"`, "keep the filter")
	tab.until(`document.activeElement.name === "title"`, "keep the focus")
	tab.fill("main [data-search]", "Lisbon")
	tab.sees("Best matches first")
	tab.until(`!document.querySelector("details.filters")`, "see no filter, which does not apply to a search")
	tab.fill("main [data-search]", " ")
	tab.sees("1 conversation")
	tab.until(`document.querySelector("details.filters:not([open])")`, "see the filter again")

	tab.open("/memories")
	tab.click("[data-row]:nth-child(2) input[name=id]")
	tab.choose("select[name=to]", "General")
	refresh()
	tab.sees("1 memory selected")
	tab.until(`document.querySelector("select[name=to]").selectedOptions[0].text === "General"`, "keep the bucket to move to")
	tab.open("/memories?q=kjqwx+vbnzzt")
	tab.click("details.less summary")
	refresh()
	tab.until(`document.querySelector("details.less").open`, "keep the less relevant results open")
}
