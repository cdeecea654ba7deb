package sample

import (
	"fmt"
	"time"

	"github.com/mnemo-dev/mnemo/internal/chat"
)

// sampleMemory is a memory, dated some days before it is added.
type sampleMemory struct {
	daysAgo int
	text    string
}

// conversation is a conversation whose messages alternate between the user and the
// assistant.
type conversation struct {
	id, title string
	daysAgo   int
	messages  []string
}

// memories and conversations are about one person, so that searches find passages of
// both kinds.
var memories = []sampleMemory{
	{2, "I prefer the window seat on trains, and the quiet coach if there is one."},
	{5, "My sister Ana moved to Lisbon for her new job at the aquarium."},
	{9, "I am allergic to hazelnuts; walnuts and almonds are fine."},
	{14, "Our team decided to release every second Tuesday instead of once a month."},
	{20, "I am learning Portuguese, twenty minutes every morning before work."},
	{33, "The bicycle needs a new chain; the shop in Mill Lane ordered one."},
	{41, "I adopted a grey cat called Miso from the shelter."},
	{60, "Write replies to customers short, without jargon, and sign them with my first name."},
}

var conversations = []conversation{
	{"sample-lisbon", "Three days in Lisbon", 4, []string{
		"I am visiting my sister in Lisbon for three days in May. What should I not miss?",
		"## Three days\n\n1. **Alfama** early in the morning, before the trams are full.\n2. **Belém**: the monastery, then custard tarts.\n3. **Sintra** by train from Rossio, about 40 minutes.\n\nMay is warm and not yet crowded.",
		"How do I get to Sintra and back in half a day?",
		"Take the train from Rossio at about 8:30 and walk to the Pena Palace first, since the queue grows after 10. The trains back leave every half hour; you are in Lisbon by 14:00.",
	}},
	{"sample-git", "Undoing a commit", 12, []string{
		"I committed to the wrong branch and have not pushed yet. How do I move the commit?",
		"Create the right branch at the commit, then move the wrong one back:\n\n```sh\ngit branch feature\ngit reset --keep HEAD~1\ngit switch feature\n```\n\nUncommitted changes stay as they are.",
		"And if I had already pushed it?",
		"Then add a commit that reverts it, so that nobody else has to rewrite history:\n\n```sh\ngit revert HEAD\ngit push\n```",
	}},
	{"sample-bread", "Sourdough that does not rise", 27, []string{
		"My sourdough bread stays flat. What am I doing wrong?",
		"Most often the starter is too cold. Keep it at 24 to 26 °C and use it when it has doubled, 4 to 6 hours after feeding.\n\n| Sign | Meaning |\n|---|---|\n| few bubbles | feed it again and wait |\n| doubled, domed | ready to bake |\n| collapsed | used too late |",
		"And how long should the dough rest?",
		"Let it rise for 4 to 5 hours at room temperature until it has grown by half, then overnight in the fridge. The cold rest improves the taste, too.",
	}},
}

// input returns the conversation as a client would send it.
func (c conversation) input(now time.Time) chat.IngestInput {
	at := now.AddDate(0, 0, -c.daysAgo)
	created := chat.Stamp(at)
	in := chat.IngestInput{Platform: Platform, PlatformName: "Sample data", ID: &c.id, Title: &c.title, CreatedAt: &created}
	for i, text := range c.messages {
		id, role, sent := fmt.Sprintf("%s-%d", c.id, i), "user", chat.Stamp(at.Add(time.Duration(i)*time.Minute))
		if i%2 == 1 {
			role = "assistant"
		}
		in.Messages = append(in.Messages, chat.IngestMessage{ID: &id, Role: &role, Content: &text, CreatedAt: &sent})
	}
	return in
}
