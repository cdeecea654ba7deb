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
