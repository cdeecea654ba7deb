package retrieve

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// updateAt is when the first of the messages of a test was written.
var updateAt = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

// said returns the messages of the user as candidates, in the order of writing, and a
// ranking with the same order.
func said(question string, texts ...string) (*comparison, []Hit) {
	c := &comparison{query: Query{Kind: Chat, Text: question}}
	var ranking []Hit
	for i, text := range texts {
		c.all = append(c.all, Described{ID: UnitID(i), Owner: "o", Seq: i, Human: true, At: updateAt.AddDate(0, 0, i), Text: text})
		ranking = append(ranking, Hit{ID: UnitID(i), Score: 1 - float64(i)/100})
	}
	c.speakers()
	return c, ranking
}

func TestNewerFirst(t *testing.T) {
	t.Parallel()
	const older, newer = "I have to write 1,200 words a week for my writing goal.", "My weekly writing goal was adjusted to 1,350 words, is that realistic?"
	tests := map[string]struct {
		reason, question string
		texts            []string
		first            UnitID
	}{
		"Update":  {"the newer value answers the question", "What is my weekly writing goal in words?", []string{older, newer}, 1},
		"Further": {"messages about something else stay between", "What is my weekly writing goal in words?", []string{older, "I like tea.", newer}, 2},
		"Past":    {"the question is about the past", "What was my weekly writing goal in words before?", []string{older, newer}, 0},
		"The":     {"the question need not say that it is about the user", "What is the weekly writing goal in words?", []string{older, newer}, 1},
		"Ordinal": {"the first one is not the past one", "When does the first sprint end?",
			[]string{"The first sprint ends on April 1.", "The end of the first sprint was moved to April 5."}, 1},
		"Sequence":  {"the question is about an order of events", "Which is first, the weekly writing goal of 1,200 words or that of 1,350?", []string{older, newer}, 0},
		"Interval":  {"the question is about two times", "How many days are between my weekly writing goal and the 1,350 words?", []string{older, newer}, 0},
		"Assistant": {"the question is about an answer", "Which weekly writing goal did you recommend to me?", []string{older, newer}, 0},
		"Same":      {"the value is the same", "What is my weekly writing goal in words?", []string{older, strings.ReplaceAll(newer, "1,350", "1,200")}, 0},
		"No cue":    {"the newer message does not say that anything changed", "What is my weekly writing goal in words?", []string{older, "I wrote 1,350 words for my weekly goal."}, 0},
		"No value":  {"the newer message states no value", "What is my weekly writing goal in words?", []string{older, "My weekly writing goal was adjusted."}, 0},
		"Unrelated": {"the newer message is about something else", "What is my weekly writing goal in words?", []string{older, "I recently bought 12 apples."}, 0},
		"Code":      {"numbers in code are not statements", "What is my weekly writing goal in words?", []string{older, "My new script:\n```\nweekly_writing_goal_words = 99\n```"}, 0},
		"Verb": {"may is a verb, not a date", "When is my appointment with the doctor?",
			[]string{"My appointment with the doctor is on March 3.", "My new doctor said the appointment may hurt."}, 0},
		"One of":  {"one of them is no number", "How many cats do I have?", []string{"I have 3 cats.", "I like tea.", "It rains.", "One of my new cats is ill."}, 0},
		"Label":   {"a label that no other message has is no speaker", "What is my weekly writing goal in words?", []string{older, "Update: " + newer, "Thanks."}, 1},
		"Speaker": {"the message of another speaker is not the user's", "What is my weekly writing goal in words?", []string{older, "Anna: " + newer, "Ben: Why?", "Anna: Because."}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ranking := said(tc.question, tc.texts...)
			got := c.newerFirst(ranking)
			if got[0].ID != tc.first {
				t.Errorf("%s: message %d is first, want %d", tc.reason, got[0].ID, tc.first)
			}
			if len(got) != len(ranking) {
				t.Errorf("%d results of %d", len(got), len(ranking))
			}
		})
	}
}

// The older statement never moves in front of the newer one.
func TestNewerFirstKeepsTheNewest(t *testing.T) {
	t.Parallel()
	c, ranking := said("How many pages does my draft have?", "My draft now has 12 pages.", "My draft now has 20 pages.")
	ranking[0], ranking[1] = Hit{1, 0.9}, Hit{0, 0.8}
	if got := c.newerFirst(ranking); got[0].ID != 1 {
		t.Errorf("message %d is first, want the newest", got[0].ID)
	}
}

