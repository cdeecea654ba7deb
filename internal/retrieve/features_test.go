package retrieve

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestPerspective(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"When did Anna move?":        "When did I move?",
		"What is Anna's dog called?": "What is my dog called?",
		"Is ANNA’s cat like Ben?":    "Is my cat like Ben?",
		"Annabel left":               "Annabel left",
	} {
		if got := perspective(question, map[string]bool{"anna": true}); got != want {
			t.Errorf("%q becomes %q, want %q", question, got, want)
		}
	}
}

func TestSpeaker(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Anna: hello": "anna", "Anna Maria: hello": "anna", "Zoë: hi": "zoë", "note: x": "", "Anna said: x": "", "": "", "10:30 am": "",
	} {
		if got := speaker(text); got != want {
			t.Errorf("speaker(%q) = %q, want %q", text, got, want)
		}
	}
}

// A label is a speaker in a transcript only.
func TestSpeakers(t *testing.T) {
	t.Parallel()
	const anna, ben, note = "Anna: I like the museum.", "Ben: Great!", "Note: I am allergic to penicillin"
	for name, tc := range map[string]struct {
		reason string
		chats  [][]string
		want   []string // of each message
	}{
		"Transcript": {"most messages have a label", [][]string{{anna, ben, "Bye"}}, []string{"anna", "ben", ""}},
		"Single":     {"a single message has the label of others", [][]string{{anna, ben}, {anna}}, []string{"anna", "ben", "anna"}},
		"Note":       {"no other candidate has a label", [][]string{{anna, ben}, {note}}, []string{"anna", "ben", ""}},
		"Chat":       {"most messages have none", [][]string{{note, "Noted.", note, "Yes."}}, []string{"", "", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := comparison{query: Query{Kind: Chat, Text: "What is my note?"}}
			var got []string
			for i, chat := range tc.chats {
				for seq, text := range chat {
					c.all = append(c.all, Described{ID: UnitID(len(c.all)), Owner: string(rune('a' + i)), Seq: seq, Text: text},
						Described{ID: UnitID(len(c.all) + 1), Owner: string(rune('a' + i)), Seq: seq, Start: 100, Text: "Second: piece"})
				}
			}
			c.speakers()
			for _, d := range c.all {
				if d.Start == 0 {
					got = append(got, c.speaker[d.ID])
				} else if s := c.speaker[d.ID]; s != "" {
					t.Errorf("a later piece has the speaker %q", s)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, d)
			}
			if len(c.names) > 0 {
				t.Errorf("the question names %v", c.names)
			}
		})
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"The painters were painting walls": {"painter", "paint", "wall"},
		"studies, studied":                 {"study", "study"},
		"Anna's plan; planned":             {"anna", "plan", "plan"},
		"東京都":                              {"東京", "京都"},
		"黒い猫を飼う":                           {"黒", "猫", "飼"},
		"iPhoneを買いました":                     {"iphon", "買", "いま", "まし", "した"},
		"고양이를 집에":                          {"고양", "양이", "이를", "집", "집에"},
		"ทดสอบ":                            {"ทด", "ดส", "สอ", "อบ"},
		"เลี้ยง":                           {"เลี้", "ลี้ย", "ยง"},
		"Die Steuererklärung":              {"die", "steuererklärung"},
		"Die Steuererkla\u0308rung":        {"die", "steuererklärung"},
		"":                                 nil,
	} {
		if d := cmp.Diff(want, terms(text)); d != "" {
			t.Errorf("terms of %q: -want +got\n%s", text, d)
		}
	}
}

// Texts without scripts that are split have one term per word.
func TestTermsOfWords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	texts := []string{"L’école d'été, naïve Steuererklärung", "Привет, мир", "snake_case don't 4:30 x2"}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.Split(string(data), "\n")...)
	}
	for _, text := range texts {
		var want []string
		for _, w := range plainWords(text) {
			if s := stem(w); s != "" {
				want = append(want, s)
			}
		}
		if d := cmp.Diff(want, terms(text), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("terms of %q: -want +got\n%s", text, d)
		}
	}
}

