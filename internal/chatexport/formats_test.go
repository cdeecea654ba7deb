package chatexport_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/chatexport"
	"github.com/mnemo-dev/mnemo/internal/fault"
)

// A record that is invalid or too large costs only itself.
func TestInvalidRecordOfASession(t *testing.T) {
	t.Parallel()
	record := func(id, text string) string {
		return fmt.Sprintf(`{"sessionId":"s","uuid":%q,"type":"user","message":{"role":"user","content":%q}}`+"\n", id, text)
	}
	data := record("1", "first") + `{"sessionId":"s","uuid" "2"}` + "\n" + record("2", strings.Repeat("x", 3000)) + record("3", "last")
	got := all(t, open(t, []byte(data), chatexport.Options{Limits: chatexport.Limits{Conversation: 2000}}))
	if len(got) != 1 || got[0].err != nil {
		t.Fatalf("got %+v, want one conversation", got)
	}
	if len(got[0].Messages) != 2 || got[0].Messages[1].Text != "last" || got[0].Notes.Invalid != 2 {
		t.Errorf("%d messages and %d invalid records, want 2 and 2", len(got[0].Messages), got[0].Notes.Invalid)
	}
}

// The limits of a conversation apply to the sum of its records.
func TestSessionOverTheLimits(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `{"sessionId":"s","uuid":"u%d","type":"user","message":{"role":"user","content":"%s"}}`+"\n", i, strings.Repeat("x", 100))
	}
	for want, limits := range map[string]chatexport.Limits{
		"too many messages":       {Messages: 50},
		"the texts are too large": {Conversation: 5000},
	} {
		got := all(t, open(t, []byte(b.String()), chatexport.Options{Limits: limits}))
		if len(got) != 1 || got[0].err == nil || got[0].err.Reason != want {
			t.Errorf("got %+v, want one conversation that fails with %q", got, want)
		}
	}
}

// LibreChat nests each answer in its question: a long dialogue is deep.
func TestNestedMessages(t *testing.T) {
	t.Parallel()
	const n = 1000
	var b strings.Builder
	b.WriteString(`{"conversationId":"c","recursive":true,"messages":[`)
	for i := range n {
		fmt.Fprintf(&b, `{"messageId":"m%d","isCreatedByUser":true,"text":"text %d","createdAt":"2025-01-01T00:00:%02d.%03dZ","children":[`, i, i, i/60%60, i)
	}
	b.WriteString(strings.Repeat("]}", n) + "]}")
	got := all(t, open(t, []byte(b.String()), chatexport.Options{}))
	if len(got) != 1 || got[0].err != nil || len(got[0].Messages) != n || got[0].Messages[n-1].Text != "text 999" {
		t.Fatalf("got %d conversations (%v), want one with %d messages", len(got), got[0].err, n)
	}
}

