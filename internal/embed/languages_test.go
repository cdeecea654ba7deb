package embed

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// TestModelsFindOtherLanguages asks ten questions in each of six languages about ten facts: in the same
// language, and in English. docs/models.md has the table that it logs.
func TestModelsFindOtherLanguages(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/languages.json")
	if err != nil {
		t.Fatal(err)
	}
	var facts map[string][][2]string // fact and question
	if err := json.Unmarshal(raw, &facts); err != nil {
		t.Fatal(err)
	}
	// The minimum of right answers of 60, asked in the same language and in English.
	minimum := map[string][2]int{"multilingual-e5-small-int4": {54, 54}}
	dirs := testkit.ModelDirs(t)
	for _, m := range Models() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			l := openTest(t, LocalConfig{Model: m.Name, Dir: dirs[m.Name]})
			var own, english int
			for _, language := range slices.Sorted(maps.Keys(facts)) {
				a, b := rightAnswers(t, l, facts[language], facts[language]), rightAnswers(t, l, facts["en"], facts[language])
				t.Logf("%s: %d of %d, asked in English %d", language, a, len(facts[language]), b)
				own, english = own+a, english+b
			}
			if want := minimum[m.Name]; own < want[0] || english < want[1] {
				t.Errorf("%d and %d right answers, want at least %d and %d", own, english, want[0], want[1])
			}
		})
	}
}

// rightAnswers counts the questions whose fact is the most similar of all.
func rightAnswers(t *testing.T, l *Local, questions, facts [][2]string) (right int) {
	t.Helper()
	var texts []string
	for _, f := range facts {
		texts = append(texts, f[0])
	}
	vectors, err := l.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range questions {
		query, err := l.EmbedQuery(t.Context(), q[1])
		if err != nil {
			t.Fatal(err)
		}
		best := slices.MaxFunc(vectors, func(a, b []float32) int {
			if cosine(a, query) < cosine(b, query) {
				return -1
			}
			return 1
		})
		if &best[0] == &vectors[i][0] {
			right++
		}
	}
	return right
}

// TestUnigramLimits checks the window, unknown characters, and that spaces are collapsed.
func TestUnigramLimits(t *testing.T) {
	t.Parallel()
	tok, err := parseUnigram([]byte(`{"bos":0,"eos":2,"unk":3,"normalization":{"Ａ":"A","\u3000":" "},
		"pieces":["<s>","<pad>","</s>","<unk>","▁","▁A","A","AA"],"scores":[0,0,0,0,-3,-2,-2,-3]}`), 6)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int64{
		"": {0, 4, 2}, "A": {0, 5, 2}, "\u3000 Ａ": {0, 5, 2}, "AAA": {0, 5, 7, 2}, "A?A": {0, 5, 3, 6, 2},
		"A A A A A A A": {0, 5, 5, 5, 5, 2},
	} {
		if got := tok.encode(text); !slices.Equal(got, want) {
			t.Errorf("encode(%q) = %v, want %v", text, got, want)
		}
	}
	if got := tok.count("A A A A A A A"); got != 9 {
		t.Errorf("count = %d, want 9", got)
	}
}
