package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"

	"github.com/mnemo-dev/mnemo/apiserver/dashboard"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// unmarked returns the texts of a page that are not of the catalog, in the language of
// dashboard.Pseudo, which marks those that are. Content of users and names are excluded.
const unmarked = `(() => {
	const found = [], word = /\p{L}/u, walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
	let depth = 0;
	for (let node = walk.nextNode(); node; node = walk.nextNode()) {
		if (node.parentElement.closest("head, script, style")) continue;
		const own = node.parentElement.closest("code, pre, bdi, time, [translate=no], [dir=auto]");
		let outside = "";
		for (const c of node.data) {
			if (c === "⟦") depth++;
			else if (c === "⟧") depth--;
			else if (depth === 0) outside += c;
		}
		if (!own && word.test(outside)) found.push(outside.trim());
	}
	for (const e of document.querySelectorAll("[title], [placeholder], [aria-label]")) {
		for (const name of ["title", "placeholder", "aria-label"]) {
			const text = e.getAttribute(name) ?? "";
			if (word.test(text) && !text.includes("⟦") && !e.closest("[translate=no], time")) found.push(name + ": " + text);
		}
	}
	return found;
})()`

// speaksGerman: the language is that of the browser until the user chooses another one, and
// is stored like the theme. Every page is German without English texts, also its errors and
// what its script shows; dates are in the reader's zone; longer words fit on a phone.
func speaksGerman(t *testing.T, s *site, b *browser) {
	s.choosesLanguage(t)
	alice := s.newTenant(t, func(spec *tenant.Spec) {
		spec.Administrators, spec.Quota.UserMemories = []string{"alice"}, int64(len(memories)+1)
		spec.Applications = []tenant.ApplicationSpec{{Name: "backend", Scopes: []string{"read", "write"}, RequestsPerMinute: tenant.NoLimit}}
	}, "alice", "bob")[0]
	tab := b.newContext(t, s.urls[0])
	tab.expects("status of 40")
	tab.do(emulation.SetTimezoneOverride("Asia/Tokyo"))
	tab.open("/sign-in")
	tab.click("[data-language=de]")
	tab.sees("Name und Passwort erhalten Sie")
	tab.fill("input[name=name]", alice.name.String())
	tab.fill("input[name=password]", "wrong")
	tab.click("button.primary")
	tab.sees("Name oder Passwort ist falsch.")
	tab.until(`document.cookie.includes("mnemo_zone=Asia/Tokyo")`, "tell the server the time zone")
	tab.looks("german-sign-in")
	tab.signIn(alice)
	tab.sees("Noch keine Erinnerungen")
	tab.speaks("german-memories-empty", "/memories")
	s.store(t, alice, memories...)
	s.ingest(t, alice, "lisbon", "A week in May", "Where should we go in spring?", "Lisbon is warm in May.\n\n```\ncode\n```\n\n| a |\n|---|\n| b |")
	s.ingest(t, alice, "untitled", "", "## ", "…")
	tab.filtersInZone()
	for name, path := range map[string]string{
		"memories": "/memories", "memories-found": "/memories?q=train+seat", "memories-none": "/memories?q=kjqwx+vbnzzt", "memories-filtered": "/memories?to=2001-01-01",
		"bucket-new": "/buckets/new", "chats": "/chats", "chats-found": "/chats?q=Lisbon", "search": "/search?q=Lisbon", "ask": "/ask", "asked": "/ask?q=Lisbon+in+May",
		"apps": "/connect/apps", "access": "/connect", "usage": "/usage", "activity": "/activity", "privacy": "/privacy", "admin": "/admin", "imports": "/chats/imports",
		"nothing": "/nowhere", "link": dashboard.PathLink, "rejected": "/memories?from=yesterday",
	} {
		tab.speaks("german-"+name, path)
	}
	tab.editsInGerman()
	tab.importsInGerman()
}

// filtersInZone: the days of a filter are those of the reader's zone. The conversations were created on 3 May in UTC.
func (b *tab) filtersInZone() {
	b.t.Helper()
	b.do(emulation.SetTimezoneOverride("Pacific/Pago_Pago"))
	b.open("/chats")
	b.until(`document.cookie.includes("mnemo_zone=Pacific/Pago_Pago")`, "tell the server the time zone")
	b.open("/chats?to=2026-05-02")
	b.sees("A week in May")
	b.do(emulation.SetTimezoneOverride("Asia/Tokyo"))
	b.open("/chats")
}

// speaks opens a page in German and in the language with marks.
func (b *tab) speaks(name, path string) {
	b.t.Helper()
	b.inLanguage("de")
	b.open(path)
	b.until(`document.readyState === "complete" && document.documentElement.lang === "de"`, "see a German page")
	b.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
	b.looks(name)
	b.inLanguage(dashboard.Pseudo)
	b.open(path)
	b.until(`document.readyState === "complete"`, "see the page with marks")
	b.marked(name)
	b.inLanguage("de")
}

