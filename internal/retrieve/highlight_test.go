package retrieve

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHighlight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		question, text string
		want           []string
	}{
		"Stems":      {"which trains is she moving to?", "She moved to the Train.", []string{"moved", "Train"}},
		"StopWords":  {"where do I go", "where do I go", []string{"go"}},
		"NoTerms":    {"what is it", "what is it", nil},
		"Unicode":    {"ÉCOLE", "L’école est fermée.", []string{"école"}},
		"NoSpaces":   {"東京駅", "明日は東京駅で会う", []string{"東京駅"}},
		"OneOfPairs": {"東京", "京都と東京", []string{"東京"}},
		"Mixed":      {"iphone", "昨日iPhoneを買いました", []string{"iPhone"}},
		"Korean":     {"고양이 알레르기", "고양이를 키워요", []string{"고양이"}},
		"Thai":       {"แมวดำ", "ฉันเลี้ยงแมวสีเทา", []string{"แมว"}},
		"Decomposed": {"cafe\u0301, バー", "Das Café, nicht das cafe\u0301: ハ\u3099ー", []string{"Café", "cafe\u0301", "ハ\u3099ー"}},
		"Composed":   {"café", "im Cafe\u0301s-Viertel der Cafe\u0301", []string{"Cafe\u0301s", "Cafe\u0301"}},
		"Single":     {"猫", "黒猫を飼う", []string{"猫"}},
		"Genitive":   {"Ana’s room", "Ana has a room.", []string{"Ana", "room"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range Highlight(test.question, test.text) {
				got = append(got, test.text[s.Start:s.End])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("highlights (-want +got):\n%s", diff)
			}
		})
	}
}

// Spans are in order, do not overlap and end between characters.
func TestHighlightIsValid(t *testing.T) {
	t.Parallel()
	words := rapid.SliceOf(rapid.SampledFrom([]string{"train", "Trains ", "東京", "京", "ß€𝄞", "고양", "ー", "한", "かな", "เลี้ยง", "สี", " ", "-", "é", "e\u0301", "\u3099", "\n", "\xff"}))
	rapid.Check(t, func(t *rapid.T) {
		question, text, at := "", "", 0
		for _, w := range words.Draw(t, "question") {
			question += w
		}
		for _, w := range words.Draw(t, "text") {
			text += w
		}
		for _, s := range Highlight(question, text) {
			if s.Start < at || s.End <= s.Start || s.End > len(text) || !utf8.ValidString(text[s.Start:s.End]) {
				t.Fatalf("Highlight(%q, %q) has %v after %d", question, text, s, at)
			}
			at = s.End
		}
	})
}
