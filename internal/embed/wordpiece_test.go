package embed

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/testkit"
)

// window is that of the default model.
const window = 512

func testTokenizer(t testing.TB) *wordPiece {
	t.Helper()
	tok, err := loadTokenizer(filepath.Join(testkit.ModelDir(t), tokenizerFile), window)
	if err != nil {
		t.Fatal(err)
	}
	return tok.(*wordPiece)
}

func TestAppendNormalized(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ in, want string }{
		"Case":         {"ABC xyz 123", "abc xyz 123"},
		"Accents":      {"Éçãñ Å", "ecan a"},
		"CombiningOff": {"e\u0301", "e"},
		"Greek":        {"ΣΊΣ", "σισ"},
		"Space":        {"a\tb\nc\rd\u00a0e\u2003f\u3000g", "a b c d e f g"},
		"ControlsGo":   {"a\x00b\x07c\vd\fe\u0085f\u200bg\u00adh\ufeffi\ufffdj\x7fk", "abcdefghijk"},
		"PrivateGoes":  {"a\ue000b", "ab"},
		"Chinese":      {"中文", " 中  文 "},
		"Compatible":   {"\uf900", " 豈 "},
		"KanaTogether": {"かな", "かな"},
		"HangulApart":  {"한", "\u1112\u1161\u11ab"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []rune
			for _, r := range tc.in {
				got = appendNormalized(got, r)
			}
			if string(got) != tc.want {
				t.Errorf("%q normalized to %q, want %q", tc.in, string(got), tc.want)
			}
		})
	}
}

func TestIsPunctuation(t *testing.T) {
	t.Parallel()
	for c := range rune(128) {
		want := strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c)
		if got := isPunctuation(c); got != want {
			t.Errorf("isPunctuation(%q) = %v", c, got)
		}
	}
	for r, want := range map[rune]bool{'…': true, '—': true, '。': true, '「': true, '€': false, 'é': false, '中': false} {
		if got := isPunctuation(r); got != want {
			t.Errorf("isPunctuation(%q) = %v", r, got)
		}
	}
}

// Only the first 510 tokens of a text are used, and a word that is too long for the
// vocabulary is one unknown token.
func TestEncodeLongTexts(t *testing.T) {
	t.Parallel()
	tok := testTokenizer(t)
	for unit, want := range map[string]int{"word ": window, "中": window, "!": window, "é": 3, "\u200b": 2} {
		if n := len(tok.encode(strings.Repeat(unit, 1<<20))); n != want {
			t.Errorf("%q repeated: %d tokens, want %d", unit, n, want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	tok := testTokenizer(f)
	for _, ref := range readReferences(f).Tokens {
		f.Add(ref.Text)
	}
	f.Add("\xff\xfe[CLS\xc3]")
	f.Add("[[CLS]][MASK")
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.encode(text)
		if len(ids) < 2 || len(ids) > window || ids[0] != int64(tok.cls) || ids[len(ids)-1] != int64(tok.sep) {
			t.Fatalf("%q: ids %v", text, ids)
		}
		for _, id := range ids {
			if id < 0 || id >= vocabSize {
				t.Fatalf("%q: id %d", text, id)
			}
		}
		var all []int64
		for id := range tok.tokens(text) {
			all = append(all, int64(id))
		}
		if n := min(len(all), window-2); !slices.Equal(ids[1:len(ids)-1], all[:n]) {
			t.Fatalf("%q: ids %v are not a prefix of %v", text, ids, all)
		}
	})
}