// A damaged table or page is rejected as a whole, and a large one is not buffered.
func TestTablesAndPagesAreRejected(t *testing.T) {
	t.Parallel()
	page := string(fixture(t, "gemini/MyActivity.html", 0))
	cases := map[string]struct{ reason, data, want string }{
		"quote":    {"a quote without an end", "Conversation,Time,Author,Message\nA,2025-01-01,Human,\"" + strings.Repeat("x\n", 200_000), "is a quote missing?"},
		"cut page": {"a truncated page", page[:len(page)-60], "incomplete"},
		"token":    {"a giant element", page[:strings.Index(page, "Use <b>")] + "<a href=\"" + strings.Repeat("x", 5<<20), "larger than 768 KiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chatexport.Open(strings.NewReader(tc.data), int64(len(tc.data)), chatexport.Options{Limits: chatexport.Limits{Conversation: 100_000}})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Open = %v, want Invalid with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// An activity over the limit is counted and does not affect the others.
func TestLargeActivity(t *testing.T) {
	t.Parallel()
	page := string(fixture(t, "gemini/MyActivity.html", 0))
	data := strings.Replace(page, "instead.", strings.Repeat("<b>instead</b> ", 20_000), 1)
	got := all(t, open(t, []byte(data), chatexport.Options{Limits: chatexport.Limits{Conversation: 100_000}}))
	if len(got) != 4 || got[0].err != nil || got[0].Notes.Invalid != 1 || len(got[0].Messages) != 2 {
		t.Errorf("got %d conversations, the first is %+v, want one of two activities", len(got), got[0])
	}
}

// The JSON and the HTML form of an activity have the same ids, so that importing
// both stores it once.
func TestBothFormsOfGeminiAgree(t *testing.T) {
	t.Parallel()
	page := all(t, open(t, fixture(t, "gemini/MyActivity.html", 0), chatexport.Options{}))[0]
	list := all(t, open(t, fixture(t, "gemini/MyActivity.json", 0), chatexport.Options{}))[0]
	if page.ExternalID != list.ExternalID || page.Messages[2].ExternalID != list.Messages[2].ExternalID {
		t.Errorf("ids %s and %s differ", page.ExternalID, list.ExternalID)
	}
}

// activityPage returns a page of activities, each a question, a time and an answer.
func activityPage(activities ...[3]string) []byte {
	var b strings.Builder
	b.WriteString("<html><body>")
	for _, a := range activities {
		fmt.Fprintf(&b, `<div class="outer-cell"><div class="header-cell"><p>Gemini</p></div><div class="content-cell">Prompted %s<br>%s<br><p>%s</p></div></div>`,
			a[0], a[1], a[2])
	}
	b.WriteString("</body></html>")
	return []byte(b.String())
}

// Activities without a readable time are distinct if their answers differ, and have
// the same ids in a later export.
func TestActivitiesWithoutTimes(t *testing.T) {
	t.Parallel()
	undated := [][3]string{
		{"continue", "15 févr. 2024, 10:00:00 CET", "The second part."},
		{"continue", "14 févr. 2024, 10:00:00 CET", "The first part."},
		{"continue", "13 févr. 2024, 10:00:00 CET", "The  second\npart."},
	}
	ids := func(page []byte) (out []string) {
		for _, c := range all(t, open(t, page, chatexport.Options{})) {
			if c.err != nil || len(c.Messages) != 2 {
				t.Fatalf("got %+v, want a question with its answer", c)
			}
			out = append(out, c.ExternalID)
		}
		return out
	}
	got := ids(activityPage(undated...))
	if len(got) != 3 || got[0] == got[1] || got[0] != got[2] {
		t.Errorf("ids are %q, want those of the same answer to be equal", got)
	}
	later := ids(activityPage(append([][3]string{{"continue", "1 mars 2024, 10:00:00 CET", "The third part."}}, undated...)...))
	if diff := cmp.Diff(got, later[1:]); diff != "" {
		t.Errorf("ids in a later export (-before +after):\n%s", diff)
	}
	dated := ids(activityPage([3]string{"continue", "Feb 15, 2024, 10:00:00 AM UTC", "One."}))
	edited := ids(activityPage([3]string{"continue", "Feb 15, 2024, 10:00:00 AM UTC", "Another."}))
	if diff := cmp.Diff(dated, edited); diff != "" {
		t.Errorf("ids with a time depend on the answer (-before +after):\n%s", diff)
	}
}

// The order of members does not matter.
func TestPlatformOfMessagesAlone(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`[{"content":"a question","role":"user"},{"content":[{"text":"an answer","type":"text"}],"role":"assistant"}]`,
		"{\"role\":\"user\",\"content\":\"a question\"}\n{\"role\":\"assistant\",\"content\":\"an answer\"}\n",
		`{"messages":[{"content":"a question","role":"user"},{"role":"assistant","content":"an answer"}]}`,
	} {
		for _, platform := range []string{"", chatexport.OpenAI} {
			e, err := chatexport.Open(bytes.NewReader([]byte(data)), int64(len(data)), chatexport.Options{Platform: platform})
			if err != nil {
				t.Fatalf("Open of %s as %q: %v", data, platform, err)
			}
			got := all(t, e)
			if e.Platform != chatexport.OpenAI || len(got) != 1 || len(got[0].Messages) != 2 || got[0].Title != "a question" {
				t.Errorf("%s as %q is %s with %+v", data, platform, e.Platform, got)
			}
		}
	}
}

// A text or a tag of any size in HTML does not hide the text after it.
func TestGiantTokensOfHTML(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 400_000)
	for name, tc := range map[string]struct{ html, want string }{
		"text":       {"<p>a</p>" + long + "&amp;<p>b</p>", "a\n\n" + long + "&\n\nb"},
		"tag":        {"<p>a</p><p x='" + long + "'>b</p>", "a\n\nb"},
		"comparison": {"a < " + long + "b", "a < " + long + "b"},
	} {
		text := fmt.Sprintf(`[{"header":"Gemini Apps","title":"Prompted x","time":"2025-01-01T00:00:00Z","safeHtmlItem":[{"html":%q}]}]`, tc.html)
		got := all(t, open(t, []byte(text), chatexport.Options{}))
		if len(got) != 1 || len(got[0].Messages) != 2 {
			t.Fatalf("%s: %d conversations", name, len(got))
		}
		if answer := got[0].Messages[1].Text; answer != tc.want {
			t.Errorf("%s: the answer has %d bytes, want %d: %.30q … %q", name, len(answer), len(tc.want), answer, answer[max(0, len(answer)-30):])
		}
	}
}
