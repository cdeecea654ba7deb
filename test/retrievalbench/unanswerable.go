package retrievalbench

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Categories of questions that no history answers.
const (
	gibberish    = "gibberish"
	offTopic     = "off-topic"
	notMentioned = "never mentioned"
)

var offTopicQuestions = []string{
	"What is the capital of Mongolia?", "How do vaccines work?", "Who won the 1998 World Cup?", "Explain quantum entanglement",
	"What's the boiling point of mercury?", "Translate 'good morning' to Finnish", "Who wrote the Odyssey?",
	"How tall is Mount Kilimanjaro?", "Which planet has the most moons?", "List the kings of Denmark", "What is photosynthesis?",
	"How long do tortoises live?", "rules of cricket", "history of the Ottoman empire", "how does a nuclear reactor work",
}

// things are asked about if the history does not contain any of their words.
var things = strings.Split("sailboat,dentist,helicopter,tax advisor,chainsaw,sourdough starter,aquarium,mortgage,wisdom teeth,tractor,accordion,vineyard,"+
	"beekeeping,kidney stones,parrot,submarine,chess tournament,divorce lawyer,solar panels,motorcycle,ski instructor,blood type,opera tickets,"+
	"hot tub,fishing licence,wedding caterer,orthopedist,telescope,caravan,tattoo,snake,pension fund,karate belt,greenhouse,saxophone,ceramic kiln,sauna", ",")

var aboutThings = []string{
	"What is the name of my %s?", "When did I buy the %s?", "How much did the %s cost?", "Who recommended the %s to me?",
	"What did I say about the %s?", "Why did I sell my %s?", "what did we decide about the %s",
}

// unanswerable returns the history with questions that it does not answer.
func (h history) unanswerable() history {
	r := rand.New(rand.NewPCG(1, uint64(len(h.chats)))) // reproducible
	var text strings.Builder
	for _, c := range h.chats {
		for _, m := range c.messages {
			text.WriteString(strings.ToLower(m.text) + "\n")
		}
	}
	add := func(category, text string) {
		h.questions = append(h.questions, question{category: category, text: text})
	}
	for range 20 {
		add(gibberish, nonsense(r))
	}
	for _, q := range offTopicQuestions {
		add(offTopic, q)
	}
	for i, thing := range things {
		if mentioned(text.String(), thing) {
			continue
		}
		add(notMentioned, fmt.Sprintf(aboutThings[i%len(aboutThings)], thing))
	}
	return h
}

func mentioned(text, thing string) bool {
	for word := range strings.FieldsSeq(thing) {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// nonsense returns some words of random letters.
func nonsense(r *rand.Rand) string {
	const letters = "bcdfghjklmnpqrstvwxzaeiou"
	words := make([]string, 1+r.IntN(4))
	for i := range words {
		word := make([]byte, 5+r.IntN(7))
		for j := range word {
			word[j] = letters[r.IntN(len(letters))]
		}
		words[i] = string(word)
	}
	return strings.Join(words, " ")
}
