package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// TestDashboard tests the pages with real stores and a real browser. Its subtests
// share both, which are expensive to start; each has its own tenant.
func TestDashboard(t *testing.T) {
	t.Parallel()
	s, b := newSite(t), newBrowser(t)
	for name, test := range map[string]func(*testing.T, *site, *browser){
		"SignIn": signsIn, "Link": signsInWithLink, "Sample": triesSampleData, "Tour": showsTheTour, "Administration": administers, "Platform": overseesThePlatform, "Journey": findsAnImportedChat, "Memories": managesMemories, "Dates": datesMemories, "Refresh": keepsInput, "Edits": keepsOthersEdits, "RejectedDrafts": keepsRejectedDrafts, "FailedDrafts": keepsFailedDrafts, "ExpiredSession": keepsDraftsWithoutSession, "FormWithoutSession": returnsToTheForm, "Buckets": managesBuckets, "Undo": undoesDeletion, "Merge": mergesDuplicates, "Token": replacesToken, "Password": replacesPassword, "OwnPassword": guardsPassword, "Tokens": managesTokens, "OwnTokens": guardsTokens,
		"Strangers": separatesUsers, "WithoutScripts": worksWithoutScripts, "Sessions": endsSessions, "SignInAgain": replacesSessions, "Forms": rejectsForeignForms,
		"Throttle": throttles, "Search": searchesEverything, "Markdown": readsMarkdown, "Answer": readsAnAnswer, "Visual": looksRight, "Themes": changesTheme, "German": speaksGerman, "Conversations": managesConversations, "Keyboard": worksByKeyboard, "Rate": countsRequests,
		"ExternalUsers": signsInExternalUsers, "RejectedExternalUsers": rejectsExternalUsers, "ForgedRedirects": rejectsForgedRedirects, "Providers": showsProviders,
		"GoClient": connectsAGoClient, "PythonClient": connectsAPythonClient, "Consent": allowsAnApp, "App": namesTheApp, "ExternalUsersApp": allowsAnAppOfAnExternalUser, "ForgedRequests": rejectsForgedRequests,
		"Reference": showsTheReference, "Secrets": checksSecrets, "Revocation": revokesAppsEverywhere, "Refreshes": countsRefreshes, "TokenIsNotLost": losesNoToken, "Registration": limitsRegistration,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, b)
		})
	}
}

// signsIn: a wrong password is rejected, the right one leads to the requested page,
// and signing out ends the session.
func signsIn(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.open("/")
	tab.at("/sign-in")
	tab.looks("sign-in")
	tab.open("/connect/apps")
	tab.at("/sign-in?next=%2Fconnect%2Fapps")
	tab.fill("input[name=name]", "alice")
	tab.fill("input[name=password]", "wrong")
	tab.click("button.primary")
	tab.sees("The name must be tenant/user, such as acme/alice.")
	tab.fill("input[name=name]", alice.name.String())
	tab.fill("input[name=password]", "wrong")
	tab.click("button.primary")
	tab.sees("Incorrect name or password.")
	tab.fill("input[name=password]", alice.password)
	tab.click("button.primary")
	tab.at("/connect/apps")
	tab.sees("Open WebUI")
	tab.looks("apps")
	tab.click(".me form button")
	tab.at("/sign-in")
	tab.open("/memories")
	tab.at("/sign-in")

	tab.open("/t/" + alice.name.Tenant + "?next=/usage")
	tab.sees("Sign in to " + alice.name.Tenant)
	tab.looks("sign-in-tenant")
	tab.fill("input[name=name]", "alice")
	tab.fill("input[name=password]", "wrong")
	tab.click("button.primary")
	tab.sees("Incorrect name or password.")
	tab.sees("Sign in to " + alice.name.Tenant)
	tab.fill("input[name=password]", alice.password)
	tab.click("button.primary")
	tab.at("/usage")
	tab.open("/t/Not_a_name")
	tab.sees("Page not found")
}