func (b *tab) inLanguage(lang string) {
	b.t.Helper()
	b.do(network.SetCookie("mnemo_language", lang).WithURL(b.url))
}

// marked fails if the page shows texts that are not of the catalog.
func (b *tab) marked(name string) {
	b.t.Helper()
	var texts []string
	b.eval(unmarked, &texts)
	for _, text := range texts {
		b.t.Errorf("%s: %q is not translated", name, text)
	}
}

// editsInGerman: the forms, their errors and the messages of the script are German.
func (b *tab) editsInGerman() {
	b.t.Helper()
	b.open("/memories")
	b.sees("9. Mai 2025")
	b.fill("#text", "Eine Erinnerung mehr.")
	b.click("#add button.primary")
	b.sees("Erinnerung gespeichert.")
	b.fill("#text", "Eine Erinnerung zu viel.")
	b.click("#add button.primary")
	b.sees("Ihr Kontingent für Erinnerungen ist erschöpft")
	b.open("/memories")
	b.click("[data-row] input[name=id]")
	b.sees("1 Erinnerung ausgewählt")
	b.looks("german-memories-selected")
	b.click("button[data-undo]")
	b.sees("1 Erinnerung gelöscht.")
	b.click(".toast button")
	b.sees("Löschen rückgängig gemacht.")
	b.inLanguage(dashboard.Pseudo)
	b.open("/memories")
	b.click("[data-row] input[name=id]")
	b.click("button[data-undo]")
	b.until(`document.querySelector(".toast button")`, "be offered to undo the deletion")
	b.until(`!document.querySelector("[data-row][hidden]")`, "see the new list")
	b.marked("deletion")
	b.click("[data-row] .text")
	b.at("/memories/")
	b.marked("memory")
	b.fill("#text", "Edited in another language.")
	b.click("form.stack button.primary")
	b.until(`document.querySelector(".history li")`, "see the history")
	b.marked("history")
	b.open("/chats")
	b.click(".card .title")
	b.at("/chats/")
	b.marked("conversation")
	b.inLanguage("de")
	b.open("/connect/apps")
	b.fill("input[name=name]", "Laptop")
	b.click(".token-form button.primary")
	b.sees("Ihr neues Token")
	b.looks("german-token-new")
	b.until(`!document.querySelector("[data-language]")`, "see no switch on a page that cannot be loaded again")
	b.click(".secret button")
	b.sees("Kopiert")
}

// importsInGerman: uploads and imports, also those that fail, are German.
func (b *tab) importsInGerman() {
	b.t.Helper()
	b.open("/chats")
	b.drop("notizen.json", `{"hello": "there"}`)
	b.at("/chats/imports/")
	b.sees("Import fehlgeschlagen.")
	b.sees("sie sieht aus wie JSON mit dem Feld hello. Fordern Sie in den Einstellungen")
	b.looks("german-import-failed")
	b.inLanguage(dashboard.Pseudo)
	b.open("/chats")
	b.drop("conversations.json", exported(b.t, 3))
	b.at("/chats/imports/")
	b.until(`document.querySelector("[data-poll]").dataset.poll === "settled"`, "see the import complete")
	b.marked("import")
	b.inLanguage("de")
	b.open("/usage")
	b.click("#appearance ~ p [data-language=en]")
	b.sees("Usage")
	b.until(`document.documentElement.lang === "en" && document.cookie.includes("mnemo_language=en")`, "see English pages again")
}

// choosesLanguage: the server chooses the language of the browser, but the user's choice
// wins, and caches know that the page depends on both.
func (s *site) choosesLanguage(t *testing.T) {
	t.Helper()
	for _, tt := range []struct{ accept, cookie, lang, text string }{
		{"de-AT,de;q=0.9,en;q=0.5", "", "de", "Anmelden"}, {"fr,de;q=0.5", "", "de", "Anmelden"},
		{"fr", "", "en", "Sign in"}, {"de", "en", "en", "Sign in"}, {"en", "de", "de", "Anmelden"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.urls[0]+"/sign-in", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Language", tt.accept)
		r.AddCookie(&http.Cookie{Name: "mnemo_language", Value: tt.cookie})
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		vary := res.Header.Get("Vary")
		if got := res.Header.Get("Content-Language"); got != tt.lang || !strings.Contains(vary, "Accept-Language") || !strings.Contains(vary, "Cookie") {
			t.Errorf("%+v: Content-Language %q, Vary %q", tt, got, vary)
		}
		_, page := do(t, http.DefaultClient, r.Clone(t.Context()))
		if !strings.Contains(page, `<html lang="`+tt.lang+`"`) || !strings.Contains(page, ">"+tt.text+"</button>") {
			t.Errorf("%+v: %s", tt, page)
		}
	}
}
