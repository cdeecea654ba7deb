package retrieve

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// wordCount counts tokens like a tokenizer whose longest token has six letters.
func wordCount(text string) int {
	n := 0
	for w := range strings.FieldsSeq(text) {
		n += (len(w) + 5) / 6
	}
	return n + strings.Count(text, "\n")
}

func excerpt(owner string, seq int, score float64, text string) Excerpt {
	return Excerpt{Owner: owner, Title: "Talk " + owner, Seq: seq, Sender: "human", At: saturday, Text: text, End: len(text), Score: score}
}

func TestPack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("every word here ", 50)
	split := excerpt("a", 1, .5, "First this. Then that.")
	split.End = len("First this.")
	second := split
	second.Start, second.End, second.Score = split.End, len(second.Text), .4
	other := excerpt("b", 9, .3, "Next day.")
	later := other
	later.Seq, later.At, later.Text, later.End, later.Score = 10, saturday.AddDate(0, 0, 1), "Later.", 6, .9
	for name, test := range map[string]struct {
		reason   string
		excerpts []Excerpt
		budget   int
		want     string
	}{
		"Nothing":   {"nothing in, nothing out", nil, 100, ""},
		"NoBudget":  {"the budget is too small for a word", []Excerpt{excerpt("a", 0, .5, "Hello.")}, 3, ""},
		"Negative":  {"a negative budget counts as 0", []Excerpt{excerpt("a", 0, .5, "Hello.")}, -1, ""},
		"Blank":     {"a blank excerpt is not a source", []Excerpt{excerpt("a", 0, .5, " \n ")}, 100, ""},
		"One":       {"title and date form the heading", []Excerpt{excerpt("a", 0, .5, " Hello. ")}, 100, "Talk a (2026-11-21)\n[1] human: Hello."},
		"Neighbors": {"messages of one conversation are listed in order under one heading", []Excerpt{excerpt("a", 2, .9, "Two."), excerpt("b", 0, .5, "B."), excerpt("a", 1, .1, "One.")}, 100, "Talk a (2026-11-21)\n[1] human: One.\n[2] human: Two.\n\nTalk b (2026-11-21)\n[3] human: B."},
		"BestFirst": {"the order of the input does not matter", []Excerpt{excerpt("a", 0, .1, "Worse."), excerpt("b", 0, .9, "Better.")}, 100, "Talk b (2026-11-21)\n[1] human: Better.\n\nTalk a (2026-11-21)\n[2] human: Worse."},
		"Pieces":    {"pieces of a message are merged into one source", []Excerpt{second, split}, 100, "Talk a (2026-11-21)\n[1] human: First this. Then that."},
		"SameText":  {"equal texts are shown once", []Excerpt{excerpt("a", 0, .5, "Hello there."), excerpt("b", 3, .6, "hello  THERE.")}, 100, "Talk b (2026-11-21)\n[1] human: hello  THERE."},
		"Days":      {"each day has a heading with its date", []Excerpt{other, later}, 100, "Talk b (2026-11-22)\n[1] human: Later.\n\nTalk b (2026-11-21)\n[2] human: Next day."},
		"Cut":       {"the last excerpt is truncated at a word boundary", []Excerpt{excerpt("a", 0, .5, long)}, 20, "Talk a (2026-11-21)\n[1] human: every word here every word here every word…"},
		"Untitled":  {"an untitled conversation has a heading", []Excerpt{{Owner: "a", Sender: "tool", Text: "x", End: 1}}, 100, "Untitled\n[1] tool: x"},
		"LongTitle": {"a title is shortened", []Excerpt{{Owner: "a", Title: strings.Repeat("ü\n", 99), Sender: "human", Text: "x", End: 1}}, 500, strings.Repeat("ü ", 39) + "ü…\n[1] human: x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Pack(test.excerpts, test.budget, wordCount)
			if diff := cmp.Diff(test.want, got.Content); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// drawExcerpts draws candidates from a few conversations, some with equal texts.
func drawExcerpts(t *rapid.T) []Excerpt {
	text := rapid.OneOf(rapid.StringMatching(`[A-Za-z]{1,9}( [a-z]{1,9}){0,60}[.]`), rapid.String(), rapid.StringMatching(`[日本語ü]{1,200}`), rapid.Just("Yes."))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Excerpt {
		e := Excerpt{
			Owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner"), Seq: rapid.IntRange(0, 9).Draw(t, "seq"), Sender: "human",
			At: saturday.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "days")) * 24 * time.Hour), Text: text.Draw(t, "text"),
			Score: rapid.Float64Range(0, 1).Draw(t, "score"),
		}
		e.Title, e.End = "Talk "+e.Owner, len(e.Text)
		return e
	}), 0, 30).Draw(t, "excerpts")
}

func TestPackProperties(t *testing.T) {
	t.Parallel()
	counts := map[string]func(string) int{
		"words": wordCount, "bytes": func(s string) int { return len(s) }, "runes": utf8.RuneCountInString,
		// A joined text has more tokens than its parts.
		"superadditive": func(s string) int { return len(s)/3 + strings.Count(s, "\n")*7 },
	}
	rapid.Check(t, func(t *rapid.T) {
		in := drawExcerpts(t)
		count := counts[rapid.SampledFrom([]string{"words", "bytes", "runes", "superadditive"}).Draw(t, "count")]
		budget := rapid.IntRange(0, 2000).Draw(t, "budget")
		before := slices.Clone(in)
		got := Pack(in, budget, count)

		if got.Tokens != count(got.Content) || got.Tokens > budget {
			t.Fatalf("content has %d tokens, Tokens = %d, budget %d", count(got.Content), got.Tokens, budget)
		}
		if diff := cmp.Diff(before, in); diff != "" {
			t.Fatalf("the input changed:\n%s", diff)
		}
		if (got.Content == "") != (len(got.Sources) == 0) {
			t.Fatalf("%d sources for content %q", len(got.Sources), got.Content)
		}
		checkSources(t, in, got)
		// A budget of 200 always fits the heading and a part of the best excerpt.
		if best := distinct(in); len(best) > 0 && budget >= 200 && len(got.Sources) == 0 {
			t.Fatalf("best excerpt %q is missing, budget %d", best[0].Text, budget)
		}
	})
}

// checkSources checks that each source is cited with its text, and that no excerpt with a
// higher score is missing.
func checkSources(t *rapid.T, in []Excerpt, got Packed) {
	worst, places, texts := 2.0, map[string]bool{}, map[string]bool{}
	for i, s := range got.Sources {
		if !strings.Contains(got.Content, fmt.Sprintf("[%d] human: %s", i+1, s.Shown)) {
			t.Fatalf("source %d is not cited in %q", i+1, got.Content)
		}
		if place := fmt.Sprint(s.Owner, s.Seq, s.At); places[place] {
			t.Fatalf("source %s is listed twice", place)
		} else {
			places[place] = true
		}
		worst = min(worst, s.Score)
		texts[strings.ToLower(strings.Join(strings.Fields(s.Text), " "))] = true
	}
	for _, e := range distinct(in) {
		folded := strings.ToLower(strings.Join(strings.Fields(e.Text), " "))
		if e.Score > worst && !texts[folded] && !places[fmt.Sprint(e.Owner, e.Seq, e.At)] {
			t.Fatalf("%q with score %v is missing, although a source with score %v is included", e.Text, e.Score, worst)
		}
	}
}