// A question covers what contains its words in another script or with other particles.
func TestCoverageOfScripts(t *testing.T) {
	t.Parallel()
	for question, text := range map[string]string{
		"iPhone": "iPhoneを買いました", "고양이": "고양이를 키워요", "猫": "黒猫を飼っている", "我过敏": "我过敏，对花生", "東京": "私は東京タワーに行った", "แมว": "ฉันเลี้ยงแมวสีเทา", "สี": "แมวสีเทา",
	} {
		c := comparison{query: Query{Kind: Memory, Text: question}}
		if got := c.coverage(map[UnitID]Described{1: {ID: 1, Text: text}}, []Hit{{ID: 1}}); got[0] != 1 {
			t.Errorf("%q covers %v of %q, want 1", text, got[0], question)
		}
	}
}

// The heading of a piece covers the question as its text does.
func TestCoverageOfHeadings(t *testing.T) {
	t.Parallel()
	c := comparison{query: Query{Kind: Memory, Text: "recipes with eggs"}}
	units := map[UnitID]Described{1: {ID: 1, Text: "Carbonara: eggs", Heading: "Recipes"}, 2: {ID: 2, Text: "Carbonara: eggs"}}
	got := c.coverage(units, []Hit{{ID: 1}, {ID: 2}})
	if got[0] != 1 || got[1] <= 0 || got[1] >= 1 {
		t.Errorf("coverage with and without the heading = %v, want 1 and less", got)
	}
	c.query.Text = "Which are my recipes?"
	if got = c.coverage(units, []Hit{{ID: 1}, {ID: 2}}); got[0] != 0 {
		t.Errorf("coverage of a single word by the heading = %v, want 0", got[0])
	}
	for question, want := range map[string]float64{"Recipes": 1, "Recipes ?": 1, "« Recipes »": 1, "Which are my recipes?": 0} {
		c.query = Query{Kind: Chat, Text: question}
		if got = c.coverage(units, []Hit{{ID: 1}, {ID: 2}}); got[0] != want {
			t.Errorf("coverage of %q by the title = %v, want %v", question, got[0], want)
		}
	}
}

// A message is compared with the question together with its title.
func TestFeaturesOfTitles(t *testing.T) {
	t.Parallel()
	for title, wantHigher := range map[string]bool{"": false, "Zanzibar itinerary": true} {
		c := comparison{query: Query{Text: "my Zanzibar itinerary"}, all: []Described{
			{ID: 1, Owner: "a", Text: "Which vaccinations are necessary?", Heading: title}, {ID: 2, Owner: "b", Text: "Which vaccinations are necessary?"},
		}}
		if _, list := c.compared(); (list[0][featWords] > list[1][featWords]) != wantHigher {
			t.Errorf("title %q: words %v, without a title %v", title, list[0][featWords], list[1][featWords])
		}
	}
}

func TestNamedDates(t *testing.T) {
	t.Parallel()
	at := time.Date(2023, time.May, 5, 12, 0, 0, 0, time.UTC)
	for question, want := range map[string][2]bool{
		"What happened in May 2023?":     {true, false},
		"What happened on 3 May 2023?":   {true, true},
		"What happened on May 7th, 2023": {true, true},
		"the 20th of May 2023":           {true, false},
		"in May 2022":                    {false, false},
		"on 3 May":                       {true, true},
		"May I ask?":                     {false, false},
		"in June":                        {false, false},
		"1 May 2":                        {false, false}, // not 12 May
		"on 9 May":                       {true, false},
		"on 30 April":                    {false, false},
	} {
		month, day := writtenOn(namedDates(question), at)
		if got := [2]bool{month, day}; got != want {
			t.Errorf("%q: month and day %v, want %v", question, got, want)
		}
	}
}

// A message was written on the day of the user's time zone.
func TestWrittenInTheZoneOfTheQuery(t *testing.T) {
	t.Parallel()
	for zone, want := range map[*time.Location]float64{nil: 0, time.FixedZone("", 5*3600): 1} {
		c := comparison{query: Query{Kind: Chat, Text: "What happened in May 2023?", Zone: zone}}
		c.all = []Described{{ID: 1, Text: "A walk.", At: time.Date(2023, time.April, 30, 20, 0, 0, 0, time.UTC)}}
		c.speakers()
		list := make([]features, 1)
		c.addSigns([]candidate{{Described: c.all[0]}}, [][]string{{"walk"}}, list)
		if got := list[0][featMonth]; got != want {
			t.Errorf("zone %v: in May %v, want %v", zone, got, want)
		}
	}
}

