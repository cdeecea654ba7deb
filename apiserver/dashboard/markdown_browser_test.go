package dashboard_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/synthesize"
)

const formatted = "# Night trains\n\nThe **fastest** way to *Vienna*:\n\n1. Book a seat at [ÖBB](https://oebb.test/tickets).\n2. Or a couchette:\n   - lower\n   - upper\n\n" +
	"| Train | From | Price |\n|---|---|--:|\n| NJ 490 | Hamburg | 59 € |\n| NJ 40490 | Amsterdam | 79 € |\n\n> Seats sell out in summer.\n\n" +
	"### Code\n\n```sql\nselect price from trains\nwhere city = 'Vienna';\n```\n\nInline `code`, <b>HTML</b> and ![a map](https://evil.test/map.png).\n\n---\n\nDone."

// readsMarkdown: messages are formatted, HTML and images are harmless, code can be copied,
// the source can be seen, and a long conversation is loaded in parts.
func readsMarkdown(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	s.ingest(t, alice, "f", "Night trains", "How do I get to **Vienna**?", formatted)
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	tab.open("/chats")
	tab.click(".card .title")
	tab.sees("Seats sell out in summer.")
	for what, expression := range map[string]string{
		"a heading":         `document.querySelector(".prose [role=heading].h1").innerText === "Night trains"`,
		"a table":           `document.querySelectorAll(".prose tbody tr").length === 2`,
		"a nested list":     `document.querySelectorAll(".prose ol > li > ul > li").length === 2`,
		"a safe link":       `document.querySelector(".prose a[href='https://oebb.test/tickets']").rel === "noopener noreferrer nofollow"`,
		"HTML as text":      `document.querySelector(".conversation").innerText.includes("<b>HTML</b>")`,
		"no image":          `!document.querySelector(".conversation img") && document.querySelector("a[href='https://evil.test/map.png']").innerText === "a map"`,
		"the user's format": `document.querySelector(".says.human strong").innerText === "Vienna"`,
	} {
		tab.until(expression, "see "+what)
	}
	tab.looks("conversation-formatted")
	tab.eval(`document.querySelector(".prose .snippet button").focus()`, nil)
	tab.copies(".prose .snippet button")
	tab.click("form.actions a.quiet")
	tab.sees("| NJ 490 | Hamburg | 59 € |")
	tab.click("form.actions a.quiet")
	tab.seesNot("| NJ 490 | Hamburg")

	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "%d. A line of a long answer about the night train.\n", i+1)
	}
	s.ingest(t, alice, "l", "A long answer", "List everything.", long.String()+"\nThe penguin is at the end.")
	tab.open("/search?q=penguin+at+the+end")
	tab.sees("The penguin is at the end.")
	tab.eval(`[...document.querySelectorAll(".card")].find((c) => c.innerText.includes("penguin is")).querySelector(".title").click()`, nil)
	tab.at("/chats/")
	tab.until(`(() => { const r = document.querySelector("#found")?.getBoundingClientRect(); return r && r.bottom > 0 && r.top < innerHeight; })()`, "be at the passage")
	tab.sees("The penguin is at the end.")
	tab.click("[data-more=before] a")
	tab.until(`document.querySelectorAll(".says").length >= 3`, "see earlier messages above")
	tab.open("/chats")
	tab.click(".card .title")
	tab.until(`(scrollTo(0, document.documentElement.scrollHeight), document.querySelector(".conversation").innerText.includes("The penguin is at the end."))`, "see the end after scrolling")
	tab.until(`!document.querySelector("[data-more=after]")`, "see that there is no more")
}

// answeredQuestion is the question that the chat model of the tests answers.
const answeredQuestion = "What is the fastest night train to Vienna?"

// chatModel returns a chat model. It finds no answer to other questions.
func chatModel(t *testing.T) *synthesize.OpenAI {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := "NONE"
		if body, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(body), answeredQuestion) {
			answer = "The **fastest** trains:\n\n- NJ 490 [1]\n- NJ 40490 [1]\n\n<b>HTML</b> and ![a map](https://evil.test/map.png)"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{ //nolint:errchkjson // strings
			"finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": answer},
		}}})
	}))
	t.Cleanup(server.Close)
	model, err := synthesize.NewOpenAI(synthesize.Config{BaseURL: server.URL, Model: "small"})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// readsAnAnswer: the answer of a chat model is formatted, and its citations lead to the sources.
func readsAnAnswer(t *testing.T, s *site, b *browser) {
	alice := s.newTenant(t, nil, "alice")[0]
	s.ingest(t, alice, "n", "Night trains", "How do I get to Vienna?", "The fastest night train to Vienna is NJ 490 from Hamburg.")
	tab := b.newContext(t, s.urls[0])
	tab.signIn(alice)
	tab.open("/ask?q=" + url.QueryEscape(answeredQuestion))
	tab.sees("Written by small from the sources below.")
	for what, expression := range map[string]string{
		"bold text":    `document.querySelector(".answer strong").innerText === "fastest"`,
		"a list":       `document.querySelectorAll(".answer ul > li").length === 2`,
		"HTML as text": `document.querySelector(".answer").innerText.includes("<b>HTML</b>")`,
		"no image":     `!document.querySelector(".answer img") && document.querySelector(".answer a[href='https://evil.test/map.png']").innerText === "a map"`,
	} {
		tab.until(expression, "see "+what)
	}
	tab.looks("ask-answer")
	tab.click(".answer li:last-child .cite")
	tab.until(`document.querySelector(".sourced:target")?.innerText.includes("Vienna")`, "see the source")
}
