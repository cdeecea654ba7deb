package dashboard_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// exported returns a Claude export with n conversations; the first ones have the
// content that the tests search for.
func exported(t *testing.T, n int) string {
	t.Helper()
	type message struct {
		UUID      string    `json:"uuid"`
		Sender    string    `json:"sender"`
		Text      string    `json:"text"`
		CreatedAt time.Time `json:"created_at"`
	}
	type conversation struct {
		UUID      string    `json:"uuid"`
		Name      string    `json:"name"`
		CreatedAt time.Time `json:"created_at"`
		UpdatedAt time.Time `json:"updated_at"`
		Messages  []message `json:"chat_messages"`
	}
	topics := []struct{ title, question, answer string }{
		{"A week in May", "Where should we go in spring? Four of us, one in a wheelchair, no more than three hours by plane.",
			"Lisbon is warm in May and not yet crowded. The trams are steep, so stay in Belém: it is flat, by the river, and the new metro stops have lifts."},
		{"Sourdough that rises", "My bread stays flat. The starter is two weeks old and lives in the fridge.",
			"Feed it twice a day at room temperature until it doubles in six hours. Then this dough:\n\n```\n500 g flour, 375 g water\n100 g starter, 10 g salt\nbulk 5 h at 24 °C, fold three times\n```\n\nShape it tight; it wants a hot pot with a lid."},
		{"Postgres index on lower(name)", "Why does my query not use the index on name?",
			"You search lower(name), and the index is on name. Make one on the expression:\n\n```sql\ncreate index people_name on people (lower(name));\n```\n\nThen analyze, and look at the plan again."},
		{"Present for Grandpa", "He turns 90, likes trains and hates gadgets.", "A large-print timetable of 1962, framed, and a day on the steam train with all of you."},
	}
	at := time.Date(2026, 5, 3, 9, 0, 0, 0, time.UTC)
	list := make([]conversation, n)
	for i := range list {
		topic := topics[i%len(topics)]
		begin := at.Add(-time.Duration(i) * 26 * time.Hour)
		title := topic.title
		if i >= len(topics) {
			title = fmt.Sprintf("%s, again (%d)", topic.title, i)
		}
		c := conversation{UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Name: title, CreatedAt: begin, UpdatedAt: begin.Add(time.Minute)}
		for j, text := range []string{topic.question, topic.answer, "Thank you, that helps."} {
			if i >= len(topics) {
				text = fmt.Sprintf("%s (note %d)", "Nothing to report about the weather today", i*3+j)
			}
			c.Messages = append(c.Messages, message{UUID: fmt.Sprintf("%s-%d", c.UUID, j), Sender: []string{"human", "assistant"}[j%2],
				Text: text, CreatedAt: begin.Add(time.Duration(j) * 20 * time.Second)})
		}
		list[i] = c
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drop drops files on the page, whose names and contents alternate.
func (b *tab) drop(files ...string) {
	b.t.Helper()
	add := ""
	for i := 0; i < len(files); i += 2 {
		add += `data.items.add(new File([` + quote(files[i+1]) + `], ` + quote(files[i]) + `, {type: "application/json"}));`
	}
	b.eval(`(() => { const data = new DataTransfer(); `+add+`
		document.querySelector("h1").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true})); })()`, nil)
}

// managesConversations: import by drag and drop with progress and over-quota
// conversations; list, filter, pin, exclude, delete, search and read at the match;
// ask with sources; usage, export and erase.
func managesConversations(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, func(spec *tenant.Spec) { spec.Quota.Conversations = 30 }, "alice")[0]
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	tab.click(".rail a[href='/chats']")
	tab.sees("No conversations yet")
	tab.looks("chats-empty")
	tab.drop("notes.json", `{"hello": "there"}`)
	tab.at("/chats/imports/")
	tab.sees("Import failed.")
	tab.sees("notes.json")
	tab.sees("it looks like JSON with the member hello. Request an export in the settings of your assistant")
	tab.seesNot("ingest/custom-online")
	tab.sees("Accepted are .zip")
	tab.looks("import-failed")
	tab.click("a.primary")
	tab.at("/chats")
	tab.drop("one.json", `{"hello": "there"}`, "two.json", `[]`)
	tab.at("/chats/imports")
	tab.until(`document.querySelectorAll(".cards .card").length === 3`, "see three imports")
	tab.sees("one.json")
	tab.sees("two.json")
	s.importsWithoutScript(t, alice)
	tab.open("/chats")

	tab.drop("conversations.json", exported(t, 40))
	tab.at("/chats/imports/")
	tab.until(`document.querySelector("#indexed").max === 30 && document.querySelector("#indexed").value > 0`, "see conversations found by meaning")
	tab.sees("Import complete. 30 of 40 conversations are searchable.")
	tab.sees("10 conversations aren’t searchable yet (quota reached).")
	tab.looks("import")
	tab.click("a.primary")
	tab.at("/chats")
	tab.sees("40 conversations")
	tab.looks("chats")
	tab.click("a[rel=next]")
	tab.at("/chats?page=2")
	tab.sees("over quota")

	tab.open("/chats?title=sourdough")
	tab.sees("Sourdough that rises")
	tab.seesNot("A week in May")
	tab.click("[data-all]")
	tab.sees("10 conversations selected")
	tab.click("button[value=pin]")
	tab.sees("Pinned.")
	tab.open("/chats?pinned=yes")
	tab.sees("10 conversations")
	tab.click("[data-row] input[name=id]")
	tab.click("button[value=exclude]")
	tab.sees("Excluded from search")
	tab.open("/chats?status=excluded")
	tab.sees("1 conversation")
	tab.click("[data-row] input[name=id]")
	tab.click("button[data-undo]")
	tab.sees("1 conversation deleted.")
	tab.until("!document.querySelector('[data-row]')", "see no conversation")
	tab.click(".toast button")
	tab.sees("Deletion undone.")
	tab.click("[data-row] input[name=id]")
	tab.click("button[value=include]")
	tab.sees("Included in search")

	tab.open("/chats")
	tab.fill("[data-search]", "is Lisbon crowded?")
	tab.until(`document.querySelector(".quote")?.innerText.includes("Lisbon")`, "find Lisbon first")
	tab.looks("chats-found")
	tab.click(".card .title")
	tab.until(`document.querySelector("#found")?.innerText.includes("Lisbon") && location.hash === "#found"`, "be at the line")
	tab.until(`(() => { const r = document.querySelector("#found").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`, "see the line")
	tab.looks("conversation")

	tab.click(".rail a[href='/ask']")
	tab.sees("Try one of these")
	tab.fill("[data-search]", "why is the index on name not used?")
	tab.click(".search button")
	tab.sees("create index people_name")
	tab.seesNot("Sources")
	tab.until("document.body.innerText.split('create index people_name').length === 2", "see the passage once")
	tab.looks("ask")
	tab.click(".sourced .title")
	tab.until(`document.querySelector("#found") && location.pathname.startsWith("/chats/")`, "be at the source")

	tab.click(".rail a[href='/usage']")
	tab.sees("10 conversations aren’t searchable yet (quota reached)")
	tab.sees("30 of 30 (quota reached)")
	tab.looks("usage")
	tab.click(".tabs a[href='/activity']")
	tab.sees("Finished an import")
	tab.sees("Signed in")
	tab.looks("activity")
	tab.click(".tabs a[href='/privacy']")
	tab.sees("What is stored")
	tab.looks("privacy")
	tab.expects("status of 400")
	tab.click("details.risky summary")
	tab.sees("Connected apps are disconnected, and the tokens you created are revoked. Your sign-in and your API token keep working.")
	tab.fill("input[name=confirm]", "yes")
	tab.click("details.risky button")
	tab.sees("Nothing was deleted")
	s.exports(t, alice)
	tab.fill("input[name=confirm]", "delete everything")
	tab.click("details.risky button")
	tab.sees("All your data has been erased")
	tab.sees("Your sign-in and your API token still work. The tokens you created no longer do.")
	tab.until("document.querySelector('.receipt dl').innerText.replace(/\\s+/g, ' ').includes('Remaining 0')", "see that nothing remains")
	tab.looks("receipt")
	tab.open("/chats")
	tab.sees("No conversations yet")
}

// importsWithoutScript sends two files as a browser without scripts does.
func (s *site) importsWithoutScript(t *testing.T, u user) {
	t.Helper()
	v := s.signedIn(t, 1, u)
	part := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%d.json\"\r\n\r\n[]\r\n"
	body := fmt.Sprintf(part, 1) + fmt.Sprintf(part, 2) + "--b--\r\n"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+"/chats/import", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := v.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if to := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || to != "/chats/imports" {
		t.Errorf("two files: %d to %q", res.StatusCode, to)
	}
	if _, page := v.get(t, "/chats/imports"); strings.Count(page, "</li>") < 5 || !strings.Contains(page, "1.json") || !strings.Contains(page, "2.json") {
		t.Errorf("the imports are\n%s", page)
	}
}

// exports exports the account and looks for a conversation in it.
func (s *site) exports(t *testing.T, u user) {
	t.Helper()
	v := s.visitor(t, 1)
	v.signIn(t, u)
	status, body := v.post(t, "/account/export", url.Values{})
	if status != http.StatusOK {
		t.Fatalf("export: %d %s", status, body)
	}
	archive, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := text.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(text.String(), "Sourdough that rises") {
		t.Errorf("the export holds no sourdough: %.2000s", &text)
	}
}
