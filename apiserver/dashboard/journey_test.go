package dashboard_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// journeyClicks is the number of clicks of the journey in docs/dashboard.md.
const journeyClicks = 6

// clicks counts what a user clicks.
type clicks struct {
	*tab
	n int
}

func (c *clicks) click(selector string) {
	c.t.Helper()
	c.n++
	c.tab.click(selector)
}

// findsAnImportedChat: the first minutes of a user who follows the address of their tenant:
// sign in, import 300 chats, ask, and read the cited passage. Nothing on the way needs to be
// known before.
func findsAnImportedChat(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, func(spec *tenant.Spec) { spec.Quota.Conversations = 1000 }, "alice")[0]
	file := filepath.Join(t.TempDir(), "conversations.json")
	if err := os.WriteFile(file, []byte(exported(t, 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := &clicks{tab: b.newContext(t, s.urls[0])}
	begin := time.Now()
	since := func(step string) { t.Logf("%s: %d clicks, %.1f s", step, tab.n, time.Since(begin).Seconds()) }
	tab.open("/t/" + alice.name.Tenant)
	tab.fill("input[name=name]", "alice")
	tab.fill("input[name=password]", alice.password)
	tab.click("button.primary")
	tab.at("/memories")
	since("signed in")

	tab.click(".ways a[href='/chats']")
	tab.at("/chats")
	tab.n++ // Import chats: the script opens the file dialog of the browser
	tab.do(chromedp.SetUploadFiles("#file", []string{file}, chromedp.ByQuery))
	tab.at("/chats/imports/")
	since("uploaded")
	tab.sees("300")
	tab.until(`document.querySelector("[data-poll]").dataset.poll === "settled"`, "see the import complete")
	since("imported and indexed")

	tab.click(".rail a[href='/ask']")
	tab.at("/ask")
	tab.fill("main [data-search]", "Where can we stay in Lisbon with a wheelchair?")
	tab.click("main form.search button.primary")
	tab.sees("Relevant passages")
	tab.until(`document.querySelector("#s1").innerText.includes("A week in May")`, "see the conversation first")
	since("asked")
	tab.click("#s1 .title")
	tab.at("/chats/")
	tab.until(`[...document.querySelectorAll("#found, .hit")].some((e) => /wheelchair|Belém/.test(e.innerText) && e.getBoundingClientRect().top < innerHeight)`, "see the passage without scrolling")
	since("read the passage")
	if tab.n != journeyClicks {
		t.Errorf("%d clicks, want %d as in docs/dashboard.md", tab.n, journeyClicks)
	}
}