// managesMemories: empty list, add, search while typing, edit with history, move.
func managesMemories(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	tab.sees("No memories yet")
	tab.looks("memories-empty")
	for _, text := range memories {
		tab.fill("#text", text)
		tab.click("#add button.primary")
		tab.sees("Memory saved.")
		tab.until("!document.querySelector('#text').value", "see the box emptied")
	}
	tab.fill("#text", memories[0])
	tab.click("#add button.primary")
	tab.sees("You already have this memory.")
	tab.sees("Newest first")
	tab.eval(`for (const t of document.querySelectorAll("[data-toasts] > *")) t.remove()`, nil)
	tab.looks("memories")

	tab.fill("[data-search]", "where do I like to sit?")
	tab.until("document.querySelectorAll('[data-row]').length && document.querySelector('[data-row] .text').innerText.startsWith('I prefer the window seat')", "find the seat first")
	tab.at("/memories?q=where+do+I+like+to+sit")
	tab.sees("Best matches first")
	tab.looks("memories-found")

	tab.fill("[data-search]", "kjqwx vbnzzt")
	tab.sees("Nothing relevant found for “kjqwx vbnzzt”")
	tab.sees("Show less relevant results (6)")
	tab.until("document.querySelectorAll('details.less:not([open]) .text').length > 0 && !document.querySelector('[data-row]')", "find only less relevant memories, collapsed")
	tab.looks("memories-less")
	tab.open("/ask?q=where+do+I+like+to+sit+on+trains%3F")
	tab.sees("Relevant passages")
	tab.until("document.body.innerText.split('I prefer the window seat on trains.').length === 2", "see the memory once")
	tab.looks("ask-memory")
	tab.click(".sourced .text")
	tab.sees("Not edited yet.")
	tab.open("/memories?q=where+do+I+like+to+sit%3F")

	tab.click("[data-row] .text")
	tab.sees("Not edited yet.")
	tab.fill("#text", "I prefer the aisle seat on trains, since my knee.")
	tab.click("form.stack button.primary")
	tab.sees("Version 2")
	tab.sees("I prefer the window seat on trains.")
	tab.looks("memory")
	tab.eval(`document.querySelector("#text").value = "x".repeat(40000)`, nil)
	tab.expects("status of 400")
	tab.click("form.stack button.primary")
	tab.sees("Text must be at most 32768 bytes")

	tab.open("/buckets/new")
	tab.fill("input[name=name]", "Travel")
	tab.fill("textarea[name=description]", "Trains, planes, places to stay")
	tab.click("form.stack button.primary")
	tab.sees("This bucket is empty")
	tab.open("/memories?q=seat+on+trains")
	tab.click("[data-row] input[name=id]")
	tab.sees("1 memory selected")
	tab.choose("select[name=to]", "Travel")
	tab.click("button[formaction='/memories/move']")
	tab.sees("Moved.")
	s.api(t, 0, alice.token, "POST", "/api/memory", `{"text":"2025-05-09 From an app.","source":"Claude","tags":["travel","Übersee"]}`)
	tab.open("/memories")
	tab.click("details.filters summary")
	tab.choose("select[name=source]", "Claude")
	tab.click("details.filters button.primary")
	tab.at("/memories?")
	tab.until("document.querySelectorAll('[data-row]').length === 1 && document.querySelector('[data-row]').innerText.includes('From an app.')", "see the app's memory only")
	tab.looks("memories-filtered")
	tab.fill("[data-search]", "trains")
	tab.until("!document.querySelector('[data-results]').innerText.includes('aisle seat')", "search only the app's memories")
	tab.open("/memories")
	tab.click("details.filters summary")
	tab.choose("select[name=tag]", "Übersee")
	tab.click("details.filters button.primary")
	tab.at("/memories?")
	tab.until("document.querySelectorAll('[data-row]').length === 1 && document.querySelector('[data-row] .badge').innerText === 'travel'", "see the memory with the tag only")
	tab.fill("[data-search]", "app")
	tab.until("location.search.includes('tag=') && document.querySelectorAll('[data-row], .less .text').length === 1", "search only memories with the tag")
	tab.open("/memories?tag=trav")
	tab.sees("No memories match")
	tab.open("/memories?tag=%00")
	tab.sees("Tag must be valid UTF-8 without the character U+0000")
	tab.open("/memories?to=2001-01-01")
	tab.sees("No memories match")
	tab.open("/memories?from=yesterday")
	tab.sees("must be a date")
	tab.open("/memories")
	tab.until("[...document.querySelectorAll('.side a')].some((a) => a.innerText.replace(/\\s+/g, ' ').trim() === 'Travel 1')", "see one memory in Travel")
}