// A statement must have a value of the kind that the question asks for.
func TestValuesFitTheQuestion(t *testing.T) {
	t.Parallel()
	const when, many, what = "When is my appointment with the doctor?", "How many cats do I have?", "What is my plan for the trip?"
	tests := map[string]struct {
		reason, question, text string
		want                   []string
	}{
		"Verb":          {"may is a verb", when, "My new doctor said the appointment may hurt.", nil},
		"Number":        {"a number is no date", when, "My new doctor has 3 rooms.", nil},
		"Month":         {"a month is a date", when, "My appointment was moved to April.", []string{"april"}},
		"Day":           {"so is a day of a month", when, "It is now on May 3rd, or the 4th of June", []string{"4th of june", "may 3rd"}},
		"May":           {"and may after a preposition", when, "The appointment is now in May, no later than by may", []string{"may"}},
		"Ordinal":       {"and an ordinal", when, "It is on the 15th now.", []string{"15th"}},
		"Weekday":       {"and a weekday", when, "It is on Friday at 9:30 or at 4 pm", []string{"4 pm", "9:30", "friday"}},
		"Form":          {"and numbers in the form of a date", when, "2026-03-04 or 3/5, or in 2027", []string{"2026-03-04", "2027", "3/5"}},
		"One of":        {"one of them is no number", many, "One of my new cats is ill, and no one knows why.", nil},
		"Count":         {"a word is a number", many, "I now have three cats, and one is ill", []string{"one", "three"}},
		"Date":          {"the day of a date is no number", many, "On March 3 we got 2 new cats", []string{"2"}},
		"Any":           {"other questions ask for either", what, "The new budget of 1,200. is for March 3", []string{"1,200", "march 3"}},
		"Both":          {"and so do questions for both", "When was it, and how many are my cats?", "2 on Monday", []string{"2", "monday"}},
		"Verb of other": {"may is no value of other questions either", what, "My new plan may work.", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, valuesFor(tc.question)(tc.text)); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// Of two statements that are equally about the question, the first one counts, each time.
func TestBestStatementIsDeterministic(t *testing.T) {
	t.Parallel()
	c, _ := said("What is my draft word goal?", "My draft word goal is 300; my draft word goal is 500.")
	weights := map[string]float64{"draft": 0.1, "word": 0.2, "goal": 0.7} // their sum depends on the order
	for range 200 {
		s, _ := bestStatement(c.all, weights, valuesFor(c.query.Text))
		if d := cmp.Diff([]string{"300", "500"}, s.values); d != "" {
			t.Fatalf("values: -want +got\n%s", d)
		}
	}
}

// Of a chain of updates the newest statement is first, and each of the others before those that it
// replaces.
func TestNewerFirstOrdersTheChain(t *testing.T) {
	t.Parallel()
	for _, ranked := range [][]UnitID{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		c, ranking := said("How many pages does my draft have?", "My draft has 12 pages.", "My draft now has 20 pages.", "My draft now has 30 pages.",
			"I like tea.", "It rains.", "Good night.")
		for i, id := range ranked {
			ranking[i].ID = id
		}
		if d := cmp.Diff([]UnitID{2, 1, 0}, unitIDs(c.newerFirst(ranking))[:3]); d != "" {
			t.Errorf("ranked %v: -want +got\n%s", ranked, d)
		}
	}
}

// Code is no prose, also if it begins in the piece before.
func TestProse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		pieces []Described
		want   []string
	}{
		"One":     {"up to the code", []Described{{Text: "a ```x``` b"}}, []string{"a "}},
		"Inside":  {"the second piece begins with code", []Described{{End: 5, Text: "a ```"}, {Start: 5, End: 6, Text: "x"}, {Start: 6, Text: "y```b"}}, []string{"a "}},
		"Order":   {"the order of the candidates does not matter", []Described{{Start: 5, Text: "x```b"}, {End: 5, Text: "a ```"}}, []string{"a "}},
		"After":   {"the code ends in the piece before", []Described{{End: 9, Text: "a ```x```"}, {Start: 9, Text: "b"}}, []string{"a ", "b"}},
		"Closed":  {"or in the second one", []Described{{End: 5, Text: "a ```"}, {Start: 5, End: 9, Text: "x```"}, {Start: 9, Text: "b"}}, []string{"a ", "b"}},
		"Missing": {"the piece between is no candidate", []Described{{End: 5, Text: "a ```"}, {Start: 7, Text: "b"}}, []string{"a ", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, prose(tc.pieces)); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// For any messages, no statement ranks below one that it replaces, the results stay the same, and their scores remain in descending order.
func TestNewerFirstProperties(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom(strings.Fields("my draft has now 12 pages, 20 words. and changed ``` new goal is March 5"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 1, 15).Draw(t, "words"), " ") })
		c, ranking := said("How many pages does my draft have?", rapid.SliceOfN(text, 1, 20).Draw(t, "texts")...)
		for i, id := range rapid.Permutation(unitIDs(ranking)).Draw(t, "ranking") {
			ranking[i].ID = id
		}
		stated := c.statements(ranking)
		got := c.newerFirst(ranking)
		position := func(s statement) int { return slices.Index(unitIDs(got), s.message.ID) }
		for _, older := range stated {
			for _, newer := range stated {
				if newer.message.after(older.message) && newer.replaces(older) && position(newer) > position(older) {
					t.Fatalf("%q ranks below %q", newer.message.Text, older.message.Text)
				}
			}
		}
		seen := map[UnitID]bool{}
		for i, h := range got {
			if seen[h.ID] || i > 0 && h.Score > got[i-1].Score {
				t.Fatalf("result %d of %v: repeated or out of order", i, got)
			}
			seen[h.ID] = true
		}
		if len(got) != len(ranking) {
			t.Fatalf("%d results of %d", len(got), len(ranking))
		}
	})
}
