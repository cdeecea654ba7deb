package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// smallHistory are conversations about different things: a title, and messages of the user and the assistant in turn.
var smallHistory = map[string][]string{
	"Zanzibar itinerary":           {"Where should we stay for our honeymoon?", "Stay three nights in Stone Town and four at the beach in Paje.", "And what about vaccinations?", "Yellow fever is required if you arrive from a country with a risk."},
	"Sourdough that does not rise": {"My sourdough bread stays flat.", "Feed the starter twice a day and let the dough rest at 26 degrees.", "It is winter here.", "Put the bowl into the oven with only the light on."},
	"Budget":                       {"How much did we spend this spring?", "About 3000 euros in March.", "That is more than I expected."},
	"Tax return":                   {"Until when do I have to hand it in?", "Until the end of July, or later with an adviser."},
	"Gift for Tom":                 {"What can I get for a ten-year-old who likes stars?", "A small telescope, or a map of the sky."},
	"Bike repair":                  {"The chain of my bicycle jumps when I pedal hard.", "The chain is probably worn. Replace it together with the cassette."},
	"Postgres index":               {"Why is my query slow?", "It scans the whole table. Create an index on the customer's id."},
	"Three days in Lisbon":         {"What should I see in Lisbon?", "Alfama, Belem and the tram 28.", "Where do we eat?", "In Cacilhas, across the river."},
}

// findsOnlyRelevant: in a small account, a search returns neither everything, nor irrelevant messages ahead of the memory that
// answers, and memories in other scripts hide nothing.
func (h *testServer) findsOnlyRelevant(t *testing.T, s realStores) {
	t.Helper()
	token := s.tenant(t, "small", "alice", false)
	messages := 0
	for title, texts := range smallHistory {
		var list []string
		for i, text := range texts {
			list = append(list, fmt.Sprintf(`{"id":"%d","role":%q,"content":%q,"createdAt":"2026-06-01T12:00:00Z"}`, i, []string{"user", "assistant"}[i%2], text))
		}
		messages += len(texts)
		h.ok(t, token, "POST", "/api/chat-history/ingest/custom-online",
			fmt.Sprintf(`{"conversation":{"id":%q,"title":%q,"createdAt":"2026-06-01T12:00:00Z","messages":[%s]}}`, title, title, strings.Join(list, ",")))
	}
	for _, text := range []string{"2026-06-03 I keep receipts in the blue folder.", "Tom prefers books to games.", "I have a gray cat called Mia.", "I learn Portuguese on Tuesdays."} {
		h.ok(t, token, "POST", "/api/memory", fmt.Sprintf(`{"text":%q}`, text))
	}
	// found returns the texts of the results in their order.
	found := func(path, query string, limit int) (texts []string) {
		t.Helper()
		body := h.ok(t, token, "POST", path, fmt.Sprintf(`{"query":%q,"limit":%d}`, query, limit)).json(t)
		for _, r := range body["results"].([]any) {
			r := r.(map[string]any)
			for _, of := range []string{"memory", "passage"} {
				if inner, ok := r[of].(map[string]any); ok {
					r = inner
				}
			}
			texts = append(texts, r["text"].(string))
		}
		return texts
	}
	for query, want := range map[string]string{
		"where are my tax receipts": "2026-06-03 I keep receipts in the blue folder.", "what should I give Tom": "Tom prefers books to games.",
	} {
		if got := found("/api/search", query, 50); !slices.Contains(got[:min(5, len(got))], want) {
			t.Errorf("%q found %q, want %q among the first 5", query, got, want)
		}
	}
	for _, query := range []string{"Stone Town", "Where do we stay in Zanzibar?", "Why does my bread not rise?"} {
		got := found("/api/chat-history/search", query, 50)
		if len(got) == 0 || len(got) > messages/2 {
			t.Errorf("%q found %d of %d messages, want fewer: %q", query, len(got), messages, got)
		}
	}
	if got := h.ok(t, token, "POST", "/api/chat-history/recall", `{"query":"Stone Town"}`).json(t)["content"].(string); !strings.Contains(got, "Paje") || strings.Contains(got, "cassette") || strings.Contains(got, "adviser") {
		t.Errorf("the recall returned %q, want only what is relevant", got)
	}
	for _, title := range []string{"Zanzibar", "Budget", "Gift"} {
		if got := found("/api/chat-history/search", title, 50); len(got) == 0 {
			t.Errorf("the word %q of a title found nothing", title)
		}
	}
	const question = "what animal lives with me"
	score := func() float64 {
		t.Helper()
		body := h.ok(t, token, "POST", "/api/search", fmt.Sprintf(`{"query":%q,"include":["memories"]}`, question)).json(t)
		results := body["results"].([]any)
		if len(results) == 0 {
			t.Fatalf("%q found nothing", question)
		}
		return results[0].(map[string]any)["score"].(float64)
	}
	before := score()
	h.ok(t, token, "POST", "/api/memory", `{"text":"2026-11-28 ฉันชอบกินข้าวซอยที่เชียงใหม่"}`)
	if after := score(); after < before-0.01 {
		t.Errorf("a memory in Thai lowers the score of another one from %.3f to %.3f", before, after)
	}
}