// memories are realistic examples.
var memories = []string{
	"Ana, my sister, moved to Lisbon in March and has a spare room.",
	"Standup is at 9:30 on Mondays and Thursdays; the rest of the week we write.",
	"I prefer the window seat on trains.",
	"The invoices for Globex go to billing@globex.test, net 30, always with the purchase order number.",
	"Our API answers errors as {\"error\": \"a sentence\"}. We decided against codes: nobody looked them up.",
	"Miso, the cat, takes half a pill at breakfast until the end of May.",
}

// managesBuckets: create, reject a duplicate name, describe, rename, delete.
func managesBuckets(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[1])
	tab.signIn(alice)
	tab.click(".side .new")
	tab.at("/buckets/new")
	tab.fill("input[name=name]", "Recipes")
	tab.click("form.stack button.primary")
	tab.sees("Bucket created.")
	tab.fill("#text", "The bread takes 75 % water.")
	tab.click("#add button.primary")
	tab.sees("The bread takes")
	tab.open("/buckets/new")
	tab.fill("input[name=name]", "recipes")
	tab.expects("status of 409")
	tab.click("form.stack button.primary")
	tab.sees("already exists")
	tab.open("/memories")
	tab.do(chromedp.Click(`//nav[contains(@class,"side")]//a[contains(.,"Recipes")]`, chromedp.BySearch))
	tab.at("/memories?bucket=")
	tab.click("a.quiet")
	tab.at("/buckets/")
	tab.fill("input[name=name]", "Kitchen")
	tab.fill("textarea[name=description]", "What to cook")
	tab.looks("bucket")
	tab.click("form.stack button.primary")
	tab.sees("What to cook")
	tab.click("a.quiet")
	tab.click("details.risky summary")
	tab.sees("Its memories (1) move to General.")
	tab.click("details.risky button")
	tab.sees("Its memories are now in General.")
	tab.sees("The bread takes")
}

// undoesDeletion: deletion takes effect on the server at once, counts and other tabs
// follow, and for ten seconds it can be undone, also on the next page and without scripts.
func undoesDeletion(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	s.store(t, alice, memories...)
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	other := tab.another()
	other.open("/memories")
	other.sees("Miso")
	count := func(n int) string {
		return fmt.Sprintf("[...document.querySelectorAll('.side .count')].every((c) => c.innerText === '%d')", n)
	}
	remove := func(n int) {
		t.Helper()
		tab.eval(`[...document.querySelectorAll("[data-row] input[name=id]")].slice(0, `+fmt.Sprint(n)+`).forEach((box) => box.click())`, nil)
		tab.click("button[data-undo]")
	}
	before := s.memoriesOf(t, alice)
	remove(2)
	tab.sees("2 memories deleted.")
	tab.until(count(len(memories)-2), "see the new count")
	tab.seesNot("Miso")
	if got := s.stored(t, alice); got != len(memories)-2 {
		t.Errorf("%d memories are stored after the deletion, want two less", got)
	}
	other.until(count(len(memories)-2), "see the new count in another tab")
	other.seesNot("Miso")
	tab.click(".toast button")
	tab.sees("Deletion undone.")
	tab.sees("Miso")
	other.sees("Miso")
	tab.until(count(len(memories)), "see the old count")
	if diff := cmp.Diff(before, s.memoriesOf(t, alice)); diff != "" {
		t.Errorf("memories after undoing (-before +after):\n%s", diff)
	}

	remove(1)
	tab.sees("1 memory deleted.")
	tab.click(".rail a[href='/usage']")
	tab.at("/usage")
	tab.click(".toast button") // also on the next page
	tab.sees("Deletion undone.")
	if got := s.stored(t, alice); got != len(memories) {
		t.Errorf("%d memories are stored after undoing on the next page, want all", got)
	}
	tab.open("/memories")
	remove(1)
	tab.sees("1 memory deleted.")
	tab.looks("memories-undo")
	tab.click("[data-row] .text")
	tab.click("button.danger")
	tab.at("/memories")
	tab.sees("Deleted.")
	tab.until("document.querySelector('.toast form')", "be offered to undo it")
	if got := s.stored(t, alice); got != len(memories)-2 {
		t.Errorf("%d memories are stored, want two less", got)
	}
	s.finishesDeletions(t, alice)
}

// finishesDeletions waits until nothing of a user's deletions is kept.
func (s *site) finishesDeletions(t *testing.T, u user) {
	t.Helper()
	eventually(t, func() string {
		counts, err := s.db.CountErasable(t.Context(), u.Scope)
		if err != nil {
			return err.Error()
		}
		for _, c := range counts {
			if strings.Contains(c.Query, " deletions ") && c.Before > 0 {
				return "deletions are still kept"
			}
		}
		return ""
	})
}

