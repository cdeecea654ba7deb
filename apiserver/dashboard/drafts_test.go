package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/tenant"
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

// keepsRejectedDrafts: a form that was rejected has the text and the bucket that the user chose, on the page on which
// they were.
func keepsRejectedDrafts(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	travel, kitchen := s.newBucket(t, alice, "Travel"), s.newBucket(t, alice, "Kitchen")
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.signIn(alice)
	tab.open("/memories?bucket=" + travel)
	tab.choose("#add select", "Kitchen")
	tab.eval(`document.querySelector("#text").value = "x".repeat(40000)`, nil)
	tab.click("#add button.primary")
	tab.sees("Text must be at most 32768 bytes")
	tab.until(`document.querySelector("h1").innerText === "Travel"`, "be in the same bucket")
	tab.fill("#text", "2025-05-09 The oven heats unevenly.")
	tab.click("#add button.primary")
	tab.sees("Memory saved.")
	tab.at("/memories?bucket=" + travel)
	id := s.only(t, alice)
	s.has(t, alice, id, "2025-05-09 The oven heats unevenly.", 1, "Kitchen")

	tab.open("/memories?bucket=" + travel)
	tab.fill("#text", "2025-05-09 The ferry leaves at noon.")
	s.deleteBucket(t, alice, travel)
	tab.click("#add button.primary")
	tab.sees("Bucket not found.")
	tab.until(`document.querySelector("#text").value === "2025-05-09 The ferry leaves at noon." && document.querySelector("#add select").selectedOptions[0].text === "General"`, "keep the text")

	travel = s.newBucket(t, alice, "Travel")
	tab.open("/memories/" + id)
	tab.choose("form.stack select", "Travel")
	tab.eval(`document.querySelector("#text").value = "x".repeat(40000)`, nil)
	tab.click("form.stack button.primary")
	tab.sees("Text must be at most 32768 bytes")
	tab.fill("#text", "2025-05-09 The oven is new.")
	s.deleteBucket(t, alice, travel)
	tab.click("form.stack button.primary")
	tab.sees("Bucket not found.")
	tab.until(`document.querySelector("form.stack select").selectedOptions[0].text === "Kitchen"`, "see the current bucket")
	s.deleteBucket(t, alice, kitchen)
	tab.click("form.stack button.primary")
	tab.sees("Saved.")
	s.has(t, alice, id, "2025-05-09 The oven is new.", 2, "General")
}

