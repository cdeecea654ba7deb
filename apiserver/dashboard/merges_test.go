package dashboard_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mergesDuplicates: after storing a text, similar memories are offered to be merged into it. The merge can be undone
// at once, and later on the page of the memory that was kept.
func mergesDuplicates(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	add := func(text string) {
		t.Helper()
		tab.fill("#text", text)
		tab.click("#add button.primary")
		tab.sees("Memory saved.")
	}
	merge := func() {
		t.Helper()
		tab.click(".similar button.primary")
		tab.sees("Merged.")
		tab.seesNot("Similar memories")
		tab.sees("1 merged memory")
		if got := s.stored(t, alice); got != 1 {
			t.Errorf("%d memories are listed after the merge, want 1", got)
		}
	}
	add("I am allergic to peanuts")
	tab.seesNot("Similar memories")
	add("User is allergic to peanuts")
	tab.sees("They say nearly the same as “User is allergic to peanuts”.")
	tab.looks("memories-similar")
	both := s.memoriesOf(t, alice)
	merge()
	tab.click(".toast button")
	tab.sees("Restored.")
	tab.seesNot("1 merged memory")
	tab.until("document.querySelectorAll('[data-row]').length === 2", "see both memories")

	ids := regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindAllStringSubmatch(both, -1)
	offer := "/memories?done=added&similar=" + ids[1][1] + "," + ids[0][1]
	tab.open(offer)
	tab.click(".similar a.button")
	tab.at("/memories")
	tab.seesNot("Similar memories")
	tab.open(offer)
	tab.eval("document.querySelector('.similar input[type=checkbox]').click()", nil)
	tab.click(".similar button.primary")
	tab.sees("Nothing changed.")
	tab.speaks("german-memories-similar", offer)
	tab.inLanguage("en")
	tab.open(offer)
	merge()
	tab.speaks("german-memory-merged", "/memories/"+ids[1][1])
	tab.inLanguage("en")
	tab.open("/memories")
	tab.click(".meta a[href$='#merged']")
	tab.sees("Merged memories")
	tab.sees("I am allergic to peanuts")
	tab.looks("memory-merged")
	tab.open("/memories/" + ids[0][1]) // leads to the one that was kept
	tab.at("/memories/" + ids[1][1])
	tab.click("button[name=id]")
	tab.sees("Restored.")
	tab.seesNot("Merged memories")
	if diff := cmp.Diff(both, s.memoriesOf(t, alice)); diff != "" {
		t.Errorf("memories after the undo (-before +after):\n%s", diff)
	}
}