// memoriesOf returns the memories of a user, oldest first.
func (s *site) memoriesOf(t *testing.T, u user) string {
	t.Helper()
	_, body := s.api(t, 1, u.token, "GET", "/api/v2/memory?all=true", "")
	return body
}

// stored returns the number of a user's memories.
func (s *site) stored(t *testing.T, u user) int {
	t.Helper()
	_, body := s.api(t, 1, u.token, "GET", "/api/v2/memory?all=true", "")
	return strings.Count(body, `"createdAt"`)
}

// mentionsSecrets: users see the name of the Secret with their token. Its namespace and the
// command that reads it are shown only where they are configured, on the second replica.
func (s *site) mentionsSecrets(t *testing.T, u user) {
	t.Helper()
	for replica, detailed := range []bool{false, true} {
		v := s.visitor(t, replica)
		v.signIn(t, u)
		_, page := v.get(t, "/connect")
		if !strings.Contains(page, u.spec.Name+"-alice-access</code>") {
			t.Errorf("replica %d does not name the Secret", replica)
		}
		for _, word := range []string{"in Secret", "kubectl", "namespace"} {
			if strings.Contains(page, word) != detailed {
				t.Errorf("replica %d: the page contains %q: %t, want %t", replica, word, !detailed, detailed)
			}
		}
	}
}

// replacesToken: the page describes the operator's token; a new token is shown
// once, and every replica rejects the old one immediately.
func replacesToken(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	tab.click(".rail a[href='/connect/apps']")
	tab.click(".tabs a[href='/connect']")
	tab.sees(tenant.HashSecret(alice.token).Fingerprint())
	tab.sees(alice.spec.Name + "-alice-access")
	tab.sees("never")
	s.mentionsSecrets(t, alice)
	for replica := range s.urls { // and both know it well
		if status, body := s.api(t, replica, alice.token, "GET", "/api/buckets", ""); status != 200 {
			t.Fatalf("the operator's token: %d %s", status, body)
		}
	}
	eventually(t, func() string {
		info, err := s.db.Token(t.Context(), alice.Scope)
		if err != nil || info.LastUsedAt.IsZero() {
			return "the use is not noted"
		}
		return ""
	})
	tab.open("/connect")
	tab.sees("Last used")
	tab.sees("just now")
	tab.looks("access")
	other := tab.another()
	other.open("/connect")

	tab.click("form.warnbox button") // the box is not ticked
	tab.at("/connect")
	tab.seesNot("Your new token")
	tab.click("form.warnbox input[type=checkbox]")
	tab.click("form.warnbox button")
	tab.sees("Your new token")
	var newToken string
	tab.eval(`document.querySelector("#new-token").textContent`, &newToken)
	for replica := range s.urls {
		eventually(t, func() string {
			if status, _ := s.api(t, replica, alice.token, "GET", "/api/buckets", ""); status != 401 {
				return "the old token is still accepted"
			}
			return ""
		})
		if status, body := s.api(t, replica, newToken, "GET", "/api/buckets", ""); status != 200 {
			t.Errorf("the new token: %d %s", status, body)
		}
	}
	tab.copies(".secret button")
	tab.eval(`document.querySelector("#new-token").textContent = "mn_5rT0kXq9VbYw2ZcL8sHdJfG3nPeUaM7i0A1b2C"`, nil)
	tab.looks("access-new")
	other.open("/connect")
	other.sees(tenant.HashSecret(newToken).Fingerprint())
	other.sees("Issued by\nyou")
	other.seesNot(newToken)
	other.looks("access-own")
}