// keepsFailedDrafts: a form that could not be processed is shown on the error page and can be sent again, even without
// scripts; a form of another site is not. With scripts, its page has the text again.
func keepsFailedDrafts(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	travel := s.newBucket(t, alice, "Travel")
	s.newBucket(t, alice, "Kitchen")
	limit := func(requests int64) {
		t.Helper()
		alice.spec.Quota.RequestsPerMinute = requests
		s.apply(t, alice.spec)
	}
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 4")
	tab.expects("status of 503")
	tab.signIn(alice)
	for message, change := range map[string][2]func(){
		"rate limit exceeded":                 {func() { limit(0) }, func() { limit(100000) }},
		"The database is unavailable; retry.": {func() { s.sessionsUnavailable.Store(alice.Scope, true) }, func() { s.sessionsUnavailable.Delete(alice.Scope) }},
	} {
		tab.open("/memories?bucket=" + travel)
		tab.choose("#add select", "Kitchen")
		tab.fill("#text", "2025-05-09 Sold out: "+message)
		change[0]()
		tab.click("#add button.primary")
		tab.sees(message)
		tab.sees("Your text was not saved.")
		tab.looks("failure-draft")
		change[1]()
		tab.click("form.stack button.primary")
		tab.sees("Memory saved.")
		tab.at("/memories?bucket=" + travel)
		tab.open("/memories")
		tab.until(`document.querySelector("#text").value === ""`, "see an empty form")
		id := s.only(t, alice)
		s.has(t, alice, id, "2025-05-09 Sold out: "+message, 1, "Kitchen")

		tab.fill("#text", "Not yet saved.")
		change[0]()
		tab.click("#add button.primary")
		tab.sees("Your text was not saved.")
		change[1]()
		tab.open("/memories")
		tab.sees("It is back in the form.")
		tab.until(`document.querySelector("#text").value === "Not yet saved."`, "have the text again")
		tab.open("/memories")
		tab.until(`document.querySelector("#text").value === ""`, "see an empty form after leaving the page")

		tab.open("/memories/" + id)
		tab.fill("#text", "2025-05-09 Edited.")
		change[0]()
		tab.click("form.stack button.primary")
		tab.sees("Your text was not saved.")
		change[1]()
		s.update(t, alice, `{"memoryId":"`+id+`","text":"2025-05-09 By an assistant."}`)
		tab.click("form.stack button.primary")
		tab.sees("The memory was edited in the meantime")
		tab.open("/memories/" + id)
		tab.fill("#text", "2025-05-09 Too late.")
		if status, body := s.api(t, 0, alice.token, "DELETE", "/api/memories/"+id, ""); status != http.StatusOK {
			t.Fatalf("delete: %d %s", status, body)
		}
		tab.click("form.stack button.primary")
		tab.sees("Memory not found.")
		tab.click("form.stack button.primary")
		tab.sees("Memory saved.")
		id = s.only(t, alice)
		s.has(t, alice, id, "2025-05-09 Too late.", 1, "Kitchen")
		s.api(t, 0, alice.token, "DELETE", "/api/memories/"+id, "")

		tab.open("/buckets/new")
		tab.fill("input[name=name]", "Plans")
		tab.fill("textarea", "Of the year")
		change[0]()
		tab.click("form.stack button.primary")
		tab.sees("Your text was not saved.")
		change[1]()
		tab.inLanguage(dashboard.Pseudo)
		change[0]()
		tab.click("form.stack button.primary")
		tab.until(`document.querySelector("h1").innerText.includes("⟧")`, "see the page with marks")
		tab.marked("failure-draft")
		tab.inLanguage("en")
		change[1]()
		tab.click("form.stack button.primary")
		tab.sees("Of the year")
		tab.click("a.quiet")
		tab.click("details.risky summary")
		tab.click("details.risky button")
		tab.sees("Bucket deleted.")

		token := "Laptop: " + message
		tab.open("/connect/apps")
		tab.fill("form.token-form input[name=name]", token)
		tab.choose("form.token-form select[name=scopes]", "Read only")
		tab.choose("form.token-form select[name=days]", "After 30 days")
		change[0]()
		tab.click("form.token-form button")
		tab.sees("Your text was not saved.")
		change[1]()
		tab.click("form.stack button.primary")
		tab.sees("Your new token")
		tab.until(`document.querySelector("input[name=name]").value === ""`, "see an empty form after the token was created")
		list, err := s.db.UserTokens(t.Context(), alice.Scope)
		if err != nil {
			t.Fatal(err)
		}
		created := slices.IndexFunc(list, func(k tenant.UserToken) bool { return k.Name == token })
		if created < 0 {
			t.Fatalf("no token is named %q: %+v", token, list)
		}
		if list[created].Access != tenant.AccessRead {
			t.Errorf("the token has the scopes %v, want read", list[created].Access.Names())
		}
		if list[created].ExpiresAt.After(time.Now().AddDate(0, 0, 31)) {
			t.Errorf("the token expires %v, want after 30 days", list[created].ExpiresAt)
		}
		tab.open("/connect/apps")
		tab.until(`document.querySelector("input[name=name]").value === ""`, "see an empty form")
	}
	v := s.signedIn(t, 0, alice)
	if status, body := v.post(t, "/memories", url.Values{"text": {"of another site"}}, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden || strings.Contains(body, "of another site") {
		t.Errorf("a form of another site: %d %s", status, body)
	}
}

// keepsDraftsWithoutSession: a text that was sent after the session had expired is in the form again once its user has
// signed in. Nobody else sees it.
func keepsDraftsWithoutSession(t *testing.T, s *site, b *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	alice, bob := users[0], users[1]
	travel := s.newBucket(t, alice, "Travel")
	s.newBucket(t, alice, "Kitchen")
	id := s.remember(t, alice, "2025-05-09 The boat is blue.")
	generation := int64(1)
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 409")
	tab.expects("status of 404") // the bucket of another user
	end := func() {
		t.Helper()
		generation++
		alice.token, alice.password = s.issue(t, alice, generation)
	}
	enter := func(u user) {
		t.Helper()
		tab.fill("input[name=name]", u.name.String())
		tab.fill("input[name=password]", u.password)
		tab.click("button.primary")
	}
	write := func(text string) {
		t.Helper()
		tab.open("/memories?bucket=" + travel)
		tab.choose("#add select", "Kitchen")
		tab.fill("#text", text)
		end()
		tab.click("#add button.primary")
		tab.at("/sign-in?next=%2Fmemories%3Fbucket%3D" + travel)
	}
	tab.signIn(alice)
	write("2025-05-09 The harbor closes at ten.")
	enter(alice)
	tab.at("/memories?bucket=" + travel)
	tab.sees("It is back in the form.")
	tab.until(`document.querySelector("#text").value === "2025-05-09 The harbor closes at ten."`, "have the text again")
	tab.click("#add button.primary")
	tab.sees("Memory saved.")
	if stored := s.memoriesOf(t, alice); !strings.Contains(stored, `"bucketName":"Kitchen"`) {
		t.Errorf("the restored text is not in the chosen bucket: %s", stored)
	}
	tab.open("/memories")
	tab.until(`document.querySelector("#text").value === ""`, "see an empty form")

	tab.open("/memories/" + id)
	tab.fill("#text", "2025-05-09 The boat is green.")
	end()
	tab.click("form.stack button.primary")
	tab.at("/sign-in?next=%2Fmemories%2F" + id)
	s.update(t, alice, `{"memoryId":"`+id+`","text":"2025-05-09 The boat is red."}`)
	enter(alice)
	tab.at("/memories/" + id)
	tab.until(`document.querySelector("#text").value === "2025-05-09 The boat is green."`, "have the edit again")
	tab.click("form.stack button.primary")
	tab.sees("The memory was edited in the meantime")

	tab.open("/connect/apps")
	tab.fill("form.token-form input[name=name]", "Work phone")
	tab.choose("form.token-form select[name=days]", "Never")
	end()
	tab.click("form.token-form button")
	tab.at("/sign-in?next=%2Fconnect%2Fapps")
	enter(alice)
	tab.at("/connect/apps")
	tab.until(`document.querySelector("input[name=name]").value === "Work phone" && document.querySelector("select[name=days]").value === ""`, "have the new token's settings again")

	write("2025-05-09 For Alice only.")
	enter(bob)
	tab.at("/memories")
	tab.open("/memories")
	tab.until(`document.querySelector("#text")?.value === "" && !JSON.stringify(sessionStorage).includes("For Alice only")`, "not see the text of somebody else")
	tab.click(".me form button")
	tab.at("/sign-in")
	enter(alice)
	tab.at("/memories")
	tab.until(`document.querySelector("#text").value === ""`, "see an empty form")
	tab.eval(`sessionStorage.setItem("draft", JSON.stringify({ fields: [["text", "secret"]] }))`, nil)
	tab.click(".me form button")
	tab.at("/sign-in")
	tab.until(`sessionStorage.length === 0`, "leave nothing behind after signing out")
}

// returnsToTheForm: signing in leads to the page of the form that was sent without a session, if it can be opened.
func returnsToTheForm(t *testing.T, s *site, _ *browser) {
	for referer, want := range map[string]string{
		s.urls[0] + "/memories?bucket=1":            "/sign-in?next=%2Fmemories%3Fbucket%3D1",
		s.urls[0] + "/memories?done=added&bucket=1": "/sign-in?next=%2Fmemories%3Fbucket%3D1",
		s.urls[0] + "/memories?undo=1&done=deleted": "/sign-in?next=%2Fmemories",
		s.urls[0] + "/buckets":                      "/sign-in", // the answer to a form
		"https://evil.test/memories":                "/sign-in",
		"":                                          "/sign-in",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.urls[0]+"/memories", strings.NewReader("text=x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Referer", referer)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("a form of %q: %d to %q, want %q", referer, res.StatusCode, got, want)
		}
	}
}
