package retrieve

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBothSides(t *testing.T) {
	t.Parallel()
	const never, did, question = "I have never attended a resume workshop.", "I just attended a resume workshop in May.", "Have I ever attended a resume workshop?"
	others := []string{"My resume has two pages.", "I like tea.", "It rains.", "Good night."}
	between := func(first, last string) []string { return slices.Concat([]string{first}, others, []string{last}) }
	moved, unchanged := []UnitID{0, 1, 5, 2, 3, 4}, []UnitID{0, 1, 2, 3, 4, 5}
	tests := map[string]struct {
		reason, question string
		texts            []string
		want             []UnitID
	}{
		"Affirmed": {"the affirmation moves to the third place", question, between(never, did), moved},
		"Denied":   {"so does the denial", question, between(did, never), moved},
		"Short":    {"a short form is a denial", question, between(did, "I haven’t attended any resume workshop"), moved},
		"Behind": {"it never moves in front of the other side", question,
			[]string{others[1], others[2], others[3], never, others[0], did}, []UnitID{0, 1, 2, 3, 5, 4}},
		"Clause": {"a denial of something else in another clause is none", question, between(never, "I don't know why, but I attended a resume workshop"), moved},
		"Intent": {"a plan is no statement", question, between(never, "I want to attend a resume workshop"), unchanged},
		"Asked":  {"nor is a question", question, between(never, "Where did Ann attend a resume workshop?"), unchanged},
		"Same":   {"both say the same", question, between(never, never), unchanged},
		"Value":  {"the question is not whether something is so", "Which resume workshop have I attended?", between(never, did), unchanged},
		"Answer": {"the question is about an answer", "Did you say that I attended a resume workshop?", between(never, did), unchanged},
		"Topic":  {"the denial is about something else", question, between(did, "I have never been to Rome."), unchanged},
		"Code":   {"code is no statement", question, between(never, "See ```attended = resume + workshop```"), unchanged},
		"Speaker": {"the message of another speaker is not the user's", question,
			[]string{"Anna: " + never, "Ben: Why?", "Anna: Because.", "Ben: Tea?", "Anna: Yes.", "Ben: " + did}, unchanged},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ranking := said(tc.question, tc.texts...)
			if d := cmp.Diff(tc.want, unitIDs(c.bothSides(ranking))); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
		})
	}
}

// An answer of the assistant is no statement of the user.
func TestBothSidesAreTheUsers(t *testing.T) {
	t.Parallel()
	c, ranking := said("Have I ever been to Rome?", "I have never been to Rome.", "I like tea.", "It rains.", "Good night.", "Last year you have been to Rome.")
	c.all[4].Human = false
	if d := cmp.Diff([]UnitID{0, 1, 2, 3, 4}, unitIDs(c.bothSides(ranking))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A statement below the best twenty messages does not move.
func TestBothSidesDepth(t *testing.T) {
	t.Parallel()
	for behind, want := range map[int]UnitID{sidesDepth - 1: sidesDepth - 1, sidesDepth: secondSide} {
		texts := slices.Concat([]string{"I have never been to Rome."}, slices.Repeat([]string{"I like tea."}, behind-1), []string{"I have been to Rome."})
		c, ranking := said("Have I ever been to Rome?", texts...)
		if got := c.bothSides(ranking)[secondSide].ID; got != want {
			t.Errorf("statement with index %d: message %d is third, want %d", behind, got, want)
		}
	}
}

// For any messages, at most one moves, from below the third place, and scores remain in descending order.
func TestBothSidesProperties(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom(strings.Fields("I have never been to Rome , and not will no ``` you tea . did ?"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 1, 12).Draw(t, "words"), " ") })
		c, ranking := said("Have I ever been to Rome?", rapid.SliceOfN(text, 1, 25).Draw(t, "texts")...)
		got := c.bothSides(ranking)
		checkOneMove(t, ranking, got, secondSide)
	})
}

// checkOneMove fails unless got is the ranking with at most one hit moved up to an index of at least from, with
// scores in descending order.
func checkOneMove(t *rapid.T, ranking, got []Hit, from int) {
	before, after := unitIDs(ranking), unitIDs(got)
	for i, id := range after {
		if before[i] == id {
			continue
		}
		at := slices.Index(before, id)
		if i < from || at < i || !slices.Equal(after[i+1:], slices.Delete(slices.Clone(before), at, at+1)[i:]) {
			t.Fatalf("%v became %v", before, after)
		}
		break
	}
	for i := range got[1:] {
		if got[i+1].Score > got[i].Score {
			t.Fatalf("scores out of order: %v", got)
		}
	}
}