// separatesUsers: the data of another user looks like data that does not exist.
func separatesUsers(t *testing.T, s *site, b *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	alice, bob := users[0], users[1]
	carol := s.newTenant(t, nil, "carol")[0]
	_, body := s.api(t, 0, alice.token, "POST", "/api/memory", `{"text":"2025-05-09 The safe opens with 4711."}`)
	id := between(body, `"memoryId":"`, `"`)
	_, body = s.api(t, 0, alice.token, "GET", "/api/buckets", "")
	bucket := between(body, `"id":"`, `"`)
	for _, who := range []user{bob, carol} {
		tab := b.newContext(t, s.urls[0])
		tab.expects("status of 404")
		tab.signIn(who)
		tab.sees("No memories yet")
		tab.open("/memories?q=safe")
		tab.sees("No results for “safe”")
		var theirs, nobodys string
		tab.open("/memories/" + id)
		tab.eval("document.querySelector('main').innerHTML", &theirs)
		tab.open("/memories/0196b2f4-6d1e-7c3a-9f5e-2b8d4c6a1e07")
		tab.eval("document.querySelector('main').innerHTML", &nobodys)
		if theirs != nobodys || !strings.Contains(theirs, "Memory not found.") {
			t.Errorf("another's memory looks like %s\none that does not exist like %s", theirs, nobodys)
		}
		tab.open("/buckets/" + bucket)
		tab.sees("Bucket not found.")
		v := s.visitor(t, 0)
		v.signIn(t, who)
		for path, form := range map[string]url.Values{
			"/memories/" + id:                {"text": {"mine now"}},
			"/memories/delete":               {"id": {id}},
			"/memories/move":                 {"id": {id}, "to": {bucket}},
			"/buckets/" + bucket:             {"name": {"mine"}},
			"/buckets/" + bucket + "/delete": {},
		} {
			if status, body := v.post(t, path, form); status != 404 && path != "/memories/delete" {
				t.Errorf("POST %s: %d %s", path, status, body)
			}
		}
	}
	if status, body := s.api(t, 0, alice.token, "GET", "/api/memories/"+id, ""); status != 200 || !strings.Contains(body, "4711") {
		t.Errorf("alice's memory after the others tried: %d %s", status, body)
	}
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 404")
	tab.signIn(alice)
	tab.open("/nowhere")
	tab.sees("Page not found")
	tab.looks("nothing-here")
}

// between returns the text between two markers.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// worksWithoutScripts: all pages and forms work without JavaScript.
func worksWithoutScripts(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.do(emulation.SetScriptExecutionDisabled(true))
	tab.signIn(alice)
	tab.fill("#text", "The boiler was serviced.")
	tab.click("#add button.primary")
	tab.sees("The boiler was serviced.")
	tab.fill("[data-search]", "heating")
	tab.click(".search button")
	tab.at("/memories?q=heating")
	tab.sees("The boiler was serviced.")
	tab.click("[data-row] input[name=id]")
	tab.click("button[data-undo]")
	tab.sees("Deleted.")
	if got := s.stored(t, alice); got != 0 {
		t.Errorf("%d memories are left, want none", got)
	}
	tab.click(".toast button")
	tab.sees("Deletion undone.")
	tab.sees("The boiler was serviced.")
	tab.fill("#text", "Our boiler was serviced.")
	tab.click("#add button.primary")
	tab.click(".similar button.primary")
	tab.sees("1 merged memory")
	tab.click(".toast button")
	tab.sees("Restored.")
	if got := s.stored(t, alice); got != 2 {
		t.Errorf("%d memories are stored after the undo of the merge, want 2", got)
	}
}

// worksByKeyboard: from sign-in to a stored and found memory by keyboard, with
// visible focus.
func worksByKeyboard(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.open("/sign-in")
	tab.until("document.activeElement.name === 'name'", "be in the name")
	tab.do(chromedp.KeyEvent(alice.name.String()), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(alice.password), chromedp.KeyEvent(kb.Enter))
	tab.at("/memories")
	tab.do(chromedp.KeyEvent(kb.Tab))
	tab.until("document.activeElement.className === 'skip' && document.activeElement.getBoundingClientRect().left >= 0", "see the skip link")
	tab.do(chromedp.KeyEvent(kb.Enter))
	tab.until("document.activeElement.id === 'main'", "be in the content")
	tab.focusOn("text")
	tab.do(chromedp.KeyEvent("Keys are enough."))
	tab.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	tab.sees("Keys are enough.")
	tab.do(chromedp.Evaluate("document.activeElement.blur()", nil), chromedp.KeyEvent("/"))
	tab.until("document.activeElement.closest('dialog[open]')", "be in the search")
	tab.do(chromedp.KeyEvent("keyboard"))
	tab.until("document.querySelector('[data-hits] .card')", "have searched")
	tab.do(chromedp.KeyEvent(kb.Escape))
	tab.until("!document.querySelector('dialog[open]')", "have closed the search")
}

// focusOn presses the tab key until the element has focus.
func (b *tab) focusOn(id string) {
	b.t.Helper()
	for range 40 {
		var now string
		b.eval("document.activeElement.id", &now)
		if now == id {
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.t.Fatalf("the tab key does not get to %s", id)
}
