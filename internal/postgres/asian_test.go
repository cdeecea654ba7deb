package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAsianWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, indexed, queried string }{
		"Other":       {"It's 4:30, café", "It's 4:30, café", "It's 4:30, café"},
		"Chinese":     {"我过敏。", "我 过 我过 敏 过敏 。", "我过 过敏 。"},
		"Single":      {"猫", "猫", "猫"},
		"Scripts":     {"黒い猫", "黒 猫", "黒 猫"},
		"Hiragana":    {"ください", "くだ ださ さい", "くだ ださ さい"},
		"Katakana":    {"タワー", "タワ ワー", "タワ ワー"},
		"Repeated":    {"人々", "人 々 人々", "人々"},
		"Korean":      {"집에 고양이", "집 에 집에 고 양 고양 이 양이", "집 집에 고양 양이"},
		"Thai":        {"แมวสีเทา!", "แม มว สี วสี สีเ เท ทา !", "แม มว วสี สีเ เท ทา !"},
		"Syllable":    {"สี", "สี", "สี"},
		"Marks":       {"เลี้ยง", "ลี้ เลี้ ลี้ย ยง", "เลี้ ลี้ย ยง"},
		"Lao":         {"ແມວ", "ແມ ມວ", "ແມ ມວ"},
		"Khmer":       {"ឆ្មា។", "ឆ្ មា ឆ្មា ។", "ឆ្មា ។"},
		"Burmese":     {"ကြောင်", "ကြော င် ကြောင်", "ကြောင်"},
		"Decomposed":  {"cafe\u0301", "café", "café"},
		"Kana":        {"か\u3099くせい", "がく くせ せい", "がく くせ せい"},
		"Jamo":        {"\u1100\u1169\u110b\u1163\u11bc\u110b\u1175", "고 양 고양 이 양이", "고양 양이"},
		"WithEnglish": {"my自転車!", "my 自 転 自転 車 転車 !", "my 自転 転車 !"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(strings.Fields(indexedWords(tc.text)), " "); got != tc.indexed {
				t.Errorf("indexed words of %q are %q, want %q", tc.text, got, tc.indexed)
			}
			if got := strings.Join(strings.Fields(queriedWords(tc.text)), " "); got != tc.queried {
				t.Errorf("queried words of %q are %q, want %q", tc.text, got, tc.queried)
			}
		})
	}
}

// The end of a long query is omitted, without splitting a character.
func TestQueriedWordsOfLongTexts(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		text string
		want int
	}{
		"longest": {strings.Repeat("é", maxQueried/2), maxQueried},
		"longer":  {"a" + strings.Repeat("é", maxQueried), maxQueried - 1},
	} {
		if got := queriedWords(tc.text); !strings.HasPrefix(tc.text, got) || len(got) != tc.want {
			t.Errorf("%s text: the first %d bytes are queried, want %d", reason, len(got), tc.want)
		}
	}
}

// FuzzAsianWords checks that each queried word of a text is among the indexed ones.
func FuzzAsianWords(f *testing.F) {
	for _, text := range []string{"我对花生过敏", "黒い猫を飼い始めて", "고양이에게 새 약", "a々ーb", "\xff我", "เลี้ยงแมว", "ကြောင် ក៏"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		indexed := map[string]bool{}
		for word := range strings.FieldsSeq(indexedWords(text)) {
			indexed[word] = true
		}
		for word := range strings.FieldsSeq(queriedWords(text)) {
			if !indexed[word] {
				t.Errorf("%q: the queried word %q is not indexed", text, word)
			}
		}
	})
}