// A message is near a day of another month or year.
func TestWrittenNearTheEndOfAMonth(t *testing.T) {
	t.Parallel()
	at := time.Date(2023, time.January, 1, 23, 0, 0, 0, time.UTC)
	for question, want := range map[string]bool{
		"on 30 December": true, "on 30 December 2022": true, "on December 28": false, "on 30 December 2023": false, "on January 4": true, "on 5 January": false,
	} {
		month, day := writtenOn(namedDates(question), at)
		if day != want {
			t.Errorf("%q: near the day %v, want %v", question, day, want)
		}
		if named := strings.Contains(question, "January"); month != named {
			t.Errorf("%q: in the month %v, want %v", question, month, named)
		}
	}
}

func TestBM25PrefersRareTerms(t *testing.T) {
	t.Parallel()
	var texts []bag
	for _, text := range []string{"common rare", "common other", "common thing", "nothing"} {
		texts = append(texts, bagOf(plainWords(text), setOf("common rare")))
	}
	got := bm25(terms("common rare"), texts)
	if got[0] <= got[1] || got[1] <= got[3] || got[3] != 0 {
		t.Errorf("scores %v: want the rare term first and no score without a term", got)
	}
}

// For any texts, stems are stable, scores are finite, and standardized features have mean 0.
func TestFeatureProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "texts")
		question := rapid.String().Draw(t, "question")
		c := comparison{query: Query{Text: question}, vector: []float32{1, 0}, lexical: map[UnitID]float64{}}
		for i, text := range texts {
			x := rapid.Float32Range(-1, 1).Draw(t, "cosine")
			c.all = append(c.all, Described{ID: UnitID(i), Owner: "o", Seq: i, Text: text + ".", Vector: []float32{x, 0}})
		}
		c.speakers()
		hits := c.rank()
		if len(hits) != len(texts) {
			t.Fatalf("%d hits of %d candidates", len(hits), len(texts))
		}
		for i, h := range hits {
			if math.IsNaN(h.Score) || h.Score < 0 || h.Score > 1 || i > 0 && h.Score > hits[i-1].Score {
				t.Fatalf("score %v at %d of %v", h.Score, i, hits)
			}
		}
	})
}

// The named speaker's own statement ranks before the same words of another speaker.
func TestRankPrefersTheNamedSpeaker(t *testing.T) {
	t.Parallel()
	c := comparison{query: Query{Text: "Where does Anna work?"}, vector: []float32{1}, all: []Described{
		{ID: 1, Owner: "o", Seq: 0, Text: "Ben: I work at a bakery.", Vector: []float32{0.5}},
		{ID: 2, Owner: "o", Seq: 5, Text: "Anna: I work at a bakery.", Vector: []float32{0.5}},
	}}
	c.speakers()
	if got := c.rank(); got[0].ID != 2 {
		t.Errorf("ranking %v, want Anna's statement, 2, first", got)
	}
}

// A message that has no vector yet, because it was stored a moment ago or the embedder is
// unavailable, is found by its words. Its neighbors have none either.
func TestRankFindsMessagesWithoutVectors(t *testing.T) {
	t.Parallel()
	c := comparison{query: Query{Text: "item10100069"}, vector: []float32{1}, lexical: map[UnitID]float64{101: 1, 102: 1, 103: 1}}
	for i := range 97 {
		vector := []float32{0.8 + float32(i%10)/100}
		c.all = append(c.all, Described{ID: UnitID(i + 1), Owner: "other", Seq: i, Text: "item10100018 river garden travel", Vector: vector})
	}
	for i := range 3 {
		c.all = append(c.all, Described{ID: UnitID(101 + i), Owner: "new", Seq: i, Text: "item10100069 market ladder summer"})
	}
	for i, h := range c.rank()[:3] {
		if h.ID < 101 {
			t.Errorf("result %d is %d, want the messages with the word", i, h.ID)
		}
	}
}

func BenchmarkRank(b *testing.B) {
	text := strings.Repeat("We talked about the garden, and planned to plant three apple trees last week. ", 10)
	c := comparison{query: Query{Text: "When did we plan to plant apple trees in the garden?"}, vector: make([]float32, 384)}
	for i := range 3 * maxRerankDepth {
		d := Described{ID: UnitID(i), Owner: "o", Seq: i, Vector: make([]float32, 384)}
		if i%3 == 1 {
			d.Text = text
		}
		c.all = append(c.all, d)
	}
	for b.Loop() {
		c.speakers()
		c.rank()
	}
}
