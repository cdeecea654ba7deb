package dashboard_test

import (
	"net/url"
	"strings"
	"testing"
)

// triesSampleData: an empty account offers sample data, which searches find. Removing it
// deletes nothing else, and only the data of this user.
func triesSampleData(t *testing.T, s *site, b *browser) {
	users := s.newTenant(t, nil, "alice", "bob")
	other := s.visitor(t, 1)
	other.signIn(t, users[1])
	other.post(t, "/sample", url.Values{"back": {"/chats"}})
	tab := b.newContext(t, s.urls[0])
	tab.signIn(users[0])
	tab.sees("No memories yet")
	tab.looks("memories-none")
	tab.open("/chats")
	tab.sees("No conversations yet")
	tab.click("form[action='/sample'] button")
	tab.at("/chats")
	tab.sees("Sample data added.")
	tab.sees("Three days in Lisbon")
	tab.looks("chats-sample")
	tab.open("/memories")
	tab.sees("a grey cat called Miso")
	tab.looks("memories-sample")
	tab.open("/search?q=which+pet+do+I+have")
	tab.until(`document.querySelector("main .cards .card").innerText.includes("Miso")`, "see the sample memory first")
	s.store(t, users[0], "2025-05-09 I keep this memory.")

	v := s.visitor(t, 0)
	v.signIn(t, users[0])
	if status, _ := v.post(t, "/sample", nil); status != 303 {
		t.Errorf("sample data again: %d, want 303", status)
	}
	if _, page := v.get(t, "/memories"); strings.Count(page, "a grey cat called Miso") != strings.Count(page, "I keep this memory.") {
		t.Error("sample data is stored twice")
	}
	tab.open("/memories")
	tab.click("form[action='/sample/remove'] button")
	tab.sees("Sample data removed.")
	tab.sees("I keep this memory.")
	tab.seesNot("Miso")
	tab.seesNot("Your account contains sample data.")
	tab.open("/chats")
	tab.sees("No conversations yet")
	if _, page := other.get(t, "/chats"); !strings.Contains(page, "Three days in Lisbon") {
		t.Error("the sample data of another user was removed")
	}
}
